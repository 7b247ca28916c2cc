//! Files that we write, read by libhdf5's own tools, if they are installed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "common/written.rs"]
mod written;

use std::path::Path;
use std::process::{Command, Stdio};

/// Filters that libhdf5 has without plugins.
const BUILT_IN: [&str; 4] = ["gzip", "shuffle", "fletcher32", "scaleoffset"];

/// Runs a tool, which must succeed. Returns `false` if it is not installed.
fn tool(name: &str, options: &[&str], files: &[&Path]) -> bool {
    let mut command = Command::new(name);
    command.args(options).args(files).stdin(Stdio::null());
    let Ok(output) = command.output() else { return false };
    let said =
        String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr });
    let said: String = said.chars().take(2000).collect();
    assert!(output.status.success(), "{name} {options:?} {files:?}: {}\n{said}", output.status);
    true
}

/// Asserts that `h5diff`, which counts differences per dataset, finds none in what both files contain.
fn same(one: &Path, other: &Path) {
    let output = Command::new("h5diff").arg("-r").args([one, other]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let counts: Vec<&str> = told.lines().filter(|line| line.ends_with("differences found")).collect();
    assert!(counts.len() > 20, "{told}");
    assert!(counts.iter().all(|count| *count == "0 differences found"), "{told}");
}

fn python(script: &str, arguments: &[&Path]) {
    let interpreter = std::env::var_os("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS names the Python interpreter that has h5py");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(script);
    let status = Command::new(interpreter).arg(script).args(arguments).status().unwrap();
    assert!(status.success(), "the script failed: {status}");
}

#[test]
fn libhdf5_tools_read_our_files() {
    let folder = tempfile::tempdir().unwrap();
    // Skip files that need libhdf5 2.0, because installed tools are usually older.
    for (name, compatibility) in &written::COMPATIBILITIES[..2] {
        let compatibility = *compatibility;
        let path = folder.path().join(format!("{name}.h5"));
        let mut datasets = written::datasets(compatibility);
        datasets.retain(|own| own.spec.filters.iter().all(|filter| BUILT_IN.contains(&filter.name.as_str())));
        assert!(datasets.len() > 20, "{} datasets", datasets.len());
        written::write(&path, compatibility, &datasets).unwrap();
        for (tool_name, options) in
            [("h5ls", &["-r", "-v"][..]), ("h5stat", &[]), ("h5dump", &["-p"]), ("h5debug", &[])]
        {
            tool(tool_name, options, &[&path]);
        }
        let packed = folder.path().join(format!("{name}-packed.h5"));
        // By default it writes old-style files, which cannot hold large attributes.
        let form: &[&str] = if *name == "earliest" { &[] } else { &["--latest"] };
        if !tool("h5repack", form, &[&path, &packed]) {
            continue;
        }
        assert_eq!(written::differences(&packed, &datasets), Vec::<String>::new(), "{name}, packed");
        // A copy made by h5py has the same contents, even after h5repack.
        let (theirs, theirs_packed) = (
            folder.path().join(format!("{name}-h5py.h5")),
            folder.path().join(format!("{name}-h5py-packed.h5")),
        );
        python("again.py", &[&path, &theirs]);
        tool("h5repack", &[], &[&theirs, &theirs_packed]);
        same(&packed, &theirs_packed);
    }
}
