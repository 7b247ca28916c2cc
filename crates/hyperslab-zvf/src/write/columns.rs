//! Columns of vertices and links, as bytes of records.

use hyperslab_core::{DType, Error, Result, Values, element_to_json};

/// An attribute with a fixed-size row for each vertex or link.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// The type of a value.
    pub dtype: DType,
    /// The number of values in a row; `None` for a plain column.
    pub width: Option<u64>,
}

impl ColumnSpec {
    /// The column for these values.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if they are not a column of numbers.
    pub fn of(name: &str, values: &Values) -> Result<Self> {
        let width = match values.shape.as_slice() {
            [_] => None,
            [_, width] if *width > 0 => Some(*width),
            shape => {
                return Err(Error::invalid(format!(
                    "the attribute {name:?} cannot have the shape {shape:?}"
                )));
            }
        };
        if crate::meta::dtype(&values.dtype.to_string()).is_none() {
            let problem = format!("the attribute {name:?} must contain numbers, not {}", values.dtype);
            return Err(Error::invalid(problem));
        }
        Ok(Self { name: name.to_owned(), dtype: values.dtype.clone(), width })
    }

    pub(crate) fn row_size(&self) -> usize {
        self.dtype.size().unwrap_or(1) * self.width.unwrap_or(1) as usize
    }

    /// The bytes of the rows, after checking them against the column.
    fn bytes<'a>(&self, values: &'a Values, rows: usize) -> Result<&'a [u8]> {
        let own = Self::of(&self.name, values)?;
        let missing = values.elements.validity.as_ref().is_some_and(|validity| validity.missing() > 0);
        match values.elements.as_fixed() {
            Some(bytes) if own == *self && !missing && bytes.len() == rows * self.row_size() => Ok(bytes),
            _ => Err(Error::invalid(format!(
                "the attribute {:?} needs {rows} rows of {}, none missing; given are {:?} of {}",
                self.name, self.dtype, values.shape, values.dtype
            ))),
        }
    }
}

/// The rows of several columns.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    columns: Vec<(&'a [u8], usize)>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(specs: &[ColumnSpec], given: &'a [(String, Values)], rows: usize) -> Result<Self> {
        if let Some((name, _)) = given.iter().find(|(name, _)| specs.iter().all(|spec| spec.name != *name)) {
            let known: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
            return Err(Error::invalid(format!(
                "the attribute {name:?} is not one of the store's: [{}]",
                known.join(", ")
            )));
        }
        let one = |spec: &ColumnSpec| {
            let values = given.iter().find(|(name, _)| *name == spec.name);
            let (_, values) =
                values.ok_or_else(|| Error::invalid(format!("the attribute {:?} is missing", spec.name)))?;
            Ok((spec.bytes(values, rows)?, spec.row_size()))
        };
        Ok(Self { columns: specs.iter().map(one).collect::<Result<_>>()? })
    }

    /// Appends a row, little-endian.
    pub(crate) fn append(&self, row: usize, specs: &[ColumnSpec], to: &mut Vec<u8>) {
        for ((bytes, size), spec) in self.columns.iter().zip(specs) {
            let start = to.len();
            to.extend_from_slice(&bytes[row * size..(row + 1) * size]);
            swap_little_endian(&spec.dtype, &mut to[start..]);
        }
    }
}

/// Converts numbers between the native and little-endian byte orders.
pub(crate) fn swap_little_endian(dtype: &DType, bytes: &mut [u8]) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(dtype.swap_unit().unwrap_or(1)).for_each(<[u8]>::reverse);
    }
}

/// Positions in the type that is stored: 32- or 64-bit floats.
#[derive(Debug)]
pub(crate) enum Positions<'a> {
    F32(&'a [u8]),
    F64(&'a [u8]),
    Made(Vec<f32>),
}

impl<'a> Positions<'a> {
    pub(crate) fn new(values: &'a Values, rank: usize, dtype: &DType) -> Result<Self> {
        if values.shape.len() != 2 || values.shape[1] != rank as u64 {
            return Err(Error::invalid(format!(
                "vertices of shape {:?} do not have {rank} axes",
                values.shape
            )));
        }
        if stored_dtype(&values.dtype)? != *dtype {
            return Err(Error::invalid(format!(
                "vertices of type {} cannot be added to vertices of {dtype}",
                values.dtype
            )));
        }
        let bytes = values.elements.as_fixed().ok_or_else(|| Error::invalid("vertices are not numbers"))?;
        Ok(match &values.dtype {
            DType::Float32 => Self::F32(bytes),
            DType::Float64 => Self::F64(bytes),
            other => {
                let number = |index| element_to_json(other, &values.elements, index).as_f64();
                Self::Made(
                    (0..values.len()).map(|index| number(index).map_or(f32::NAN, |at| at as f32)).collect(),
                )
            }
        })
    }

    /// The coordinate with this index, counted over all vertices.
    pub(crate) fn at(&self, index: usize) -> f64 {
        match self {
            Self::F32(bytes) => {
                bytes.as_chunks::<4>().0.get(index).map_or(f64::NAN, |word| f32::from_ne_bytes(*word).into())
            }
            Self::F64(bytes) => {
                bytes.as_chunks::<8>().0.get(index).map_or(f64::NAN, |word| f64::from_ne_bytes(*word))
            }
            Self::Made(made) => made.get(index).map_or(f64::NAN, |at| f64::from(*at)),
        }
    }

    /// Appends the position of a vertex, little-endian.
    pub(crate) fn append(&self, vertex: usize, rank: usize, to: &mut Vec<u8>) {
        match self {
            Self::F32(bytes) if cfg!(target_endian = "little") => {
                to.extend_from_slice(&bytes[vertex * rank * 4..(vertex + 1) * rank * 4]);
            }
            Self::F64(bytes) if cfg!(target_endian = "little") => {
                to.extend_from_slice(&bytes[vertex * rank * 8..(vertex + 1) * rank * 8]);
            }
            Self::F64(_) => {
                (0..rank).for_each(|axis| to.extend(self.at(vertex * rank + axis).to_le_bytes()));
            }
            _ => (0..rank).for_each(|axis| to.extend((self.at(vertex * rank + axis) as f32).to_le_bytes())),
        }
    }
}

/// The type in which positions of this type are stored.
pub(crate) fn stored_dtype(dtype: &DType) -> Result<DType> {
    match dtype {
        DType::Float64 => Ok(DType::Float64),
        other if other.is_numeric() => Ok(DType::Float32),
        other => Err(Error::invalid(format!("vertices must be numbers, not {other}"))),
    }
}
