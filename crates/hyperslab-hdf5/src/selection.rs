//! Serialised selections of region references and virtual datasets.

use std::fmt;

use hyperslab_core::{Error, Fields, Result};

use crate::message::space::MAX_RANK;

/// Unlimited counts and blocks are stored as all ones.
pub(crate) const UNLIMITED: u64 = u64::MAX;

/// A regular hyperslab along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slab {
    pub(crate) start: u64,
    pub(crate) stride: u64,
    pub(crate) count: u64,
    pub(crate) block: u64,
}

/// A box: its first and last cells.
pub(crate) type Corners = (Vec<u64>, Vec<u64>);

/// The selected part of a dataspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selected {
    None,
    All,
    Points(Vec<Vec<u64>>),
    /// One per axis.
    Regular(Vec<Slab>),
    /// Boxes, in arbitrary order.
    Boxes(Vec<Corners>),
}

impl Selected {
    pub(crate) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let place = fields.place();
        let (kind, version) = (fields.u32()?, fields.u32()?);
        match kind {
            0 => {
                fields.skip(8)?;
                Ok(Self::None)
            }
            1 => points(fields, version),
            2 => hyperslab(fields, version),
            3 => {
                fields.skip(8)?;
                Ok(Self::All)
            }
            kind => Err(place.corrupt(format!("unknown selection type {kind}"))),
        }
    }
}

fn rank(fields: &mut Fields<'_>) -> Result<usize> {
    let place = fields.place();
    let rank = fields.u32()? as usize;
    if (1..=MAX_RANK).contains(&rank) { Ok(rank) } else { Err(place.corrupt(format!("rank {rank}"))) }
}

/// A count of points or boxes, each of `each` bytes, that must follow.
fn count(fields: &mut Fields<'_>, width: usize, each: usize) -> Result<usize> {
    let place = fields.place();
    let count = fields.uint(width)?;
    let room = fields.remaining() / each.max(1);
    match usize::try_from(count) {
        Ok(count) if count <= room => Ok(count),
        _ => Err(place.corrupt(format!("a count of {count}, with room for {room}"))),
    }
}

fn width(fields: &mut Fields<'_>) -> Result<usize> {
    let place = fields.place();
    match fields.u8()? {
        width @ (2 | 4 | 8) => Ok(usize::from(width)),
        width => Err(place.corrupt(format!("invalid number width of {width} bytes"))),
    }
}

fn points(fields: &mut Fields<'_>, version: u32) -> Result<Selected> {
    let (width, rank) = if version >= 2 {
        (width(fields)?, rank(fields)?)
    } else {
        fields.skip(8)?;
        (4, rank(fields)?)
    };
    let count = count(fields, width, rank * width)?;
    let point = |fields: &mut Fields<'_>| (0..rank).map(|_| fields.uint(width)).collect::<Result<Vec<_>>>();
    Ok(Selected::Points((0..count).map(|_| point(fields)).collect::<Result<_>>()?))
}

fn hyperslab(fields: &mut Fields<'_>, version: u32) -> Result<Selected> {
    let (regular, width, rank) = match version {
        1 => {
            fields.skip(8)?;
            (false, 4, rank(fields)?)
        }
        2 => {
            let flags = fields.u8()?;
            fields.skip(4)?;
            (flags & 1 != 0, 8, rank(fields)?)
        }
        _ => {
            let flags = fields.u8()?;
            let width = width(fields)?;
            (flags & 1 != 0, width, rank(fields)?)
        }
    };
    let numbers = |fields: &mut Fields<'_>| (0..rank).map(|_| fields.uint(width)).collect::<Result<Vec<_>>>();
    if regular {
        let ones = crate::file::ones(width);
        let wide = |number: u64| if number == ones { UNLIMITED } else { number };
        let slabs = (0..rank).map(|_| {
            let place = fields.place();
            let slab = Slab {
                start: fields.uint(width)?,
                stride: fields.uint(width)?,
                count: wide(fields.uint(width)?),
                block: wide(fields.uint(width)?),
            };
            // libhdf5 refuses this too: a cell would be selected twice.
            if slab.count > 1 && slab.stride < slab.block {
                return Err(place.corrupt(format!("blocks of {} cells every {}", slab.block, slab.stride)));
            }
            Ok(slab)
        });
        return Ok(Selected::Regular(slabs.collect::<Result<_>>()?));
    }
    let count = count(fields, width, 2 * rank * width)?;
    let boxes = (0..count).map(|_| Ok((numbers(fields)?, numbers(fields)?)));
    Ok(Selected::Boxes(boxes.collect::<Result<_>>()?))
}

/// Regular selections of up to this many boxes are written box by box, for libraries before 1.10.
const MOST_BOXES: u64 = 1 << 12;

impl Selected {
    /// Appends the selection in libhdf5's format, in the oldest version that can hold it.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::None => head(out, 0, 1, &[0, 0]),
            Self::All => head(out, 3, 1, &[0, 0]),
            Self::Points(points) => {
                let rank = points.first().map_or(1, Vec::len);
                listed(out, 1, rank, points.len(), points.iter().flatten().copied())?;
            }
            Self::Boxes(boxes) => {
                let rank = boxes.first().map_or(1, |(first, _)| first.len());
                let numbers = boxes.iter().flat_map(|(first, last)| first.iter().chain(last)).copied();
                listed(out, 2, rank, boxes.len(), numbers)?;
            }
            Self::Regular(slabs) => match boxes_of(slabs) {
                Some(boxes) => Self::Boxes(boxes).encode(out)?,
                None => {
                    out.extend_from_slice(&2_u32.to_le_bytes());
                    out.extend_from_slice(&2_u32.to_le_bytes());
                    out.push(1);
                    out.extend_from_slice(&small(4 + 32 * slabs.len())?.to_le_bytes());
                    out.extend_from_slice(&small(slabs.len())?.to_le_bytes());
                    for slab in slabs {
                        for number in [slab.start, slab.stride, slab.count, slab.block] {
                            out.extend_from_slice(&number.to_le_bytes());
                        }
                    }
                }
            },
        }
        Ok(())
    }

    /// Parses the output of [`Display`](fmt::Display).
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::All);
        }
        if text == "[]" {
            return Some(Self::None);
        }
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        let groups: Vec<Vec<&str>> = inner.split("][").map(|group| group.split(", ").collect()).collect();
        let rank = groups.first()?.len();
        if groups.iter().any(|group| group.len() != rank) {
            return None;
        }
        if !inner.contains(':') {
            let point = |group: &Vec<&str>| group.iter().map(|part| part.parse().ok()).collect();
            return groups.iter().map(point).collect::<Option<_>>().map(Self::Points);
        }
        let slabs: Vec<Vec<Slab>> = groups
            .iter()
            .map(|group| group.iter().map(|part| slab_of_text(part)).collect())
            .collect::<Option<_>>()?;
        match <[Vec<Slab>; 1]>::try_from(slabs) {
            Ok([only]) => Some(Self::Regular(only)),
            Err(several) => {
                let corners = |slabs: &Vec<Slab>| {
                    let single = slabs.iter().all(|slab| slab.count == 1 && slab.block > 0);
                    single.then(|| {
                        let first = slabs.iter().map(|slab| slab.start).collect();
                        (first, slabs.iter().map(|slab| slab.start + (slab.block - 1)).collect())
                    })
                };
                several.iter().map(corners).collect::<Option<_>>().map(Self::Boxes)
            }
        }
    }
}

/// `start:end`, `start:end:stride` or `start:end:stride/block`.
fn slab_of_text(text: &str) -> Option<Slab> {
    let mut parts = text.split(':');
    let start: u64 = parts.next()?.parse().ok()?;
    let end: u64 = parts.next()?.parse().ok()?;
    let length = end.checked_sub(start)?;
    let Some(step) = parts.next() else {
        let block = if end == UNLIMITED { UNLIMITED } else { length };
        return Some(Slab { start, stride: block.max(1), count: 1, block });
    };
    let (stride, block) = match step.split_once('/') {
        Some((stride, block)) => (stride.parse().ok()?, block.parse().ok()?),
        None => (step.parse().ok()?, 1),
    };
    let count = length.checked_sub(block)?.checked_div(stride)?.checked_add(1)?;
    (parts.next().is_none() && stride >= block && block > 0).then_some(Slab { start, stride, count, block })
}

fn small(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::invalid(format!("a selection of {number} parts")))
}

fn head(out: &mut Vec<u8>, kind: u32, version: u32, rest: &[u32]) {
    for number in [&[kind, version], rest].concat() {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

/// Version 1 of points and boxes: numbers of 32 bits.
fn listed(
    out: &mut Vec<u8>,
    kind: u32,
    rank: usize,
    count: usize,
    numbers: impl Iterator<Item = u64> + Clone,
) -> Result<()> {
    let bytes = small(8 + 4 * numbers.clone().count())?;
    head(out, kind, 1, &[0, bytes, small(rank)?, small(count)?]);
    for number in numbers {
        let number = u32::try_from(number)
            .map_err(|_| Error::unsupported("hdf5", format!("a selection that reaches cell {number}")))?;
        out.extend_from_slice(&number.to_le_bytes());
    }
    Ok(())
}

/// The boxes of a regular selection; `None` if they are too many or reach too far.
fn boxes_of(slabs: &[Slab]) -> Option<Vec<Corners>> {
    let total = slabs.iter().try_fold(1_u64, |n, slab| n.checked_mul(slab.count))?;
    if total > MOST_BOXES || total == 0 {
        return None;
    }
    let mut boxes = vec![(Vec::new(), Vec::new())];
    for slab in slabs {
        let last =
            slab.stride.checked_mul(slab.count - 1)?.checked_add(slab.start)?.checked_add(slab.block)?;
        if slab.block == 0 || last > u64::from(u32::MAX) {
            return None;
        }
        boxes = boxes
            .iter()
            .flat_map(|(first, end): &Corners| {
                (0..slab.count).map(move |number| {
                    let start = slab.start + number * slab.stride;
                    let with = |corner: &Vec<u64>, at| corner.iter().copied().chain([at]).collect();
                    (with(first, start), with(end, start + slab.block - 1))
                })
            })
            .collect();
    }
    Some(boxes)
}

/// In NumPy notation: `[0:3, 4:8:2]`.
impl fmt::Display for Selected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: Vec<String>| write!(f, "[{}]", parts.join(", "));
        match self {
            Self::None => f.write_str("[]"),
            Self::All => Ok(()),
            Self::Points(points) => {
                points.iter().try_for_each(|point| list(f, point.iter().map(ToString::to_string).collect()))
            }
            Self::Regular(slabs) => {
                let part = |slab: &Slab| {
                    let Slab { start, stride, count, block } = *slab;
                    if count <= 1 || block == UNLIMITED {
                        format!("{start}:{}", start.saturating_add(block))
                    } else {
                        let end =
                            stride.saturating_mul(count - 1).saturating_add(start).saturating_add(block);
                        if block == 1 {
                            format!("{start}:{end}:{stride}")
                        } else {
                            format!("{start}:{end}:{stride}/{block}")
                        }
                    }
                };
                list(f, slabs.iter().map(part).collect())
            }
            Self::Boxes(boxes) => boxes.iter().try_for_each(|(first, last)| {
                let parts = first.iter().zip(last);
                list(f, parts.map(|(a, b)| format!("{a}:{}", b.saturating_add(1))).collect())
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use hyperslab_core::Place;

    use super::*;

    fn stored(selected: &Selected) -> Selected {
        let mut bytes = Vec::new();
        selected.encode(&mut bytes).unwrap();
        Selected::parse(&mut Fields::new(&bytes, Place::new("", "", 0))).unwrap()
    }

    #[test]
    fn selections_round_trip_as_text_and_bytes() {
        let slab = |start, stride, count, block| Slab { start, stride, count, block };
        for selected in [
            Selected::None,
            Selected::All,
            Selected::Points(vec![vec![1, 2], vec![3, 4]]),
            Selected::Boxes(vec![(vec![0, 0], vec![1, 2]), (vec![4, 1], vec![4, 7])]),
            Selected::Regular(vec![slab(0, 1 << 33, 3, 2), slab(0, 7, 1, 7)]),
            Selected::Regular(vec![slab(5, 2, 5000, 1)]),
        ] {
            assert_eq!(Selected::from_text(&selected.to_string()).as_ref(), Some(&selected));
            assert_eq!(stored(&selected), selected);
        }
        // A small regular selection is stored as its boxes.
        let regular = Selected::Regular(vec![slab(0, 3, 2, 2), slab(1, 4, 1, 4)]);
        let boxes = Selected::Boxes(vec![(vec![0, 1], vec![1, 4]), (vec![3, 1], vec![4, 4])]);
        assert_eq!(stored(&regular), boxes);
        assert_eq!(Selected::from_text(&regular.to_string()), Some(regular));
        for text in ["[", "a", "[1:0]", "[0:3:0]", "[0:3:2/0]", "[1][1, 2]", "[0:2:1:1]", "[x:y]"] {
            assert_eq!(Selected::from_text(text), None, "{text}");
        }
    }
}
