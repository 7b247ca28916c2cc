//! References to objects and regions, as the text of a path.

use std::sync::Arc;

use hyperslab_core::{Fields, Place, Result};

use crate::conversion::Keeper;
use crate::file::{File, FileFields};
use crate::message::datatype::ReferenceKind;
use crate::paths::path_of;
use crate::selection::Selected;

/// The path of the target of a stored reference, followed by the region; empty for a null reference.
pub(crate) fn describe(
    file: &Arc<File>,
    kind: ReferenceKind,
    stored: &[u8],
    place: Place<'_>,
) -> Result<String> {
    let mut fields = Fields::new(stored, place);
    match kind {
        ReferenceKind::Object => Ok(path(file, fields.address(file.sizes())?)),
        ReferenceKind::Region => {
            let Some(address) = fields.address(file.sizes())?.filter(|address| *address != 0) else {
                return Ok(String::new());
            };
            let index = fields.u32()?;
            let collection = file.collection(address)?;
            let mut fields = Fields::new(collection.object(file, index)?, place);
            let target = path(file, fields.address(file.sizes())?);
            let region = Selected::parse(&mut fields)?;
            Ok(format!("{target}{region}"))
        }
        ReferenceKind::Revised => revised(file, &mut fields, place),
    }
}

/// The form of HDF5 1.12: a kind, flags, the size of the data in the heap, and its heap id.
fn revised(file: &Arc<File>, fields: &mut Fields<'_>, place: Place<'_>) -> Result<String> {
    let (kind, flags) = (fields.u8()?, fields.u8()?);
    let size = fields.u32()?;
    let address = fields.address(file.sizes())?.filter(|address| *address != 0);
    let Some(address) = address.filter(|_| size > 0) else { return Ok(String::new()) };
    let index = fields.u32()?;
    let collection = file.collection(address)?;
    let mut fields = Fields::new(collection.object(file, index)?, place);
    let token = usize::from(fields.u8()?);
    let object = fields.uint(token.min(8))?;
    fields.skip(token.saturating_sub(8))?;
    let target = path(file, Some(object));
    if flags & 1 != 0 {
        return Err(place.unsupported("a reference into another file"));
    }
    Ok(match kind {
        3 => {
            // The size of the selection, the rank of its dataspace.
            fields.skip(8)?;
            format!("{target}{}", Selected::parse(&mut fields)?)
        }
        4 => {
            let length = usize::from(fields.u16()?);
            format!("{target}@{}", String::from_utf8_lossy(fields.bytes(length)?))
        }
        _ => target,
    })
}

/// Appends the stored form of a region reference, from the text created by [`describe`].
pub(crate) fn store_region(
    text: &str,
    stored: usize,
    keeper: &mut dyn Keeper,
    out: &mut Vec<u8>,
) -> Result<()> {
    let from = out.len();
    out.resize(from + stored, 0);
    if text.is_empty() {
        return Ok(());
    }
    // The region starts at a bracket, but names may contain brackets too: use the shortest path that leads to an object.
    let ends = text.match_indices('[').map(|(at, _)| at).chain([text.len()]);
    let found = ends
        .filter_map(|end| Some((&text[..end], Selected::from_text(&text[end..])?)))
        .find(|(path, _)| keeper.has_object(path));
    let (path, region) = found.unwrap_or((text, Selected::All));
    let address = keeper.object(path)?;
    if address == 0 {
        return Ok(());
    }
    let width = stored.saturating_sub(4).min(8);
    let mut object = address.to_le_bytes()[..width].to_vec();
    region.encode(&mut object)?;
    let (heap, index) = keeper.keep(&object)?;
    out[from..from + width].copy_from_slice(&heap.to_le_bytes()[..width]);
    out[from + width..from + width + 4].copy_from_slice(&index.to_le_bytes());
    Ok(())
}

fn path(file: &Arc<File>, address: Option<u64>) -> String {
    match address {
        None | Some(0) => String::new(),
        Some(address) => path_of(file, address).unwrap_or_else(|| format!("the object at {address:#x}")),
    }
}
