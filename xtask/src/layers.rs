//! The direction of dependencies: arrows point down only.

use std::path::Path;

use crate::Outcome;
use crate::run::{root, say};

/// Each crate, and the workspace crates that it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("hyperslab-core", &[]),
    ("hyperslab-codec", &[]),
    ("hyperslab-remote", &["hyperslab-core"]),
    ("hyperslab-npy", &["hyperslab-core"]),
    ("hyperslab-netcdf3", &["hyperslab-core"]),
    ("hyperslab-tet", &["hyperslab-core", "hyperslab-codec"]),
    ("hyperslab-hdf5", &["hyperslab-core", "hyperslab-codec"]),
    ("hyperslab-tiledb", &["hyperslab-core", "hyperslab-codec"]),
    ("hyperslab-zarr", &["hyperslab-core", "hyperslab-codec"]),
    ("hyperslab-zvf", &["hyperslab-core", "hyperslab-codec", "hyperslab-zarr"]),
    (
        "hyperslab",
        &[
            "hyperslab-core",
            "hyperslab-codec",
            "hyperslab-remote",
            "hyperslab-npy",
            "hyperslab-netcdf3",
            "hyperslab-tet",
            "hyperslab-hdf5",
            "hyperslab-tiledb",
            "hyperslab-zarr",
            "hyperslab-zvf",
            "hyperslab-remote",
        ],
    ),
    ("hyperslab-plot", &["hyperslab"]),
    ("hyperslab-serve", &["hyperslab"]),
    ("hyperslab-cli", &["hyperslab", "hyperslab-plot", "hyperslab-serve"]),
    ("hyperslab-python", &["hyperslab"]),
    ("hyperslab-testing", &["hyperslab-core"]),
    (
        "hyperslab-crash",
        &["hyperslab", "hyperslab-codec", "hyperslab-core", "hyperslab-tiledb", "hyperslab-zvf"],
    ),
    (
        "hyperslab-bench",
        &[
            "hyperslab",
            "hyperslab-codec",
            "hyperslab-core",
            "hyperslab-hdf5",
            "hyperslab-testing",
            "hyperslab-tiledb",
            "hyperslab-zvf",
        ],
    ),
];

/// Crates that only access files through the core's storage.
const THROUGH_STORAGE: &[&str] = &[
    "hyperslab-tet",
    "hyperslab-hdf5",
    "hyperslab-netcdf3",
    "hyperslab-tiledb",
    "hyperslab-zarr",
    "hyperslab-zvf",
];

/// Reads every manifest and rejects dependencies on the same or a higher layer. Test dependencies may use any lower
/// layer.
pub(crate) fn run() -> Outcome {
    let crates = root().join("crates");
    let entries = std::fs::read_dir(&crates).map_err(|error| format!("{}: {error}", crates.display()))?;
    for entry in entries.flatten() {
        let manifest = entry.path().join("Cargo.toml");
        let Ok(text) = std::fs::read_to_string(&manifest) else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((_, allowed)) = LAYERS.iter().find(|(own, _)| *own == name) else {
            return Err(format!("crate {name} has no layer: add it to xtask/src/layers.rs"));
        };
        for used in dependencies(&text) {
            if !allowed.contains(&used.as_str()) {
                return Err(format!("{name} depends on {used}, which is not below it"));
            }
        }
    }
    for name in THROUGH_STORAGE {
        check_sources(&crates, &crates.join(name).join("src"))?;
    }
    say("layers: every dependency points down, and formats access files through storage only");
    Ok(())
}

/// Rejects `std::fs` and temporary files in a source folder, except in tests and listed files.
fn check_sources(crates: &Path, folder: &Path) -> Outcome {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            check_sources(crates, &path)?;
            continue;
        }
        let name = path.strip_prefix(crates).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let is_test = name.ends_with("/tests.rs") || name.ends_with("/hostile.rs");
        if !name.ends_with(".rs") || is_test {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        if let Some(line) = own_file_access(&text) {
            return Err(format!(
                "{name}:{line}: formats use hyperslab_core::storage, not std::fs or tempfile"
            ));
        }
    }
    Ok(())
}

/// The first line before the tests that uses the file system directly. Examples in comments are allowed.
fn own_file_access(text: &str) -> Option<usize> {
    let before_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let uses = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        ["std::fs", "tempfile::"].iter().any(|path| code.contains(path))
    };
    before_tests.lines().position(uses).map(|index| index + 1)
}

/// The workspace crates in a manifest's `[dependencies]`.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]";
        } else if inside {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            if name.starts_with("hyperslab") {
                found.push(name.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_parsed() {
        let manifest = "[dependencies]\nhyperslab-core.workspace = true\nbytes = \"1\"\n\n[dev-dependencies]\nhyperslab = 1\n";
        assert_eq!(dependencies(manifest), ["hyperslab-core"]);
    }

    #[test]
    fn sources_are_searched() {
        assert_eq!(own_file_access("//! std::fs\nuse std::path::Path; // not std::fs\n"), None);
        assert_eq!(own_file_access("\nfn f() { std::fs::write(); }"), Some(2));
        assert_eq!(own_file_access("use tempfile::TempDir;"), Some(1));
        assert_eq!(own_file_access("#[cfg(test)]\nmod tests {\n    use std::fs;\n}"), None);
    }

    #[test]
    fn layers_have_no_cycle() {
        for (name, below) in LAYERS {
            for used in *below {
                let (_, further) = LAYERS.iter().find(|(own, _)| own == used).unwrap();
                assert!(!further.contains(name), "{name} and {used} use each other");
            }
        }
    }
}
