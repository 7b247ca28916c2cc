//! Contenders, each in its own process, so that memory and threads are measured separately.

use std::path::Path;
use std::process::Command;

use crate::harness::{Bench, Outcome};

/// The output of a contender's process.
pub(super) enum Told {
    /// The median time and the peak of private memory, which excludes pages of mapped files.
    Time { seconds: f64, peak: u64 },
    /// Why the contender cannot run the case.
    Cannot(String),
}

/// A program that runs cases, and its name in the table.
pub(super) struct Contender {
    pub(super) name: String,
    program: std::path::PathBuf,
    arguments: Vec<String>,
    environment: Option<(&'static str, &'static str)>,
}

/// Hyperslab, the crates on one and two threads if that can be set, and h5py.
pub(super) fn all(bench: &Bench) -> Vec<Contender> {
    let program = std::env::current_exe().unwrap_or_default();
    let rust = |name: &str, crate_name: &str, environment| Contender {
        name: name.to_owned(),
        program: program.clone(),
        arguments: vec![super::CONTENDER.to_owned(), crate_name.to_owned()],
        environment,
    };
    let mut all = vec![rust("hyperslab", "hyperslab", None)];
    if cfg!(feature = "crates") {
        all.extend([
            rust("rust-hdf5, 2 threads", "rust-hdf5", Some(("RUST_HDF5_IO_THREADS", "2"))),
            rust("rust-hdf5, 1 thread", "rust-hdf5", Some(("RUST_HDF5_IO_THREADS", "1"))),
            rust("hdf5-pure", "hdf5-pure", None),
            rust("hdf5-reader", "hdf5-reader", None),
            rust("hdf5-reader, parallel", "hdf5-reader-parallel", None),
        ]);
    }
    if let Some(python) = &bench.python {
        all.push(Contender {
            name: "h5py".to_owned(),
            program: python.clone(),
            arguments: vec![script()],
            environment: None,
        });
    }
    all
}

/// The crates that can write.
pub(super) fn writers(bench: &Bench) -> impl Iterator<Item = Contender> {
    let writes = |contender: &Contender| {
        contender.arguments.iter().any(|name| matches!(name.as_str(), "rust-hdf5" | "hdf5-pure"))
    };
    all(bench).into_iter().filter(writes)
}

fn script() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hdf5.py").to_string_lossy().into_owned()
}

impl Contender {
    pub(super) fn run(&self, case: &str, file: &Path) -> Outcome<Told> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(case).arg(file).envs(self.environment);
        let output = command.output()?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let last = stderr.lines().last().unwrap_or("it crashed").chars().take(90).collect();
            return Ok(Told::Cannot(last));
        }
        let text = String::from_utf8(output.stdout)?;
        let mut words = text.split_whitespace();
        let (Some(seconds), Some(kibibytes)) = (words.next(), words.next()) else {
            return Err(format!("{} did not print a time: {text}", self.name).into());
        };
        Ok(Told::Time { seconds: seconds.parse()?, peak: kibibytes.parse::<u64>()? << 10 })
    }
}

/// Runs a case of `hdf5.py` that creates a file.
pub(super) fn make(bench: &Bench, case: &str, file: &Path) -> Outcome {
    let python = bench.python.as_ref().ok_or("HYPERSLAB_PEERS names no Python with the peers")?;
    let status = Command::new(python).arg(script()).arg(case).arg(file).status()?;
    if status.success() { Ok(()) } else { Err(format!("hdf5.py {case}: {status}").into()) }
}
