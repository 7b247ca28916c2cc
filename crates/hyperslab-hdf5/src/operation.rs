//! Operations: what a caller started, with the budget that everything done for it draws on.
//!
//! Every public entry of a store or array (list, open, verify, locate, visit, decode) runs in an operation. The first on
//! a thread makes a full [`Budget`]; those inside it (a virtual dataset reads its sources through the same entries) join
//! it. Structures are read through [`File::read`], which draws on the budget of the thread's operation: no walk over an
//! index, heap, header or group has to carry it along, and none can forget it.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use hyperslab_core::{Budget, Result};

use crate::file::File;

/// What reading a structure costs beside its bytes.
const STRUCTURE: u64 = 64;

/// How many times an operation on the whole file may look at it, compared with one on a part of it.
const WHOLE: u64 = 4;

/// What it may cost to find and read one cell of a virtual dataset.
const VIRTUAL_CELL: u64 = 2048;

struct Operation {
    budget: Budget,
    /// The files that take part.
    files: RefCell<HashSet<Arc<str>>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Operation>>> = const { RefCell::new(None) };
}

/// Ends the thread's operation, also when it panics.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        CURRENT.with(|current| current.replace(None));
    }
}

fn current() -> Option<Rc<Operation>> {
    CURRENT.with(|current| current.borrow().clone())
}

impl File {
    /// Runs `work` as an operation on this file, or as a part of the operation that runs already.
    pub(crate) fn operation<T>(&self, work: impl FnOnce() -> T) -> T {
        self.start(|| Budget::new(&self.name, self.stored), work)
    }

    /// As [`operation`](Self::operation), for one that looks at everything in the file.
    pub(crate) fn whole_operation<T>(&self, work: impl FnOnce() -> T) -> T {
        self.start(|| Budget::repeated(&self.name, self.stored, WHOLE), work)
    }

    /// As [`operation`](Self::operation), for this many cells of a virtual dataset: each may come from another place.
    pub(crate) fn virtual_operation<T>(&self, cells: u64, work: impl FnOnce() -> T) -> T {
        let units = cells.saturating_mul(VIRTUAL_CELL);
        self.start(|| Budget::new(&self.name, self.stored).with_work(units), work)
    }

    fn start<T>(&self, budget: impl FnOnce() -> Budget, work: impl FnOnce() -> T) -> T {
        if CURRENT.with(|current| current.borrow().is_some()) {
            return work();
        }
        let operation =
            Operation { budget: budget(), files: RefCell::new(HashSet::from([Arc::clone(&self.name)])) };
        CURRENT.with(|current| current.replace(Some(Rc::new(operation))));
        let _end = End;
        work()
    }

    /// This file takes part in the operation that runs: the first time, its bytes count too.
    pub(crate) fn join(&self) {
        if let Some(operation) = current()
            && operation.files.borrow_mut().insert(Arc::clone(&self.name))
        {
            operation.budget.extend(self.stored);
        }
    }

    /// Draws what it costs to read a structure of this many bytes.
    pub(crate) fn spend(&self, bytes: u64, what: &'static str) -> Result<()> {
        with_budget(|budget| budget.spend(bytes.saturating_add(STRUCTURE), what))
    }

    /// Draws memory, before it is taken.
    pub(crate) fn allocate(&self, bytes: u64, what: &'static str) -> Result<()> {
        with_budget(|budget| budget.allocate(bytes, what))
    }

    /// Fails when nothing is left of the budget: for those who go on after an error.
    pub(crate) fn exhausted(&self, what: &'static str) -> Result<()> {
        self.spend(0, what)?;
        self.allocate(1, what)
    }

    /// Zeroed memory, drawn from the budget.
    pub(crate) fn zeroed(&self, bytes: usize, what: &'static str) -> Result<Vec<u8>> {
        match current() {
            Some(operation) => operation.budget.zeroed(bytes, what),
            None => Budget::new(&self.name, self.stored).zeroed(bytes, what),
        }
    }

    /// Runs a part of the operation that keeps no memory.
    pub(crate) fn releasing<T>(&self, work: impl FnOnce() -> T) -> T {
        match current() {
            Some(operation) => operation.budget.releasing(work),
            None => work(),
        }
    }
}

/// Runs what is not part of the thread's operation: a caller's function, which may start operations of its own.
pub(crate) fn outside<T>(work: impl FnOnce() -> T) -> T {
    /// Goes on with the operation, also after a panic.
    struct Resume(Option<Rc<Operation>>);
    impl Drop for Resume {
        fn drop(&mut self) {
            CURRENT.with(|current| current.replace(self.0.take()));
        }
    }
    let _resume = Resume(CURRENT.with(RefCell::take));
    work()
}

fn with_budget(draw: impl FnOnce(&Budget) -> Result<()>) -> Result<()> {
    CURRENT.with(|current| match &*current.borrow() {
        Some(operation) => draw(&operation.budget),
        None => Ok(()),
    })
}
