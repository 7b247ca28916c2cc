//! Helpers shared by all areas: arrays of files, and the boxes read from them.

use std::path::Path;

use hyperslab::{ArrayReader, Node, Region, Selection};

use crate::data::{self, BOX};
use crate::harness::Outcome;

/// The first array of a file.
pub(crate) fn array(path: &Path) -> Outcome<ArrayReader> {
    let store = hyperslab::open(path)?;
    let mut found = None;
    store.walk(&mut |_, node| {
        if let (Ok(Node::Array(array)), None) = (node, &found) {
            found = Some(array);
        }
        Ok(())
    })?;
    Ok(store.reader(found.ok_or("no array")?))
}

/// The selections of the boxes that all contenders read.
pub(crate) fn box_selections(reader: &ArrayReader) -> Outcome<Vec<Selection>> {
    let boxes = data::boxes(reader.schema().shape());
    Ok(boxes
        .iter()
        .map(|start| Selection::region(&Region::new(start, &[BOX; 3])))
        .collect::<Result<_, _>>()?)
}
