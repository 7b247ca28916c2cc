//! Selections: which cells are wanted, as users write them and as resolved positions.
//!
//! A [`Selection`] is the user's request: positions with missing and negative bounds, dimension names, labels.
//! [`Selection::resolve`] turns it into the [`Positions`] of one array: plain numbers from which a plan is made.

mod text;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::{Error, Extents, Region, Result, did_you_mean};

/// The selection along one axis, in NumPy's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AxisSelection {
    /// One position, which drops the axis. A negative index counts from the end.
    Index(i64),
    /// `start:stop:step`. Missing bounds default to the ends, negative bounds count from the end, and a negative step walks
    /// backwards.
    Slice {
        /// The first position.
        start: Option<i64>,
        /// The position at which to stop, exclusive.
        stop: Option<i64>,
        /// The distance from one position to the next; never zero.
        step: i64,
    },
}

impl AxisSelection {
    /// The whole axis.
    pub const ALL: Self = Self::Slice { start: None, stop: None, step: 1 };

    /// The positions from `start` to `stop`, exclusive.
    #[must_use]
    pub const fn range(start: i64, stop: i64) -> Self {
        Self::Slice { start: Some(start), stop: Some(stop), step: 1 }
    }

    /// The positions on an axis of `extent` cells.
    fn resolve(self, extent: u64, axis: usize) -> Result<AxisPositions> {
        // NumPy's arithmetic, in i128 so that no extent or bound can overflow.
        let length = i128::from(extent);
        match self {
            Self::Index(index) => {
                let at = if index < 0 { i128::from(index) + length } else { i128::from(index) };
                if !(0..length).contains(&at) {
                    return Err(Error::invalid(format!(
                        "index {index} is out of bounds for axis {axis} with {extent} cells"
                    )));
                }
                Ok(AxisPositions { start: at as u64, count: 1, step: 1, keep: false })
            }
            Self::Slice { step: 0, .. } => {
                Err(Error::invalid(format!("axis {axis}: the step must not be zero")))
            }
            Self::Slice { start, stop, step } => {
                let step = i128::from(step);
                let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
                let clamp = |bound: i64| {
                    let bound = i128::from(bound);
                    (if bound < 0 { bound + length } else { bound }).clamp(low, high)
                };
                let first = start.map_or(if step > 0 { low } else { high }, clamp);
                let last = stop.map_or(if step > 0 { high } else { low }, clamp);
                let span = if step > 0 { last - first } else { first - last };
                let count = if span <= 0 { 0 } else { (span + step.abs() - 1) / step.abs() };
                let step = if count <= 1 { 1 } else { step };
                Ok(AxisPositions {
                    start: if count == 0 { 0 } else { first as u64 },
                    count: count as u64,
                    step: step as i64,
                    keep: true,
                })
            }
        }
    }
}

/// One item of a selection: which axes it applies to, and what it selects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SelectionItem {
    /// `[0, 10:20, ...]`: by position, axis by axis. Missing axes are selected as a whole.
    Positions {
        /// The axes before the ellipsis, or all given axes.
        head: Vec<AxisSelection>,
        /// The last axes, after an ellipsis.
        tail: Vec<AxisSelection>,
    },
    /// `time[3:7]`: by position along a named dimension.
    Named(String, AxisSelection),
    /// `time=2020-01-01..2020-02-01`: by label, both ends included. A missing end reaches to the end of the axis.
    Labels {
        /// The dimension.
        dimension: String,
        /// The first label.
        from: Option<String>,
        /// The last label.
        to: Option<String>,
        /// Whether a single label was given rather than a range. It drops the axis.
        single: bool,
    },
    /// `lat~50.1`: the position with the nearest label. It drops the axis.
    Nearest {
        /// The dimension.
        dimension: String,
        /// A number or a date.
        label: String,
    },
}

/// The wanted cells, as the caller wrote them. Several items apply to different axes.
///
/// ```
/// use hyperslab_core::Selection;
/// let selection: Selection = "[-1, 10:20, ::2]".parse()?;
/// let positions = selection.resolve(&[3, 100, 5], &[])?;
/// assert_eq!(positions.shape(), [10, 3].into());
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Selection {
    /// The items. An empty list selects everything.
    pub items: Vec<SelectionItem>,
}

impl Selection {
    /// Selects everything.
    #[must_use]
    pub const fn all() -> Self {
        Self { items: Vec::new() }
    }

    /// Selects by position, axis by axis. Missing axes are selected as a whole.
    pub fn positions(axes: impl Into<Vec<AxisSelection>>) -> Self {
        Self { items: vec![SelectionItem::Positions { head: axes.into(), tail: Vec::new() }] }
    }

    /// Selects a box of cells.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if a bound exceeds `i64`.
    pub fn region(region: &Region) -> Result<Self> {
        let bound = |value: u64| {
            i64::try_from(value).map_err(|_| Error::invalid(format!("position {value} is too large")))
        };
        let mut axes = Vec::with_capacity(region.start.len());
        for (&start, &extent) in region.start.iter().zip(&region.shape) {
            axes.push(AxisSelection::range(bound(start)?, bound(start.saturating_add(extent))?));
        }
        Ok(Self::positions(axes))
    }

    /// Combines two selections.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.items.extend(other.items);
        self
    }

    /// Resolves the selection for an array of this shape and these dimension names (`None` for a dimension without a name).
    ///
    /// Labels must have been replaced by positions: only the engine knows the coordinates.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for too many axes, an axis selected twice, an index out of bounds, a zero
    /// step, an unknown dimension, or a label.
    pub fn resolve(&self, shape: &[u64], dimensions: &[Option<String>]) -> Result<Positions> {
        let mut axes: SmallVec<[Option<AxisSelection>; 4]> = SmallVec::from_elem(None, shape.len());
        let mut put = |axis: usize, selection: AxisSelection| match axes[axis].replace(selection) {
            None => Ok(()),
            Some(_) => Err(Error::invalid(format!("axis {axis} is selected twice"))),
        };
        for item in &self.items {
            match item {
                SelectionItem::Positions { head, tail } => {
                    if head.len() + tail.len() > shape.len() {
                        return Err(Error::invalid(format!(
                            "the selection has {} axes, but the array has {}",
                            head.len() + tail.len(),
                            shape.len()
                        )));
                    }
                    for (axis, selection) in head.iter().enumerate() {
                        put(axis, *selection)?;
                    }
                    for (axis, selection) in (shape.len() - tail.len()..).zip(tail) {
                        put(axis, *selection)?;
                    }
                }
                SelectionItem::Named(name, selection) => {
                    put(dimension_axis(dimensions, name)?, *selection)?;
                }
                SelectionItem::Labels { dimension, .. } | SelectionItem::Nearest { dimension, .. } => {
                    return Err(Error::invalid(format!("dimension {dimension} has no coordinate labels")));
                }
            }
        }
        let axes = axes
            .iter()
            .zip(shape)
            .enumerate()
            .map(|(axis, (selection, extent))| selection.unwrap_or(AxisSelection::ALL).resolve(*extent, axis))
            .collect::<Result<_>>()?;
        Ok(Positions { axes })
    }
}

/// The axis of the dimension with this name.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if no dimension or several have this name. The message lists the existing names.
pub fn dimension_axis(dimensions: &[Option<String>], name: &str) -> Result<usize> {
    let mut found = dimensions.iter().enumerate().filter(|(_, own)| own.as_deref() == Some(name));
    match (found.next(), found.next()) {
        (Some((axis, _)), None) => Ok(axis),
        (Some(_), Some(_)) => Err(Error::invalid(format!("several dimensions are named {name}"))),
        (None, _) => {
            let names: Vec<_> = dimensions.iter().flatten().map(String::as_str).collect();
            Err(Error::invalid(if names.is_empty() {
                format!("no dimension {name}: the dimensions have no names")
            } else {
                format!("no dimension {name}{}", did_you_mean(name, names.iter().copied()))
            }))
        }
    }
}

/// Evenly spaced positions along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AxisPositions {
    /// The first position.
    pub start: u64,
    /// The number of positions.
    pub count: u64,
    /// The distance from one position to the next. Negative walks backwards; never zero.
    pub step: i64,
    /// Whether the axis stays in the result. An index drops it.
    pub keep: bool,
}

impl AxisPositions {
    /// The lowest and the highest position; meaningless if `count` is 0.
    #[must_use]
    pub const fn ascending(self) -> (u64, u64) {
        let reach = (self.count.saturating_sub(1)).saturating_mul(self.step.unsigned_abs());
        if self.step > 0 { (self.start, self.start + reach) } else { (self.start - reach, self.start) }
    }
}

/// The cells that a selection means in one array: evenly spaced positions along every axis.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Positions {
    /// One per axis of the array, all inside its shape.
    pub axes: SmallVec<[AxisPositions; 4]>,
}

impl Positions {
    /// All cells of an array of this shape.
    #[must_use]
    pub fn whole(shape: &[u64]) -> Self {
        let axes =
            shape.iter().map(|&count| AxisPositions { start: 0, count, step: 1, keep: true }).collect();
        Self { axes }
    }

    /// A box of cells.
    #[must_use]
    pub fn region(region: &Region) -> Self {
        let axis = |(&start, &count): (&u64, &u64)| AxisPositions { start, count, step: 1, keep: true };
        Self { axes: region.start.iter().zip(&region.shape).map(axis).collect() }
    }

    /// The shape of the result, without the axes that an index dropped.
    #[must_use]
    pub fn shape(&self) -> Extents {
        self.axes.iter().filter(|axis| axis.keep).map(|axis| axis.count).collect()
    }

    /// Positions per axis, including dropped axes.
    #[must_use]
    pub fn counts(&self) -> Extents {
        self.axes.iter().map(|axis| axis.count).collect()
    }

    /// Number of cells; `None` on overflow of `u64`.
    #[must_use]
    pub fn cells(&self) -> Option<u64> {
        crate::product(&self.counts())
    }
}

#[cfg(test)]
mod tests;
