//! The direction of dependencies: arrows point down only.

use crate::Outcome;
use crate::run::{root, say};

/// Each crate, and the crates of ours that it may use.
const HOUSE: &[(&str, &[&str])] = &[
    ("hyperslab-core", &[]),
    ("hyperslab-codec", &[]),
    ("hyperslab-npy", &["hyperslab-core"]),
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
            "hyperslab-npy",
            "hyperslab-tet",
            "hyperslab-hdf5",
            "hyperslab-tiledb",
            "hyperslab-zarr",
            "hyperslab-zvf",
        ],
    ),
    ("hyperslab-cli", &["hyperslab"]),
    ("hyperslab-python", &["hyperslab"]),
    ("hyperslab-testing", &["hyperslab-core"]),
    (
        "hyperslab-bench",
        &[
            "hyperslab",
            "hyperslab-codec",
            "hyperslab-core",
            "hyperslab-hdf5",
            "hyperslab-tiledb",
            "hyperslab-zvf",
        ],
    ),
];

/// Reads every manifest and refuses an arrow that points up or sideways. Test dependencies may point anywhere below.
pub(crate) fn run() -> Outcome {
    let crates = root().join("crates");
    let entries = std::fs::read_dir(&crates).map_err(|error| format!("{}: {error}", crates.display()))?;
    for entry in entries.flatten() {
        let manifest = entry.path().join("Cargo.toml");
        let Ok(text) = std::fs::read_to_string(&manifest) else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((_, allowed)) = HOUSE.iter().find(|(own, _)| *own == name) else {
            return Err(format!("crate {name} has no place in the house: add it to xtask/src/layers.rs"));
        };
        for used in dependencies(&text) {
            if !allowed.contains(&used.as_str()) {
                return Err(format!("{name} depends on {used}, which is not below it"));
            }
        }
    }
    say("layers: every arrow points down");
    Ok(())
}

/// The crates of ours in a manifest's `[dependencies]`.
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
    fn manifests_are_read() {
        let manifest = "[dependencies]\nhyperslab-core.workspace = true\nbytes = \"1\"\n\n[dev-dependencies]\nhyperslab = 1\n";
        assert_eq!(dependencies(manifest), ["hyperslab-core"]);
    }

    #[test]
    fn the_house_has_no_cycle() {
        for (name, below) in HOUSE {
            for used in *below {
                let (_, further) = HOUSE.iter().find(|(own, _)| own == used).unwrap();
                assert!(!further.contains(name), "{name} and {used} use each other");
            }
        }
    }
}
