//! Operations: calls into the crate, each with a budget of work and memory.
//!
//! Every public entry point of a store or array (list, open, verify, locate, visit, decode) runs in an operation. The first
//! on a thread creates a full [`Budget`]; nested ones (a virtual dataset reads its sources through the same entry points)
//! share it. Structures are read through [`File::read`], which draws on the budget of the thread's operation, so that no
//! code that walks an index, heap, header or group has to pass it along, or can forget it.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use hyperslab_core::{Budget, Result};

use crate::file::File;

/// The fixed cost of reading a structure, besides its bytes.
const STRUCTURE: u64 = 64;

/// The budget of an operation on the whole file, as a multiple of that of other operations.
const WHOLE: u64 = 4;

/// The maximum cost of finding and reading one cell of a virtual dataset.
const VIRTUAL_CELL: u64 = 2048;

struct Operation {
    budget: Budget,
    /// The files that were read.
    files: RefCell<HashSet<Arc<str>>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Operation>>> = const { RefCell::new(None) };
}

/// Ends the thread's operation when dropped, even by a panic.
struct EndOnDrop;

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        CURRENT.with(|current| current.replace(None));
    }
}

fn current() -> Option<Rc<Operation>> {
    CURRENT.with(|current| current.borrow().clone())
}

impl File {
    /// Runs `work` as an operation on this file, or as part of the current operation.
    pub(crate) fn operation<T>(&self, work: impl FnOnce() -> T) -> T {
        self.start(|| Budget::new(&self.name, self.stored), work)
    }

    /// Like [`operation`](Self::operation), for work on everything in the file.
    pub(crate) fn whole_operation<T>(&self, work: impl FnOnce() -> T) -> T {
        self.start(|| Budget::repeated(&self.name, self.stored, WHOLE), work)
    }

    /// Like [`operation`](Self::operation), for this many cells of a virtual dataset, each of which may come from another source.
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
        let _end = EndOnDrop;
        work()
    }

    /// Adds this file to the current operation. On first use, the budget grows with its size.
    pub(crate) fn join(&self) {
        if let Some(operation) = current()
            && operation.files.borrow_mut().insert(Arc::clone(&self.name))
        {
            operation.budget.extend(self.stored);
        }
    }

    /// Draws the cost of reading a structure of this many bytes.
    pub(crate) fn spend(&self, bytes: u64, what: &'static str) -> Result<()> {
        with_budget(|budget| budget.spend(bytes.saturating_add(STRUCTURE), what))
    }

    /// Draws memory, before it is allocated.
    pub(crate) fn allocate(&self, bytes: u64, what: &'static str) -> Result<()> {
        with_budget(|budget| budget.allocate(bytes, what))
    }

    /// Allocates zeroed memory, drawn from the budget.
    pub(crate) fn zeroed(&self, bytes: usize, what: &'static str) -> Result<Vec<u8>> {
        match current() {
            Some(operation) => operation.budget.zeroed(bytes, what),
            None => Budget::new(&self.name, self.stored).zeroed(bytes, what),
        }
    }

    /// Runs part of an operation, and gives back the memory that it drew.
    pub(crate) fn releasing<T>(&self, work: impl FnOnce() -> T) -> T {
        match current() {
            Some(operation) => operation.budget.releasing(work),
            None => work(),
        }
    }
}

/// Runs a caller's function outside the thread's operation, so that it may start operations of its own.
pub(crate) fn outside<T>(work: impl FnOnce() -> T) -> T {
    /// Restores the operation when dropped, even by a panic.
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
