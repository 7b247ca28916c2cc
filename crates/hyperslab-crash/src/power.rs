//! Opens the states that a power cut can leave.
//!
//! A writer runs once. At each sync, and at the end, the states that a power cut could leave are created in a folder and opened:
//! each must be the old content or the new. A new target that was not synced may also be absent or damaged; damage that the
//! reader cannot detect is counted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use hyperslab_core::storage::{Step, Trace};

use crate::content;
use crate::kill::replace_with_copy;
use crate::random::Random;
use crate::replay::Recorder;
use crate::writers::{Places, Scale, Writer};

/// The results of one writer.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// The writer.
    pub name: String,
    /// The number of steps reported by the storage layer.
    pub steps: u64,
    /// The number of power cuts.
    pub cuts: u64,
    /// The number of states opened.
    pub states: u64,
    /// States with the old content.
    pub old: u64,
    /// States with the new content.
    pub new: u64,
    /// For unsynced new targets: states that the reader refuses or finds damaged.
    pub refused: u64,
    /// For unsynced new targets: states that are neither complete nor known to be damaged.
    pub unnoticed: u64,
    /// Violations.
    pub findings: Vec<String>,
}

/// Cuts the power of a writer. At each cut, up to about `samples` states are opened.
///
/// # Errors
///
/// If the writer fails, or a state cannot be created.
pub fn run(writer: &Writer, samples: usize, seed: u64) -> Result<Tally, String> {
    let to_text = |error: std::io::Error| error.to_string();
    // In memory if possible: durability is modelled, not waited for.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).map_err(to_text)?;
    // The watcher looks up inode numbers by the paths that storage reports.
    let top = folder.path().canonicalize().map_err(to_text)?;
    let (work, sources) = (top.join("work"), top.join("sources"));
    for folder in [&work, &sources] {
        std::fs::create_dir(folder).map_err(to_text)?;
    }
    let places = Places { target: work.join(writer.target), sources };
    (writer.before)(&places, Scale::SMALL).map_err(|error| error.to_string())?;
    // All states are opened at the same path, because errors name it.
    let cut = top.join("cut");
    replace_with_copy(&work, &cut)?;
    let old = content::of(&cut.join(writer.target));

    let recorder = Recorder::new(&work).map_err(to_text)?;
    let random = Random::new(seed);
    let target = cut.join(writer.target);
    let cutter = Rc::new(RefCell::new(Cutter {
        recorder,
        random,
        samples,
        cut: cut.clone(),
        target,
        found: BTreeMap::new(),
        steps: 0,
        cuts: 0,
        states: 0,
        failed: None,
    }));
    let watching = Rc::clone(&cutter);
    let done =
        Trace::watch(|| (writer.write)(&places, Scale::SMALL), move |step| watching.borrow_mut().step(&step));
    done.map_err(|error| error.to_string())?;
    cutter.borrow_mut().end();
    replace_with_copy(&work, &cut)?;
    let new = content::of(&cut.join(writer.target));
    let cutter = cutter.borrow();
    match &cutter.failed {
        Some(problem) => Err(problem.clone()),
        None => Ok(cutter.tally(writer, &old, &new)),
    }
}

struct Cutter {
    recorder: Recorder,
    random: Random,
    samples: usize,
    cut: std::path::PathBuf,
    target: std::path::PathBuf,
    /// How often each content was found, and at which cut first.
    found: BTreeMap<String, (u64, u64)>,
    steps: u64,
    cuts: u64,
    states: u64,
    failed: Option<String>,
}

impl Cutter {
    fn step(&mut self, step: &Step) {
        self.steps += 1;
        let is_sync = matches!(step, Step::Sync(_) | Step::SyncFolder(_) | Step::SyncTree(_));
        let done = self.recorder.observe().and_then(|()| {
            // A process killed here leaves everything it did.
            let all = vec![true; self.recorder.pending()];
            self.open_state(&all)?;
            if is_sync { self.cut_power() } else { Ok(()) }
        });
        self.recorder.sync(step);
        self.note(done);
    }

    fn end(&mut self) {
        let done = self.recorder.observe().and_then(|()| self.cut_power());
        self.note(done);
    }

    fn note(&mut self, done: std::io::Result<()>) {
        if let (Err(problem), None) = (done, &self.failed) {
            self.failed = Some(problem.to_string());
        }
    }

    fn cut_power(&mut self) -> std::io::Result<()> {
        self.cuts += 1;
        for choice in self.recorder.choices(self.samples, &mut self.random) {
            self.open_state(&choice)?;
        }
        Ok(())
    }

    fn open_state(&mut self, choice: &[bool]) -> std::io::Result<()> {
        remove(&self.cut)?;
        self.recorder.materialise(choice, &self.cut)?;
        self.states += 1;
        let first = self.cuts;
        self.found.entry(content::of(&self.target)).or_insert((0, first)).0 += 1;
        Ok(())
    }

    fn tally(&self, writer: &Writer, old: &str, new: &str) -> Tally {
        let mut tally = Tally { name: writer.name.clone(), ..Tally::default() };
        (tally.steps, tally.cuts, tally.states) = (self.steps, self.cuts, self.states);
        for (found, (times, cut)) in &self.found {
            let is_damaged = found.starts_with(content::REFUSED) || found.contains("\ndamage ");
            match found {
                found if found == old => tally.old += times,
                found if found == new => tally.new += times,
                _ if writer.is_new && is_damaged => tally.refused += times,
                _ if writer.is_new => tally.unnoticed += times,
                found => tally.findings.push(format!("{times} states from cut {cut} on: {found}")),
            }
        }
        tally
    }
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
