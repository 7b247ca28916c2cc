//! Fragment metadata of versions 1 and 2, which is a single generic tile.

use std::collections::HashMap;
use std::sync::Arc;

use hyperslab_core::{Blob, Fields, Place, Result};

use super::{Field, Footer, List, RTree};
use crate::generic;
use crate::key::Key;
use crate::schema::{ArrayKind, Schema, ranges};

type Lists = HashMap<(List, Field), Arc<[u64]>>;

/// Reads the whole metadata file.
pub(super) fn read(blob: &dyn Blob, schema: &Schema, key: Option<&Key>) -> Result<(Footer, Lists, RTree)> {
    let payload = generic::read(blob, 0, key, "fragment metadata")?;
    let place = Place::new(blob.name(), "fragment metadata", 0);
    let mut fields = Fields::new(&payload, place);
    let version = fields.u32()?;
    let domain_bytes = fields.u64()?;
    let mut footer = Footer { version, dense: schema.kind == ArrayKind::Dense, ..Footer::default() };
    if domain_bytes > 0 {
        footer.domain = Some(ranges(&mut fields, &schema.dimensions)?);
    }
    let size: usize = schema.dimensions.iter().map(|dimension| 2 * dimension.datatype.size()).sum();
    let count = fields.count_u64(size)?;
    let boxes = (0..count).map(|_| ranges(&mut fields, &schema.dimensions)).collect::<Result<Vec<_>>>()?;
    footer.sparse_tiles = if footer.dense { 0 } else { count as u64 };
    let count = fields.count_u64(size)?;
    fields.skip(count.saturating_mul(size))?;
    let attributes = schema.attributes.len();
    let mut lists = Lists::new();
    let mut numbers = |count: usize| -> Result<Vec<Arc<[u64]>>> {
        (0..count)
            .map(|_| {
                let count = fields.count_u64(8)?;
                (0..count).map(|_| fields.u64()).collect::<Result<Arc<[u64]>>>()
            })
            .collect()
    };
    for (list, count) in
        [(List::TileOffsets, attributes + 1), (List::VarOffsets, attributes), (List::VarSizes, attributes)]
    {
        for (slot, numbers) in numbers(count)?.into_iter().enumerate() {
            let field = if slot == attributes { Field::Coords } else { Field::Attribute(slot) };
            lists.insert((list, field), numbers);
        }
    }
    footer.last_cells = fields.u64()?;
    footer.file_sizes = (0..=attributes).map(|_| fields.u64()).collect::<Result<_>>()?;
    footer.var_sizes = (0..attributes).map(|_| fields.u64()).collect::<Result<_>>()?;
    Ok((footer, lists, RTree::from_boxes(boxes)))
}
