//! Power cuts at every sync of every writer.
#![cfg(unix)]

use hyperslab_crash::{power, writers};

/// States tested per cut. `cargo xtask power` tests more.
const SAMPLES: usize = 12;

#[test]
fn every_writer_leaves_the_old_or_the_new_content() {
    for writer in writers::all() {
        let tally = power::run(&writer, SAMPLES, 20).unwrap_or_else(|why| panic!("{writer:?}: {why}"));
        assert_eq!(tally.findings, Vec::<String>::new(), "{writer:?}");
        // Consolidation changes no value, so the new content equals the old.
        let is_same = ["consolidate", "vacuum"].iter().any(|verb| writer.name.starts_with(verb));
        assert!(tally.new > 0 || is_same, "{writer:?}: {tally:?}");
        assert!(tally.old > 0 || writer.is_new, "{writer:?}: {tally:?}");
    }
}
