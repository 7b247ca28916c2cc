//! The mappings of a virtual dataset, as stored and as resolved by the extents of the sources.

use hyperslab_core::{Extents, Fields, Place, Region, Result, VirtualSource};

use super::axis::Axis;
use crate::encode::Encoder;
use crate::file::{File, FileFields, Sizes, check_sum};
use crate::selection::{Selected, Slab, UNLIMITED};

const PATTERN: &str = "virtual dataset mapping";

/// The maximum number of blocks of a source name pattern.
const MAX_BLOCKS: u64 = 1 << 16;

/// Elements of one source, and where they go in the virtual dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) file: String,
    pub(crate) dataset: String,
    /// The selection in the source.
    pub(crate) from: Selected,
    /// The selection in the virtual dataset.
    pub(crate) to: Selected,
    /// The number of cells along the unlimited axes, once known.
    pub(crate) settled: Option<Settled>,
}

/// The unlimited axes of source and virtual dataset, and the number of cells along them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) length: u64,
}

/// Parses the mappings in a global heap object: a version, a count, entries, a checksum. Returns them as stored and in the core's
/// model.
pub(super) fn parse(
    file: &File,
    bytes: &[u8],
    place: Place<'_>,
) -> Result<(Vec<Mapping>, Vec<VirtualSource>)> {
    let sizes = file.sizes();
    let end = check_sum(bytes, place)?;
    let mut fields = Fields::new(&bytes[..end], place);
    let version = fields.version(&[0, 1])?;
    let count = fields.length(sizes)?;
    // An entry has two names and two selections: at least 16 bytes.
    if count > fields.remaining() as u64 / 16 {
        return Err(place.corrupt(format!("{count} mappings in {} bytes", fields.remaining())));
    }
    let mut mappings: Vec<Mapping> = Vec::with_capacity(count as usize);
    let mut sources = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let flags = if version == 1 { fields.u8()? } else { 0 };
        let earlier = |fields: &mut Fields<'_>| {
            let place = fields.place();
            let index = usize::try_from(fields.length(sizes)?).ok();
            index.and_then(|index| mappings.get(index)).ok_or_else(|| place.corrupt("no such earlier entry"))
        };
        let source = match flags {
            flags if flags & 4 != 0 => ".".to_owned(),
            flags if flags & 1 != 0 => earlier(&mut fields)?.file.clone(),
            _ => fields.text()?,
        };
        let dataset = if flags & 2 != 0 { earlier(&mut fields)?.dataset.clone() } else { fields.text()? };
        let first = fields.position();
        let from = Selected::parse(&mut fields)?.regular();
        let second = fields.position();
        let to = Selected::parse(&mut fields)?.regular();
        let selections = &bytes[first..fields.position()];
        // Names shared with earlier entries are stored once, but each entry holds a copy.
        let names = 2 * (source.len() + dataset.len());
        let held = names + selections.len() + size_of::<Mapping>() + size_of::<VirtualSource>();
        file.allocate(held as u64, place.structure)?;
        let (ours, theirs) = selections.split_at(second - first);
        sources.push(VirtualSource {
            file: source.clone(),
            dataset: dataset.clone(),
            from: ours.to_vec(),
            to: theirs.to_vec(),
        });
        mappings.push(Mapping { file: source, dataset, from, to, settled: None });
    }
    Ok((mappings, sources))
}

/// The heap object of these mappings.
pub(crate) fn encode_mappings(sources: &[VirtualSource], sizes: Sizes) -> Result<Vec<u8>> {
    let mut out = Encoder::new(sizes);
    out.u8(0).length(sources.len() as u64);
    for source in sources {
        for name in [&source.file, &source.dataset] {
            out.put(name.as_bytes()).u8(0);
        }
        out.put(&source.from).put(&source.to);
    }
    out.summed()
}

impl Selected {
    /// Old writers list the boxes of a regular selection one by one. A single box is regular too.
    fn regular(self) -> Self {
        let Self::Boxes(boxes) = &self else { return self };
        let rank = boxes.first().map_or(0, |(first, _)| first.len());
        let slabs: Option<Vec<Slab>> = (0..rank).map(|axis| slab_of(boxes, axis)).collect();
        match slabs {
            Some(slabs)
                if slabs.iter().try_fold(1_u64, |n, slab| n.checked_mul(slab.count))
                    == Some(boxes.len() as u64) =>
            {
                Self::Regular(slabs)
            }
            _ => self,
        }
    }

    /// The unlimited axis.
    fn unlimited(&self) -> Option<usize> {
        let Self::Regular(slabs) = self else { return None };
        slabs.iter().position(|slab| slab.count == UNLIMITED || slab.block == UNLIMITED)
    }
}

/// The slab that all boxes form along one axis, if they do.
fn slab_of(boxes: &[(Vec<u64>, Vec<u64>)], axis: usize) -> Option<Slab> {
    let mut parts: Vec<(u64, u64)> = boxes
        .iter()
        .map(|(first, last)| Some((*first.get(axis)?, *last.get(axis)?)))
        .collect::<Option<_>>()?;
    parts.sort_unstable();
    parts.dedup();
    let (start, last) = *parts.first()?;
    let block = last.checked_sub(start)?.checked_add(1)?;
    let stride = parts.get(1).map_or(block, |second| second.0 - start);
    let even = parts.iter().enumerate().all(|(i, part)| {
        Some(part.0) == (i as u64).checked_mul(stride).and_then(|by| by.checked_add(start))
            && part.1.checked_sub(part.0).and_then(|n| n.checked_add(1)) == Some(block)
    });
    (even && stride >= block).then_some(Slab { start, stride, count: parts.len() as u64, block })
}

impl Mapping {
    /// Returns true if it may have cells of this region.
    pub(crate) fn touches(&self, region: &Region) -> bool {
        let Selected::Regular(slabs) = &self.to else { return self.to != Selected::None };
        slabs.len() == region.start.len()
            && slabs.iter().zip(region.start.iter().zip(&region.shape)).all(|(slab, (start, extent))| {
                let axis = Axis::new(*slab, u64::MAX);
                axis.below(start.saturating_add(*extent)) > axis.below(*start)
            })
    }

    /// The end of the last cell along each axis, exclusive.
    fn end(&self, rank: usize) -> Option<Extents> {
        match &self.to {
            Selected::Regular(slabs) if slabs.len() == rank => {
                Some(slabs.iter().map(|slab| Axis::new(*slab, 0).end()).collect())
            }
            _ => None,
        }
    }
}

/// The shape of a source, by file and path; `None` if it does not exist.
type ShapeOf<'a> = &'a dyn Fn(&str, &str) -> Result<Option<Extents>>;

/// Resolves unlimited selections and name patterns. Returns the mappings and the resulting shape.
pub(super) fn expand(
    file: &File,
    mappings: &[Mapping],
    shape: &[u64],
    shape_of: ShapeOf<'_>,
) -> Result<(Vec<Mapping>, Extents)> {
    let mut settled = Vec::with_capacity(mappings.len());
    // Along axes that some mapping leaves unlimited: the maximum extent of the sources and of limited mappings.
    let mut reach: Vec<Option<u64>> = vec![None; shape.len()];
    let mut least: Vec<u64> = vec![0; shape.len()];
    for mapping in mappings {
        let Some(open) = mapping.to.unlimited().filter(|axis| *axis < shape.len()) else {
            for (least, end) in least.iter_mut().zip(mapping.end(shape.len()).unwrap_or_default()) {
                *least = (*least).max(end);
            }
            settled.push(mapping.clone());
            continue;
        };
        let end = match mapping.from.unlimited() {
            Some(from) => expand_unlimited(mapping, open, from, shape_of, &mut settled)?,
            None => expand_pattern(file, mapping, open, shape_of, &mut settled)?,
        };
        reach[open] = Some(reach[open].unwrap_or(0).max(end));
    }
    let shape = shape.iter().zip(reach.iter().zip(least));
    let shape =
        shape.map(|(stored, (reach, least))| reach.map_or(*stored, |reach| reach.max(least))).collect();
    Ok((settled, shape))
}

/// Both selections grow together, to the current extent of the source.
fn expand_unlimited(
    mapping: &Mapping,
    to: usize,
    from: usize,
    shape_of: ShapeOf<'_>,
    settled: &mut Vec<Mapping>,
) -> Result<u64> {
    let Some(shape) = shape_of(&mapping.file, &mapping.dataset)? else { return Ok(0) };
    let (Selected::Regular(theirs), Selected::Regular(ours)) = (&mapping.from, &mapping.to) else {
        return Ok(0);
    };
    let length = Axis::new(theirs[from], shape.get(from).copied().unwrap_or(0)).length;
    settled.push(Mapping { settled: Some(Settled { from, to, length }), ..mapping.clone() });
    Ok(Axis::new(ours[to], 0).with_length(length).end())
}

/// `%b` in a name is the block number. The number of blocks is that of consecutive existing sources.
fn expand_pattern(
    owner: &File,
    mapping: &Mapping,
    to: usize,
    shape_of: ShapeOf<'_>,
    settled: &mut Vec<Mapping>,
) -> Result<u64> {
    let Selected::Regular(slabs) = &mapping.to else { return Ok(0) };
    let slab = slabs[to];
    let mut end = 0;
    if !mapping.file.contains("%b") && !mapping.dataset.contains("%b") {
        return Ok(0);
    }
    for block in 0..MAX_BLOCKS {
        let number = block.to_string();
        let file = mapping.file.replace("%b", &number);
        let dataset = mapping.dataset.replace("%b", &number);
        let names = (file.len() + dataset.len()) as u64;
        owner.spend(names, PATTERN)?;
        owner.allocate(names + (size_of::<Mapping>() + size_of_val(&slabs[..])) as u64, PATTERN)?;
        if shape_of(&file, &dataset)?.is_none() {
            break;
        }
        let mut slabs = slabs.clone();
        let start = slab.start.saturating_add(block.saturating_mul(slab.stride));
        slabs[to] = Slab { start, stride: slab.block.max(1), count: 1, block: slab.block };
        end = start.saturating_add(slab.block);
        let to = Selected::Regular(slabs);
        settled.push(Mapping { file, dataset, from: mapping.from.clone(), to, settled: None });
    }
    Ok(end)
}
