//! Checks.

use hyperslab_core::{Depth, Report, Result};

use crate::store::TileDbStore;

/// Checks a store.
pub(crate) fn verify(store: &TileDbStore, depth: Depth, report: &mut Report) -> Result<()> {
    let _ = depth;
    store.walk("/", 0, &mut |path, array| match array.and_then(|array| array.fragments().map(<[_]>::len)) {
        Ok(count) => {
            report.passed("fragments", format!("{count} fragments"));
            report.at_node(path);
        }
        Err(error) => {
            report.failure("fragments", &error);
            report.at_node(path);
        }
    });
    Ok(())
}
