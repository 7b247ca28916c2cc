//! Virtual datasets: arrays whose elements are those of other datasets.

use std::sync::Arc;

use hyperslab_core::{ChunkCoord, Elements, Result};

use crate::dataset::Dataset;
use crate::file::File;
use crate::message::space::Space;

/// The mappings of a virtual dataset.
#[derive(Debug)]
pub(crate) struct Virtual {}

impl Virtual {
    pub(crate) fn read(file: &Arc<File>, _heap: Option<u64>, _index: u32, _space: &Space) -> Result<Self> {
        Err(file.unsupported("virtual datasets"))
    }

    pub(crate) fn decode(&self, dataset: &Dataset, _chunk: &ChunkCoord, _out: &mut [u8]) -> Result<()> {
        Err(dataset.file.unsupported("virtual datasets"))
    }

    pub(crate) fn decode_elements(&self, dataset: &Dataset, _chunk: &ChunkCoord) -> Result<Elements> {
        Err(dataset.file.unsupported("virtual datasets"))
    }
}
