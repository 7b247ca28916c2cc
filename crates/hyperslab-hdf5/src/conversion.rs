//! Converts stored elements: maps a file's types to [`DType`], and converts the bytes of elements.

mod build;
mod float;
mod integer;
mod store;
mod variable;

use hyperslab_core::{DType, Place, Result, swap_bytes};

pub(crate) use float::FloatPlan;
pub(crate) use integer::IntegerPlan;
pub(crate) use store::{Keeper, utf8_of};
pub(crate) use variable::Heaps;

use crate::message::datatype::{Padding, ReferenceKind};

/// How one element of a type is converted from its stored bytes.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    /// The resulting type.
    pub(crate) dtype: DType,
    /// Bytes in the file.
    pub(crate) stored: usize,
    /// Bytes in memory; `None` if elements differ in length.
    pub(crate) size: Option<usize>,
    pub(crate) step: Step,
}

/// The conversion of one element's bytes.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// None: stored bytes are the elements.
    Copy,
    /// The bytes of each number of this size are reversed.
    Swap(usize),
    /// The bytes after the text are zeroed.
    Trim(Padding),
    Integer(IntegerPlan),
    Float(FloatPlan),
    Struct(Vec<MemberStep>),
    Array {
        count: usize,
        base: Box<Element>,
    },
    Text,
    List(Box<Element>),
    Reference(ReferenceKind),
}

/// One member of a struct: its offsets in the file and in memory.
#[derive(Debug, Clone)]
pub(crate) struct MemberStep {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) element: Element,
}

impl Element {
    /// Returns true if the stored bytes are the elements.
    pub(crate) const fn is_plain(&self) -> bool {
        matches!(self.step, Step::Copy)
    }

    /// Converts stored elements of a fixed-size type to `out`, which has room for exactly that many.
    pub(crate) fn convert(&self, stored: &[u8], out: &mut [u8], place: Place<'_>) -> Result<()> {
        let size = self.size.unwrap_or(0);
        if size == 0 || stored.len() / self.stored != out.len() / size {
            return Err(place.corrupt(format!(
                "{} stored bytes do not match {} bytes in memory of type {}",
                stored.len(),
                out.len(),
                self.dtype
            )));
        }
        match &self.step {
            Step::Copy => out.copy_from_slice(&stored[..out.len()]),
            Step::Swap(unit) => {
                out.copy_from_slice(&stored[..out.len()]);
                swap_bytes(*unit, out);
            }
            Step::Integer(plan) => plan.convert(stored, out, size),
            Step::Float(plan) => plan.convert(stored, out, size),
            Step::Trim(padding) => {
                out.copy_from_slice(&stored[..out.len()]);
                out.chunks_exact_mut(size).for_each(|text| trim(*padding, text));
            }
            Step::Struct(members) => {
                for (from, to) in stored.chunks_exact(self.stored).zip(out.chunks_exact_mut(size)) {
                    for member in members {
                        let length = member.element.size.unwrap_or(0);
                        let from = &from[member.from..member.from + member.element.stored];
                        member.element.convert(from, &mut to[member.to..member.to + length], place)?;
                    }
                }
            }
            Step::Array { base, .. } => {
                let items = out.len() / base.size.unwrap_or(1).max(1);
                base.convert(&stored[..items * base.stored], out, place)?;
            }
            Step::Text | Step::List(_) | Step::Reference(_) => {
                return Err(place.corrupt("expected fixed-size elements, found variable-length ones"));
            }
        }
        Ok(())
    }
}

/// Zeroes the bytes after the text, as libhdf5 does for NumPy strings.
fn trim(padding: Padding, text: &mut [u8]) {
    let end = match padding {
        Padding::Nul => text.len(),
        Padding::NulTerminated => text.iter().position(|byte| *byte == 0).unwrap_or(text.len()),
        Padding::Space => text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1),
    };
    text[end..].fill(0);
}
