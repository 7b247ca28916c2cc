//! Results as arrays of the `ndarray` crate.

use hyperslab_core::{Element, Error, Result, Selection, Values};
use ndarray::{ArrayD, ArrayViewD, IxDyn};

use crate::ArrayReader;

impl ArrayReader {
    /// Reads a selection as an array of the `ndarray` crate. It has the dimensions of the result: an integer in the selection
    /// removes one.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("field.npy");
    /// # let values = hyperslab::Values::new(hyperslab::DType::UInt8, &[2, 3], hyperslab::Elements::fixed(vec![0, 1, 2, 3, 4, 5]))?;
    /// # hyperslab::export::write(&values, &path, false)?;
    /// let array = hyperslab::open(&path)?.array("/")?;
    /// let part = array.read_ndarray::<u8>(&"[:, ::2]".parse()?)?;
    /// assert_eq!(part, ndarray::arr2(&[[0, 2], [3, 5]]).into_dyn());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`read_vec`](Self::read_vec).
    pub fn read_ndarray<T: Element>(&self, selection: &Selection) -> Result<ArrayD<T>> {
        let shape = extents(&self.resolve(selection)?.shape())?;
        ArrayD::from_shape_vec(IxDyn(&shape), self.read_vec(selection)?).map_err(|error| mismatch(&error))
    }
}

/// A view of values as an array of the `ndarray` crate, without a copy. `None` if the elements have another type, or are
/// unaligned in a mapped file; use [`Values::to_vec`] to copy them.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for a shape that does not fit in memory.
pub fn view<T: Element>(values: &Values) -> Result<Option<ArrayViewD<'_, T>>> {
    let Some(elements) = values.as_slice::<T>() else { return Ok(None) };
    let shape = extents(&values.shape)?;
    ArrayViewD::from_shape(IxDyn(&shape), elements).map(Some).map_err(|error| mismatch(&error))
}

fn extents(shape: &[u64]) -> Result<Vec<usize>> {
    let narrow = |extent: &u64| usize::try_from(*extent);
    shape.iter().map(narrow).collect::<std::result::Result<_, _>>().map_err(|error| mismatch(&error))
}

fn mismatch(error: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("the result is not an ndarray array: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_core::{DType, Elements};

    #[test]
    fn views_have_the_shape_and_check_the_type() -> Result<()> {
        let values = Values::new(DType::UInt8, &[2, 1, 3], Elements::fixed(vec![0, 1, 2, 3, 4, 5]))?;
        let view = view::<u8>(&values)?.expect("elements of one byte are aligned");
        assert_eq!(view.shape(), [2, 1, 3]);
        assert_eq!(view[[1, 0, 2]], 5);
        assert!(super::view::<i8>(&values)?.is_none());
        Ok(())
    }

    #[test]
    fn empty_results_keep_their_shape() -> Result<()> {
        let values = Values::new(DType::Float64, &[0, 4], Elements::fixed(Vec::new()))?;
        assert_eq!(view::<f64>(&values)?.map(|view| view.shape().to_vec()), Some(vec![0, 4]));
        Ok(())
    }
}
