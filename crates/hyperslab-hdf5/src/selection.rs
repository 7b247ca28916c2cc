//! Serialised selections: of region references and of virtual datasets.

use std::fmt;

use hyperslab_core::{Fields, Result};

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

/// What is selected of a dataspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selected {
    None,
    All,
    Points(Vec<Vec<u64>>),
    /// One per axis.
    Regular(Vec<Slab>),
    /// Boxes, in no order that matters.
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
            kind => Err(place.corrupt(format!("a selection of type {kind}"))),
        }
    }
}

fn rank(fields: &mut Fields<'_>) -> Result<usize> {
    let place = fields.place();
    let rank = fields.u32()? as usize;
    if (1..=MAX_RANK).contains(&rank) { Ok(rank) } else { Err(place.corrupt(format!("rank {rank}"))) }
}

/// A number of points or boxes, each of `each` bytes, that must still follow.
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
        width => Err(place.corrupt(format!("numbers of {width} bytes"))),
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
            // libhdf5 refuses them too: a cell would be selected twice.
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

/// As NumPy would write it: `[0:3, 4:8:2]`.
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
