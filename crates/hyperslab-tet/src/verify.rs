//! Is a file whole?

use hyperslab_core::{Depth, Report, Result};

use crate::store::TetStore;

pub(crate) fn verify(_store: &TetStore, _depth: Depth, _report: &mut Report) -> Result<()> {
    Ok(())
}
