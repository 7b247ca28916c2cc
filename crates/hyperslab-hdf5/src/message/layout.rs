//! Data layouts: elements in the header, contiguous, in chunks, or in other datasets.

use hyperslab_core::{Fields, Result};

use crate::encode::Encoder;
use crate::file::{File, FileFields, Sizes};
use crate::header::Message;
use crate::message::datatype::width as bytes_for;
use crate::message::space::MAX_RANK;

/// A data layout.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Layout {
    /// In the message itself: the address and number of bytes.
    Compact { address: u64, size: u64 },
    /// Contiguous.
    Contiguous { address: Option<u64> },
    /// In chunks.
    Chunked(Chunked),
    /// In other datasets; the mappings are in the global heap.
    Virtual { heap: Option<u64>, index: u32 },
}

/// A chunked layout.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chunked {
    pub(crate) version: u8,
    /// Elements per dimension.
    pub(crate) shape: Vec<u64>,
    /// Bytes per element, according to the layout.
    pub(crate) element: u64,
    /// Whether chunks clipped by the edge are stored without filters.
    pub(crate) plain_edges: bool,
    pub(crate) index: IndexKind,
    /// The address of the index; `None` while nothing is stored.
    pub(crate) address: Option<u64>,
}

/// The kind of chunk index, with parameters that only the layout holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexKind {
    BTree1,
    /// Stored size and filter mask, if the chunk is filtered.
    Single(Option<(u64, u32)>),
    Implicit,
    FixedArray,
    ExtensibleArray,
    BTree2,
}

impl IndexKind {
    /// Its usual name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::BTree1 => "B-tree v1",
            Self::Single(_) => "single chunk",
            Self::Implicit => "implicit",
            Self::FixedArray => "fixed array",
            Self::ExtensibleArray => "extensible array",
            Self::BTree2 => "B-tree v2",
        }
    }
}

impl Layout {
    pub(crate) fn parse(file: &File, message: &Message) -> Result<Self> {
        let mut fields = message.fields(file, "data layout message");
        match fields.version(&[1, 2, 3, 4, 5])? {
            1 | 2 => old(file, message, &mut fields),
            3 => version_3(file, message, &mut fields),
            version => version_4(file, message, &mut fields, version),
        }
    }
}

fn old(file: &File, message: &Message, fields: &mut Fields<'_>) -> Result<Layout> {
    let place = fields.place();
    let (rank, class) = (usize::from(fields.u8()?), fields.u8()?);
    if rank > MAX_RANK + 1 {
        return Err(place.corrupt(format!("rank {rank}")));
    }
    fields.skip(5)?;
    let address = if class == 0 { None } else { fields.address(file.sizes())? };
    let mut shape = (0..rank).map(|_| fields.u32().map(u64::from)).collect::<Result<Vec<_>>>()?;
    match class {
        0 => {
            let size = fields.count_u32(1)?;
            Ok(compact(message, fields, size))
        }
        // The dimensions give the size, and so does the dataspace.
        1 => Ok(Layout::Contiguous { address }),
        2 => {
            // In the oldest files the element size may be separate; everywhere else it ends the list.
            let element = match shape.pop() {
                Some(element) => element,
                None => return Err(place.corrupt("chunks without dimensions")),
            };
            Ok(Layout::Chunked(Chunked {
                version: 2,
                shape,
                element,
                plain_edges: false,
                index: IndexKind::BTree1,
                address,
            }))
        }
        class => Err(place.corrupt(format!("class {class}"))),
    }
}

fn compact(message: &Message, fields: &Fields<'_>, size: usize) -> Layout {
    Layout::Compact { address: message.address.saturating_add(fields.position() as u64), size: size as u64 }
}

fn version_3(file: &File, message: &Message, fields: &mut Fields<'_>) -> Result<Layout> {
    let place = fields.place();
    match fields.u8()? {
        2 => {
            let rank = rank(fields)?;
            let address = fields.address(file.sizes())?;
            let shape = (0..rank).map(|_| fields.u32().map(u64::from)).collect::<Result<Vec<_>>>()?;
            let element = u64::from(fields.u32()?);
            Ok(Layout::Chunked(Chunked {
                version: 3,
                shape,
                element,
                plain_edges: false,
                index: IndexKind::BTree1,
                address,
            }))
        }
        class => simple(file, message, fields, class)
            .and_then(|layout| layout.ok_or_else(|| place.corrupt(format!("class {class}")))),
    }
}

/// Classes with the same form in versions 3 and up.
fn simple(file: &File, message: &Message, fields: &mut Fields<'_>, class: u8) -> Result<Option<Layout>> {
    Ok(match class {
        0 => {
            let place = fields.place();
            let size = usize::from(fields.u16()?);
            if size > fields.remaining() {
                return Err(place.corrupt(format!("{size} bytes, {} left", fields.remaining())));
            }
            Some(compact(message, fields, size))
        }
        // The size that follows is also given by the dataspace.
        1 => Some(Layout::Contiguous { address: fields.address(file.sizes())? }),
        3 => Some(Layout::Virtual { heap: fields.address(file.sizes())?, index: fields.u32()? }),
        _ => None,
    })
}

/// The rank of the dataset. The message counts one more dimension, for the bytes of an element.
fn rank(fields: &mut Fields<'_>) -> Result<usize> {
    let place = fields.place();
    let dims = usize::from(fields.u8()?);
    if (1..=MAX_RANK + 1).contains(&dims) {
        return Ok(dims - 1);
    }
    Err(place.corrupt(format!("{dims} chunk dimensions")))
}

fn version_4(file: &File, message: &Message, fields: &mut Fields<'_>, version: u8) -> Result<Layout> {
    let place = fields.place();
    let class = fields.u8()?;
    if class != 2 {
        let layout = simple(file, message, fields, class)?;
        return layout.ok_or_else(|| place.corrupt(format!("class {class}")));
    }
    let flags = fields.u8()?;
    let rank = rank(fields)?;
    let place = fields.place();
    let width = usize::from(fields.u8()?);
    if !(1..=8).contains(&width) {
        return Err(place.corrupt(format!("chunk dimensions of {width} bytes")));
    }
    let shape = (0..rank).map(|_| fields.uint(width)).collect::<Result<Vec<_>>>()?;
    let element = fields.uint(width)?;
    let place = fields.place();
    let index = match fields.u8()? {
        1 if flags & 2 != 0 => IndexKind::Single(Some((fields.length(file.sizes())?, fields.u32()?))),
        1 => IndexKind::Single(None),
        2 => IndexKind::Implicit,
        3 => {
            fields.skip(1)?;
            IndexKind::FixedArray
        }
        4 => {
            fields.skip(5)?;
            IndexKind::ExtensibleArray
        }
        5 => {
            fields.skip(6)?;
            IndexKind::BTree2
        }
        index => return Err(place.corrupt(format!("chunk index type {index}"))),
    };
    let address = fields.address(file.sizes())?;
    Ok(Layout::Chunked(Chunked { version, shape, element, plain_edges: flags & 1 != 0, index, address }))
}

/// libhdf5's parameters for chunk indexes, which we use too.
pub(crate) mod defaults {
    pub(crate) const PAGE_BITS: u8 = 10;
    /// Maximum elements (log2), elements in the index block, minimum pointers of a super block, minimum elements of a data block,
    /// elements of a page (log2): in the order of the layout message, not of the array's header.
    pub(crate) const EXTENSIBLE: [u8; 5] = [32, 4, 4, 16, PAGE_BITS];
    /// Bytes of a B-tree v2 node, and when it is split and merged (hundredths).
    pub(crate) const TREE: (u32, u8, u8) = (2048, 100, 40);
}

/// Encodes the message for compact data.
pub(crate) fn encode_compact(data: &[u8], sizes: Sizes) -> Result<Vec<u8>> {
    let mut out = Encoder::new(sizes);
    out.u8(3).u8(0).count(data.len(), 2, "bytes of compact data").put(data);
    out.finish()
}

/// Encodes the message for contiguous data.
pub(crate) fn encode_contiguous(address: Option<u64>, size: u64, sizes: Sizes) -> Result<Vec<u8>> {
    let mut out = Encoder::new(sizes);
    out.u8(3).u8(1).address(address).length(size);
    out.finish()
}

/// Encodes the message for a virtual dataset, whose mappings are an object of the global heap.
pub(crate) fn encode_virtual(address: u64, index: u32, sizes: Sizes) -> Result<Vec<u8>> {
    let mut out = Encoder::new(sizes);
    out.u8(4).u8(3).address(Some(address)).u32(index);
    out.finish()
}

impl Chunked {
    /// Encodes the message in the version of the layout.
    pub(crate) fn encode(&self, sizes: Sizes) -> Result<Vec<u8>> {
        let mut out = Encoder::new(sizes);
        out.u8(self.version).u8(2);
        if self.version <= 3 {
            out.count(self.shape.len() + 1, 1, "dimensions of a chunk").address(self.address);
            self.shape.iter().chain([&self.element]).for_each(|extent| {
                out.count(*extent, 4, "elements of a chunk along a dimension");
            });
            return out.finish();
        }
        let filtered = matches!(self.index, IndexKind::Single(Some(_)));
        out.u8(u8::from(self.plain_edges) | u8::from(filtered) << 1);
        out.count(self.shape.len() + 1, 1, "dimensions of a chunk");
        // libhdf5 2.0 refuses more bytes per dimension than the largest needs, including the element size.
        let width =
            self.shape.iter().chain([&self.element]).map(|extent| bytes_for(*extent)).max().unwrap_or(1);
        out.count(width, 1, "bytes of a chunk dimension");
        self.shape.iter().chain([&self.element]).for_each(|extent| {
            out.uint(*extent, width);
        });
        match self.index {
            IndexKind::BTree1 => {}
            IndexKind::Single(filtered) => {
                out.u8(1);
                if let Some((size, mask)) = filtered {
                    out.length(size).u32(mask);
                }
            }
            IndexKind::Implicit => {
                out.u8(2);
            }
            IndexKind::FixedArray => {
                out.u8(3).u8(defaults::PAGE_BITS);
            }
            IndexKind::ExtensibleArray => {
                out.u8(4).put(&defaults::EXTENSIBLE);
            }
            IndexKind::BTree2 => {
                let (node, split, merge) = defaults::TREE;
                out.u8(5).u32(node).u8(split).u8(merge);
            }
        }
        out.address(self.address);
        out.finish()
    }
}
