//! Elements in memory, in Arrow's layout: fixed-size elements as plain bytes, others as offsets and bytes, missing ones marked in
//! a bitmap.

mod gather;
mod json;

use bytes::Bytes;

pub use json::{element_to_json, element_to_text, time_text};

use crate::{DType, Element, Error, Extents, Result, product};

/// A sequence of elements of one type. The type is kept separately, in a [`Values`], a schema or a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Elements {
    /// The elements.
    pub data: Data,
    /// Which elements are present; `None` if all are.
    pub validity: Option<Validity>,
}

/// The elements' bytes. The variant depends on the type.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Fixed-size elements, back to back, in native byte order.
    Fixed(Bytes),
    /// Text, bytes and references: element `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    Variable {
        /// One entry more than there are elements, never decreasing.
        offsets: Vec<u64>,
        /// All elements' bytes.
        bytes: Bytes,
    },
    /// Lists: element `i` is `items[offsets[i]..offsets[i + 1]]`.
    List {
        /// One entry more than there are elements, never decreasing.
        offsets: Vec<u64>,
        /// All lists' items.
        items: Box<Elements>,
    },
    /// Fixed-size arrays of a variable-length type: element `i` is the `each` items starting at `i * each`.
    FixedList {
        /// Items in an element.
        each: usize,
        /// All elements' items.
        items: Box<Elements>,
    },
    /// A struct with a variable-length member: one sequence of elements per member.
    Struct {
        /// The number of structs.
        length: usize,
        /// In the order of the type's members.
        members: Vec<Elements>,
    },
}

/// Which elements are present: one bit per element, lowest first, as in Arrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validity {
    bits: Bytes,
    length: usize,
}

impl Validity {
    /// Builds a bitmap from one flag per element.
    pub fn from_flags(flags: impl IntoIterator<Item = bool>) -> Self {
        let (mut bits, mut length) = (Vec::new(), 0);
        for flag in flags {
            if length % 8 == 0 {
                bits.push(0);
            }
            if let (true, Some(last)) = (flag, bits.last_mut()) {
                *last |= 1_u8 << (length % 8);
            }
            length += 1;
        }
        Self { bits: bits.into(), length }
    }

    /// Returns true if element `index` is present.
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        index < self.length && self.bits[index / 8] >> (index % 8) & 1 == 1
    }

    /// One bit per element, lowest first.
    #[must_use]
    pub const fn bits(&self) -> &Bytes {
        &self.bits
    }

    /// The number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Returns true if there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The number of missing elements.
    #[must_use]
    pub fn missing(&self) -> usize {
        (0..self.length).filter(|&index| !self.get(index)).count()
    }
}

impl Elements {
    /// Fixed-size elements, none missing.
    pub fn fixed(bytes: impl Into<Bytes>) -> Self {
        Self { data: Data::Fixed(bytes.into()), validity: None }
    }

    /// Texts or byte strings, none missing.
    pub fn variable<T: AsRef<[u8]>>(items: impl IntoIterator<Item = T>) -> Self {
        let (mut offsets, mut bytes) = (vec![0], Vec::new());
        for item in items {
            bytes.extend_from_slice(item.as_ref());
            offsets.push(bytes.len() as u64);
        }
        Self { data: Data::Variable { offsets, bytes: bytes.into() }, validity: None }
    }

    /// Replaces the validity bitmap.
    #[must_use]
    pub fn with_validity(mut self, validity: Option<Validity>) -> Self {
        self.validity = validity;
        self
    }

    /// No elements of this type.
    #[must_use]
    pub fn empty(dtype: &DType) -> Self {
        let none = |dtype: &DType| Box::new(Self::empty(dtype));
        let data = match dtype {
            fixed if fixed.is_fixed() => Data::Fixed(Bytes::new()),
            DType::List(base) => Data::List { offsets: vec![0], items: none(base) },
            DType::Array(base, shape) => Data::FixedList { each: shape.iter().product(), items: none(base) },
            DType::Struct(fields) => Data::Struct {
                length: 0,
                members: fields.members.iter().map(|member| Self::empty(&member.dtype)).collect(),
            },
            _ => Data::Variable { offsets: vec![0], bytes: Bytes::new() },
        };
        Self { data, validity: None }
    }

    /// One element of this type with value zero: an empty text, an empty list.
    #[must_use]
    pub fn zero(dtype: &DType) -> Self {
        let data = match dtype {
            DType::List(base) => Data::List { offsets: vec![0, 0], items: Box::new(Self::empty(base)) },
            DType::Array(base, shape) if !base.is_fixed() => {
                let each = shape.iter().product();
                let zero = Self::zero(base);
                let items =
                    Self::gather(base, &[&zero], &vec![(0, 0); each]).unwrap_or_else(|_| Self::empty(base));
                Data::FixedList { each, items: Box::new(items) }
            }
            DType::Struct(fields) if !dtype.is_fixed() => Data::Struct {
                length: 1,
                members: fields.members.iter().map(|member| Self::zero(&member.dtype)).collect(),
            },
            _ => match dtype.size() {
                Some(size) => Data::Fixed(vec![0; size].into()),
                None => Data::Variable { offsets: vec![0, 0], bytes: Bytes::new() },
            },
        };
        Self { data, validity: None }
    }

    /// The number of elements of this type.
    #[must_use]
    pub fn len(&self, dtype: &DType) -> usize {
        match &self.data {
            Data::Fixed(bytes) => bytes.len().checked_div(dtype.size().unwrap_or(0)).unwrap_or(0),
            Data::Variable { offsets, .. } | Data::List { offsets, .. } => offsets.len().saturating_sub(1),
            Data::FixedList { each, items } => {
                let base = if let DType::Array(base, _) = dtype { base } else { dtype };
                items.len(base).checked_div(*each).unwrap_or(0)
            }
            Data::Struct { length, .. } => *length,
        }
    }

    /// The bytes of fixed-size elements.
    #[must_use]
    pub const fn as_fixed(&self) -> Option<&Bytes> {
        match &self.data {
            Data::Fixed(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The bytes of variable-length element `index`; `None` if it is missing or has another layout.
    #[must_use]
    pub fn variable_at(&self, index: usize) -> Option<&[u8]> {
        let Data::Variable { offsets, bytes } = &self.data else { return None };
        let (start, end) = (*offsets.get(index)? as usize, *offsets.get(index + 1)? as usize);
        if self.is_missing(index) { None } else { bytes.get(start..end) }
    }

    /// The approximate number of bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let offsets = |offsets: &Vec<u64>| offsets.len() as u64 * 8;
        let data = match &self.data {
            Data::Fixed(bytes) => bytes.len() as u64,
            Data::Variable { offsets: own, bytes } => offsets(own) + bytes.len() as u64,
            Data::List { offsets: own, items } => offsets(own) + items.bytes(),
            Data::FixedList { items, .. } => items.bytes(),
            Data::Struct { members, .. } => members.iter().map(Self::bytes).sum(),
        };
        data + self.validity.as_ref().map_or(0, |validity| validity.bits.len() as u64)
    }

    /// Returns true if element `index` is missing.
    #[must_use]
    pub fn is_missing(&self, index: usize) -> bool {
        self.validity.as_ref().is_some_and(|validity| !validity.get(index))
    }
}

/// An array of values in memory, such as the result of a read or an attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// The type of each element.
    pub dtype: DType,
    /// Elements per dimension; empty for a single value.
    pub shape: Extents,
    /// The elements in C order.
    pub elements: Elements,
}

impl Values {
    /// Combines type, shape and elements.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the number of elements does not match the shape.
    pub fn new(dtype: DType, shape: &[u64], elements: Elements) -> Result<Self> {
        let shape = Extents::from_slice(shape);
        let length = elements.len(&dtype) as u64;
        // Elements of zero bytes (an empty string type) cannot be counted.
        if product(&shape) != Some(length) && dtype.size() != Some(0) {
            return Err(Error::invalid(format!(
                "{length} elements of {dtype} do not match the shape {shape:?}"
            )));
        }
        Ok(Self { dtype, shape, elements })
    }

    /// A single number, text or other value.
    pub fn scalar(dtype: DType, elements: Elements) -> Result<Self> {
        Self::new(dtype, &[], elements)
    }

    /// A single text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { dtype: DType::String, shape: Extents::new(), elements: Elements::variable([text]) }
    }

    /// A single text as an element of this type; `None` if the type does not hold it.
    #[must_use]
    pub fn text_of_type(text: &str, dtype: &DType) -> Option<Self> {
        let elements = match dtype {
            DType::String => Elements::variable([text]),
            DType::FixedBytes(size) if text.len() <= *size => {
                let mut bytes = text.as_bytes().to_vec();
                bytes.resize(*size, 0);
                Elements::fixed(bytes)
            }
            DType::FixedText(points) if text.chars().count() <= *points => {
                let mut bytes: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_ne_bytes()).collect();
                bytes.resize(points * 4, 0);
                Elements::fixed(bytes)
            }
            _ => return None,
        };
        Self::scalar(dtype.clone(), elements).ok()
    }

    /// Marks every NaN as missing.
    #[must_use]
    pub fn with_nan_missing(mut self) -> Self {
        let Some(bytes) = self.elements.as_fixed() else { return self };
        let own = |index: usize| !self.elements.is_missing(index);
        let there: Vec<bool> = match self.dtype {
            DType::Float16 => bytes
                .chunks_exact(2)
                .map(|bytes| !bytemuck::pod_read_unaligned::<half::f16>(bytes).is_nan())
                .collect(),
            DType::Float32 => bytes
                .chunks_exact(4)
                .map(|bytes| !bytemuck::pod_read_unaligned::<f32>(bytes).is_nan())
                .collect(),
            DType::Float64 => bytes
                .chunks_exact(8)
                .map(|bytes| !bytemuck::pod_read_unaligned::<f64>(bytes).is_nan())
                .collect(),
            _ => return self,
        };
        let there = there.iter().enumerate().map(|(index, there)| *there && own(index));
        self.elements.validity = Some(Validity::from_flags(there));
        self
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        product(&self.shape).and_then(|cells| usize::try_from(cells).ok()).unwrap_or(0)
    }

    /// Returns true if there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as a slice of numbers, without a copy.
    ///
    /// ```
    /// use hyperslab_core::{DType, Elements, Values};
    /// let values = Values::new(DType::Int16, &[2], Elements::fixed(vec![1, 0, 2, 0]))?;
    /// # #[cfg(target_endian = "little")]
    /// assert_eq!(values.as_slice::<i16>(), Some(&[1, 2][..]));
    /// # Ok::<(), hyperslab_core::Error>(())
    /// ```
    ///
    /// Returns `None` if elements have another type, or are unaligned in a mapped file; use [`to_vec`](Self::to_vec) to copy
    /// them.
    #[must_use]
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if !T::is(&self.dtype) {
            return None;
        }
        match self.elements.as_fixed()? {
            // An empty slice has no alignment to check.
            none if none.is_empty() => Some(&[]),
            bytes => bytemuck::try_cast_slice(bytes).ok(),
        }
    }

    /// Copies the elements into a vector of numbers.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if elements have another type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let bytes = self.elements.as_fixed().filter(|_| T::is(&self.dtype));
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(format!("elements of type {} cannot be read as {}", self.dtype, T::NAME))
        })?;
        let mut numbers = vec![T::zeroed(); bytes.len() / size_of::<T>().max(1)];
        let used = numbers.len() * size_of::<T>();
        bytemuck::cast_slice_mut::<T, u8>(&mut numbers).copy_from_slice(&bytes[..used]);
        Ok(numbers)
    }
}
