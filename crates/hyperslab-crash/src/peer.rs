//! A Python process that reads stores with their reference libraries.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The script that the process runs.
const CHECKER: &str = include_str!("checker.py");

/// The process. It ends when the handle is dropped.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the process with this interpreter.
    ///
    /// # Errors
    ///
    /// If the interpreter cannot be started.
    pub fn start(python: &Path) -> std::io::Result<Self> {
        let mut child = Command::new(python)
            .args(["-c", CHECKER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let gone = || std::io::Error::other("the process has no pipe");
        let input = child.stdin.take().ok_or_else(gone)?;
        let output = BufReader::new(child.stdout.take().ok_or_else(gone)?);
        Ok(Self { child, input, output })
    }

    /// The content at a path: one hash or several, `absent`, or `refused` with the reason.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn content(&mut self, kind: &str, path: &Path) -> std::io::Result<Vec<String>> {
        writeln!(self.input, "{kind}\t{}", path.display())?;
        self.input.flush()?;
        let mut answer = String::new();
        if self.output.read_line(&mut answer)? == 0 {
            return Err(std::io::Error::other(format!("the reference library of {kind} ended the process")));
        }
        Ok(answer.trim().split('|').map(str::to_owned).collect())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
