//! Converts elements to types that a target has, and back.

use std::sync::Arc;

use hyperslab_core::{
    DType, Data, Elements, Error, Result, StoredClass, StoredType, StructType, TextPadding,
};

use crate::rows::members;

/// How elements of a type are stored: one sequence of elements per leaf.
#[derive(Debug, Clone)]
pub(crate) enum Form {
    /// Not a struct: one leaf.
    Leaf(Leaf),
    /// A struct: the leaves of its members.
    Struct(Arc<StructType>, Vec<Form>),
}

/// One sequence of elements of a type that the target has.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    /// The original type.
    pub(crate) from: DType,
    /// The stored type.
    pub(crate) dtype: DType,
    steps: Vec<Step>,
}

/// One conversion step.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// The same bytes as elements of a smaller type along extra axes.
    Split(Vec<u64>),
    /// Signed bytes as 16-bit integers.
    WidenInteger,
    /// Half floats as single floats.
    WidenFloat,
    /// Text as bytes along an extra axis, padded with zeros.
    Pad(u64),
    /// Text as text of a fixed number of code points.
    Fix(u64),
    /// Text of this many code points as UTF-8, padded with zeros.
    Utf8(usize),
    /// Text of a fixed number of code points as text of any length.
    Loosen(u64),
    /// Bytes of any length as lists of unsigned bytes.
    List,
}

/// The size in bytes of this many code points in UTF-8, and at least one.
const fn utf8_size(points: usize) -> usize {
    4_usize.saturating_mul(if points == 0 { 1 } else { points })
}

impl Form {
    /// The form of elements of this type in a target; `None` if there is none. Text has length zero until it is
    /// [measured](Self::measure).
    pub(crate) fn new(dtype: &DType, holds: &dyn Fn(&DType) -> bool) -> Option<Self> {
        let (mut own, mut steps) = (dtype.clone(), Vec::new());
        while !holds(&own) {
            if let (DType::Struct(fields), true) = (&own, steps.is_empty()) {
                let forms = fields.members.iter().map(|member| Self::new(&member.dtype, holds));
                let forms = forms.collect::<Option<Vec<_>>>()?;
                return (!forms.is_empty()).then(|| Self::Struct(Arc::clone(fields), forms));
            }
            let list = DType::List(Arc::new(DType::UInt8));
            let (step, next) = match &own {
                DType::String if holds(&DType::FixedText(1)) => (Step::Fix(1), DType::FixedText(1)),
                DType::Bytes if holds(&list) => (Step::List, list),
                DType::Opaque(opaque) if holds(&DType::FixedBytes(opaque.size)) => {
                    (Step::Split(Vec::new()), DType::FixedBytes(opaque.size))
                }
                // Fixed bytes are text only in a format that has no bytes of any length.
                DType::FixedText(points)
                    if holds(&DType::String)
                        && (holds(&DType::Bytes) || !holds(&DType::FixedBytes(utf8_size(*points)))) =>
                {
                    (Step::Loosen(*points as u64), DType::String)
                }
                DType::FixedText(points) if holds(&DType::FixedBytes(utf8_size(*points))) => {
                    (Step::Utf8(*points), DType::FixedBytes(utf8_size(*points)))
                }
                other => step(other)?,
            };
            steps.push(step);
            own = next;
        }
        Some(Self::Leaf(Leaf { from: dtype.clone(), dtype: own, steps }))
    }

    /// Returns true if elements are stored unchanged.
    pub(crate) fn is_identity(&self) -> bool {
        matches!(self, Self::Leaf(leaf) if leaf.steps.is_empty())
    }

    /// Returns true if text lengths must be measured.
    pub(crate) fn has_text(&self) -> bool {
        self.leaves()
            .iter()
            .any(|(_, leaf)| leaf.steps.iter().any(|step| matches!(step, Step::Pad(_) | Step::Fix(_))))
    }

    /// The leaves, and the names of the members that lead to each.
    pub(crate) fn leaves(&self) -> Vec<(Vec<&str>, &Leaf)> {
        match self {
            Self::Leaf(leaf) => vec![(Vec::new(), leaf)],
            Self::Struct(fields, forms) => {
                let named = fields.members.iter().zip(forms);
                named
                    .flat_map(|(member, form)| {
                        form.leaves().into_iter().map(|(mut path, leaf)| {
                            path.insert(0, &member.name);
                            (path, leaf)
                        })
                    })
                    .collect()
            }
        }
    }

    fn leaves_mut(&mut self) -> Vec<&mut Leaf> {
        match self {
            Self::Leaf(leaf) => vec![leaf],
            Self::Struct(_, forms) => forms.iter_mut().flat_map(Self::leaves_mut).collect(),
        }
    }

    /// Makes room for the texts among these elements.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](Error::Unsupported) for text that ends with a zero byte, which would be lost in the padding.
    pub(crate) fn measure(&mut self, elements: &Elements) -> Result<()> {
        match self {
            Self::Leaf(leaf) => leaf.measure(elements),
            Self::Struct(fields, forms) => {
                let held = members(fields, elements)?;
                forms.iter_mut().zip(&held).try_for_each(|(form, held)| form.measure(held))
            }
        }
    }

    /// Sets the text length of a leaf.
    pub(super) fn set_text_length(&mut self, leaf: usize, length: u64) {
        if let Some(leaf) = self.leaves_mut().into_iter().nth(leaf) {
            for step in &mut leaf.steps {
                if let Step::Pad(own) = step {
                    *own = length;
                }
            }
        }
    }

    /// Gives texts that are all empty room for one byte, because an axis cannot be empty.
    pub(crate) fn fill_empty_text(&mut self) {
        for leaf in self.leaves_mut() {
            if let Some(Step::Pad(length)) = leaf.steps.first_mut() {
                *length = (*length).max(1);
            }
        }
    }

    /// Encodes elements as the elements of each leaf. Validity is not kept.
    pub(crate) fn encode(&self, elements: &Elements) -> Result<Vec<Elements>> {
        match self {
            Self::Leaf(leaf) => Ok(vec![leaf.encode(elements)?]),
            Self::Struct(fields, forms) => {
                let held = members(fields, elements)?;
                let encoded = forms.iter().zip(&held).map(|(form, held)| form.encode(held));
                Ok(encoded.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
            }
        }
    }

    /// Decodes `count` elements from those of each leaf.
    pub(crate) fn decode(
        &self,
        leaves: &mut dyn Iterator<Item = Elements>,
        count: usize,
    ) -> Result<Elements> {
        match self {
            Self::Leaf(leaf) => {
                let stored = leaves.next().ok_or_else(|| Error::invalid("a leaf of a form is missing"))?;
                leaf.decode(stored, count)
            }
            Self::Struct(fields, forms) => {
                let held = forms.iter().map(|form| form.decode(leaves, count)).collect::<Result<Vec<_>>>()?;
                join(fields, held, count)
            }
        }
    }
}

/// Assembles structs from their members.
fn join(fields: &Arc<StructType>, held: Vec<Elements>, count: usize) -> Result<Elements> {
    let dtype = DType::Struct(Arc::clone(fields));
    let Some(size) = dtype.size() else {
        return Ok(Elements { data: Data::Struct { length: count, members: held }, validity: None });
    };
    let bytes =
        count.checked_mul(size).ok_or_else(|| Error::invalid("the structs are larger than memory"))?;
    let mut buffer = hyperslab_core::Buffer::zeroed(bytes)?;
    for (member, held) in fields.members.iter().zip(&held) {
        let own = member.dtype.size().unwrap_or(0);
        let held = held.as_fixed().filter(|held| own > 0 && held.len() == count * own);
        let Some(held) = held else { continue };
        for (out, value) in buffer.as_mut_slice().chunks_exact_mut(size).zip(held.chunks_exact(own)) {
            out[member.offset..member.offset + own].copy_from_slice(value);
        }
    }
    Ok(Elements::fixed(buffer.freeze()))
}

/// The next step for a type that the target lacks, and the resulting type.
fn step(dtype: &DType) -> Option<(Step, DType)> {
    let split = |shape: Vec<u64>, to| Some((Step::Split(shape), to));
    match dtype {
        DType::Bool => split(Vec::new(), DType::UInt8),
        DType::Int8 => Some((Step::WidenInteger, DType::Int16)),
        DType::Float16 => Some((Step::WidenFloat, DType::Float32)),
        DType::DateTime(_) | DType::Duration(_) => split(Vec::new(), DType::Int64),
        DType::Enum(named) => split(Vec::new(), named.base.clone()),
        DType::Complex64 => split(vec![2], DType::Float32),
        DType::Complex128 => split(vec![2], DType::Float64),
        DType::Float128 => split(vec![16], DType::UInt8),
        DType::FixedBytes(size) => split(vec![*size as u64], DType::UInt8),
        DType::FixedText(points) => split(vec![*points as u64], DType::UInt32),
        DType::Opaque(opaque) => split(vec![opaque.size as u64], DType::UInt8),
        DType::Array(base, shape) if base.is_fixed() => {
            split(shape.iter().map(|extent| *extent as u64).collect(), (**base).clone())
        }
        DType::String | DType::Bytes => Some((Step::Pad(0), DType::UInt8)),
        _ => None,
    }
}

impl Leaf {
    /// The extents of the extra axes, which follow those of the array.
    pub(crate) fn axes(&self) -> Vec<u64> {
        let axes = self.steps.iter().flat_map(|step| match step {
            Step::Split(axes) => axes.clone(),
            Step::Pad(length) => vec![*length],
            Step::WidenInteger
            | Step::WidenFloat
            | Step::Fix(_)
            | Step::Utf8(_)
            | Step::Loosen(_)
            | Step::List => Vec::new(),
        });
        axes.collect()
    }

    /// The encoding of the stored elements, if the type alone does not determine it.
    pub(crate) fn stored_type(&self) -> Option<Arc<StoredType>> {
        let Some(Step::Utf8(points)) = self.steps.last() else { return None };
        let class = StoredClass::String { padding: TextPadding::Nul, utf8: true };
        Some(Arc::new(StoredType { class, size: utf8_size(*points) }))
    }

    /// Names for these axes: a name that other programs know, or one that describes the axis and its length.
    pub(crate) fn axis_names(&self) -> Vec<String> {
        let name = |extent: &u64| match self.from {
            DType::Complex64 | DType::Complex128 => "complex".to_owned(),
            DType::String | DType::Bytes | DType::FixedText(_) | DType::FixedBytes(_) => {
                format!("string{extent}")
            }
            _ => format!("axis{extent}"),
        };
        self.axes().iter().map(name).collect()
    }

    /// The number of stored elements per element.
    pub(crate) fn each(&self) -> usize {
        self.axes().iter().product::<u64>() as usize
    }

    fn measure(&mut self, elements: &Elements) -> Result<()> {
        let (length, points) = match self.steps.first_mut() {
            Some(Step::Pad(length)) => (length, false),
            Some(Step::Fix(length)) => (length, true),
            _ => return Ok(()),
        };
        let Data::Variable { offsets, bytes } = &elements.data else { return Ok(()) };
        for pair in offsets.windows(2) {
            let text = bytes.get(pair[0] as usize..pair[1] as usize).unwrap_or_default();
            if text.last() == Some(&0) {
                return Err(Error::unsupported(
                    "text",
                    "storing text that ends with a zero byte as fixed-length bytes",
                ));
            }
            // Count the bytes that start a code point.
            let own =
                if points { text.iter().filter(|byte| **byte & 0xc0 != 0x80).count() } else { text.len() };
            *length = (*length).max(own as u64);
        }
        if points {
            self.dtype = DType::FixedText(*length as usize);
        }
        Ok(())
    }

    fn encode(&self, elements: &Elements) -> Result<Elements> {
        let mut own = Elements { data: elements.data.clone(), validity: None };
        let count = own.len(&self.from);
        for step in &self.steps {
            own = match step {
                Step::Split(_) => own,
                Step::WidenInteger => {
                    map::<1, 2>(&own, |byte| Some(i16::from(i8::from_ne_bytes(byte)).to_ne_bytes()))?
                }
                Step::WidenFloat => {
                    map::<2, 4>(&own, |half| Some(half::f16::from_ne_bytes(half).to_f32().to_ne_bytes()))?
                }
                Step::Pad(length) => pad(&own, *length as usize)?,
                Step::Fix(length) => fix(&own, *length as usize)?,
                Step::Utf8(points) => to_utf8(&own, *points)?,
                Step::Loosen(length) => loosen(&own, *length as usize, count)?,
                Step::List => to_lists(own)?,
            };
        }
        Ok(own)
    }

    fn decode(&self, stored: Elements, count: usize) -> Result<Elements> {
        let mut own = stored;
        for step in self.steps.iter().rev() {
            own = match step {
                Step::Split(_) => own,
                Step::WidenInteger => map::<2, 1>(&own, |wide| {
                    i8::try_from(i16::from_ne_bytes(wide)).ok().map(i8::to_ne_bytes)
                })?,
                Step::WidenFloat => map::<4, 2>(&own, |wide| {
                    let wide = f32::from_ne_bytes(wide);
                    let half = half::f16::from_f32(wide);
                    (half.to_f32() == wide || wide.is_nan()).then(|| half.to_ne_bytes())
                })?,
                Step::Pad(length) => unpad(&own, *length as usize, count)?,
                Step::Fix(length) => unfix(&own, *length as usize, count)?,
                Step::Utf8(points) => from_utf8(&own, *points)?,
                Step::Loosen(length) => fix(&own, *length as usize)?,
                Step::List => from_lists(own)?,
            };
        }
        let size = self.from.size();
        let fits = match (own.as_fixed(), size) {
            (Some(bytes), Some(size)) => size.checked_mul(count) == Some(bytes.len()),
            _ => own.len(&self.from) == count,
        };
        if fits {
            Ok(own)
        } else {
            Err(Error::invalid(format!("the stored elements do not form {count} elements of {}", self.from)))
        }
    }
}

/// Applies a function to every element. The function returns `None` for a value that does not fit.
fn map<const FROM: usize, const TO: usize>(
    elements: &Elements,
    function: impl Fn([u8; FROM]) -> Option<[u8; TO]>,
) -> Result<Elements> {
    let bytes = elements
        .as_fixed()
        .ok_or_else(|| Error::invalid("expected numbers, found variable-length elements"))?;
    let mapped: Option<Vec<[u8; TO]>> =
        bytes.as_chunks::<FROM>().0.iter().map(|element| function(*element)).collect();
    let mapped = mapped.ok_or_else(|| Error::invalid("a stored number does not fit the original type"))?;
    Ok(Elements::fixed(mapped.into_flattened()))
}

fn to_lists(elements: Elements) -> Result<Elements> {
    let Data::Variable { offsets, bytes } = elements.data else {
        return Err(Error::invalid("expected bytes, found fixed-size elements"));
    };
    let items = Box::new(Elements::fixed(bytes));
    Ok(Elements { data: Data::List { offsets, items }, validity: None })
}

fn from_lists(elements: Elements) -> Result<Elements> {
    let no_bytes = || Error::invalid("expected lists of bytes");
    let Data::List { offsets, items } = elements.data else { return Err(no_bytes()) };
    let bytes = items.as_fixed().ok_or_else(no_bytes)?.clone();
    Ok(Elements { data: Data::Variable { offsets, bytes }, validity: None })
}

fn pad(elements: &Elements, length: usize) -> Result<Elements> {
    let Data::Variable { offsets, bytes } = &elements.data else {
        return Err(Error::invalid("expected text, found fixed-size elements"));
    };
    let texts = offsets.len().saturating_sub(1);
    let total =
        texts.checked_mul(length).ok_or_else(|| Error::invalid("the texts are larger than memory"))?;
    let mut padded = hyperslab_core::Buffer::zeroed(total)?;
    for (pair, out) in offsets.windows(2).zip(padded.as_mut_slice().chunks_exact_mut(length.max(1))) {
        let text = bytes.get(pair[0] as usize..pair[1] as usize).unwrap_or_default();
        let out = out.get_mut(..text.len());
        out.ok_or_else(|| Error::invalid("a text became longer while it was copied"))?.copy_from_slice(text);
    }
    Ok(Elements::fixed(padded.freeze()))
}

fn unpad(elements: &Elements, length: usize, count: usize) -> Result<Elements> {
    let bytes = elements
        .as_fixed()
        .ok_or_else(|| Error::invalid("expected padded text, found variable-length text"))?;
    if length.checked_mul(count) != Some(bytes.len()) {
        return Err(Error::invalid(format!("{} bytes are not {count} texts of {length}", bytes.len())));
    }
    let texts = (0..count).map(|index| {
        let text = &bytes[index * length..(index + 1) * length];
        let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        &text[..end]
    });
    Ok(Elements::variable(texts))
}

fn fix(elements: &Elements, length: usize) -> Result<Elements> {
    let Data::Variable { offsets, bytes } = &elements.data else {
        return Err(Error::invalid("expected text, found fixed-size elements"));
    };
    let mut fixed = Vec::with_capacity(offsets.len().saturating_sub(1).saturating_mul(4 * length));
    for pair in offsets.windows(2) {
        let text = bytes.get(pair[0] as usize..pair[1] as usize).unwrap_or_default();
        let text = std::str::from_utf8(text).map_err(|_| Error::invalid("the text is not UTF-8"))?;
        let end = fixed.len() + 4 * length;
        fixed.extend(text.chars().flat_map(|point| u32::from(point).to_ne_bytes()));
        if fixed.len() > end {
            return Err(Error::invalid(format!("a text of more than {length} code points")));
        }
        fixed.resize(end, 0);
    }
    Ok(Elements::fixed(fixed))
}

/// Like [`unfix`], but an invalid code point is an error instead of being replaced.
fn loosen(elements: &Elements, length: usize, count: usize) -> Result<Elements> {
    let points = elements.as_fixed().map(|bytes| bytes.as_chunks::<4>().0).unwrap_or_default();
    let invalid =
        points.iter().map(|point| u32::from_ne_bytes(*point)).find(|point| char::from_u32(*point).is_none());
    match invalid {
        Some(point) => Err(Error::unsupported("text", format!("storing the code point {point:#x} as UTF-8"))),
        None => unfix(elements, length, count),
    }
}

fn unfix(elements: &Elements, length: usize, count: usize) -> Result<Elements> {
    let bytes = elements.as_fixed().filter(|bytes| length.checked_mul(4 * count) == Some(bytes.len()));
    let bytes = bytes.ok_or_else(|| Error::invalid(format!("not {count} texts of {length} code points")))?;
    let points = bytes.as_chunks::<4>().0;
    let texts = (0..count).map(|index| {
        let own = points[index * length..(index + 1) * length].iter().map(|point| u32::from_ne_bytes(*point));
        let text: String =
            own.map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        text.trim_end_matches('\0').to_owned()
    });
    Ok(Elements::variable(texts))
}

fn to_utf8(elements: &Elements, points: usize) -> Result<Elements> {
    let fixed = elements
        .as_fixed()
        .ok_or_else(|| Error::invalid("expected fixed-length text, found other elements"))?;
    if points == 0 {
        return Err(Error::unsupported("text", "storing text of zero code points as fixed-length bytes"));
    }
    let mut utf8 = Vec::with_capacity(fixed.len());
    for text in fixed.chunks_exact(4 * points) {
        let end = utf8.len() + utf8_size(points);
        for point in text.as_chunks::<4>().0 {
            let point = char::from_u32(u32::from_ne_bytes(*point))
                .ok_or_else(|| Error::invalid("a code point of a text is not Unicode"))?;
            utf8.extend_from_slice(point.encode_utf8(&mut [0; 4]).as_bytes());
        }
        utf8.resize(end, 0);
    }
    Ok(Elements::fixed(utf8))
}

fn from_utf8(elements: &Elements, points: usize) -> Result<Elements> {
    let utf8 = elements.as_fixed().ok_or_else(|| Error::invalid("expected bytes, found other elements"))?;
    let mut fixed = Vec::with_capacity(utf8.len());
    for bytes in utf8.chunks_exact(utf8_size(points)) {
        let text = std::str::from_utf8(bytes).map_err(|_| Error::invalid("a stored text is not UTF-8"))?;
        let end = fixed.len() + 4 * points;
        let text = text.trim_end_matches('\0');
        fixed.extend(text.chars().flat_map(|point| u32::from(point).to_ne_bytes()));
        if fixed.len() > end {
            return Err(Error::invalid(format!("a stored text has more than {points} code points")));
        }
        fixed.resize(end, 0);
    }
    Ok(Elements::fixed(fixed))
}

#[cfg(test)]
mod tests {
    use hyperslab_core::EnumType;

    use super::*;

    fn few(dtype: &DType) -> bool {
        matches!(
            dtype,
            DType::UInt8 | DType::Int16 | DType::UInt32 | DType::Int64 | DType::Float32 | DType::Float64
        )
    }

    fn there_and_back(dtype: &DType, elements: &Elements, leaves: usize) {
        let mut form = Form::new(dtype, &few).unwrap();
        form.measure(elements).unwrap();
        let stored = form.encode(elements).unwrap();
        assert_eq!(stored.len(), leaves, "{dtype}");
        let count = elements.len(dtype);
        for ((_, leaf), stored) in form.leaves().iter().zip(&stored) {
            assert!(few(&leaf.dtype));
            assert_eq!(stored.len(&leaf.dtype), count * leaf.each(), "{dtype}");
        }
        assert_eq!(&form.decode(&mut stored.into_iter(), count).unwrap(), elements, "{dtype}");
    }

    #[test]
    fn elements_survive_a_round_trip() {
        let state: DType =
            EnumType::new(DType::Int8, vec![("ON".to_owned(), 1), ("OFF".to_owned(), -1)]).into();
        let fixed = [
            (DType::Bool, vec![1, 0, 1]),
            (DType::Int8, vec![0x80, 0x7f, 0]),
            (state, vec![1, 255]),
            (DType::Complex64, (0..24).collect()),
            (DType::FixedBytes(3), b"ab\0xyz".to_vec()),
            (DType::FixedText(2), vec![7; 16]),
            (DType::Array(Arc::new(DType::Float16), vec![2, 2]), vec![0, 0x3c, 0, 0xbc, 1, 0, 0, 0]),
        ];
        for (dtype, bytes) in fixed {
            there_and_back(&dtype, &Elements::fixed(bytes), 1);
        }
        there_and_back(&DType::String, &Elements::variable(["ä", "", "long\0er"]), 1);
        there_and_back(&DType::Bytes, &Elements::variable([""; 2]), 1);
        let mut gaps = StructType::packed([("a", DType::Int8), ("b", DType::Complex128)]);
        gaps.members[1].offset = 8;
        gaps.size = 24;
        let mut bytes = vec![0_u8; 48];
        (bytes[0], bytes[24], bytes[9], bytes[47]) = (1, 2, 3, 4);
        there_and_back(&gaps.into(), &Elements::fixed(bytes), 2);
        let text = StructType::packed([("t", DType::String), ("n", DType::Int64)]);
        let held = vec![Elements::variable(["a", "bc"]), Elements::fixed(vec![5; 16])];
        let elements = Elements { data: Data::Struct { length: 2, members: held }, validity: None };
        there_and_back(&text.into(), &elements, 2);
    }

    #[test]
    fn fixed_text_is_stored_as_utf_8_where_there_are_fixed_bytes() {
        let holds = |dtype: &DType| matches!(dtype, DType::FixedBytes(_));
        let form = Form::new(&DType::FixedText(3), &holds).unwrap();
        let points: Vec<u32> = ["a\u{1f600}b", "", "ä\0ö"]
            .iter()
            .flat_map(|text| text.chars().map(u32::from).chain([0; 3]).take(3).collect::<Vec<_>>())
            .collect();
        let elements =
            Elements::fixed(points.iter().flat_map(|point| point.to_ne_bytes()).collect::<Vec<u8>>());
        let stored = form.encode(&elements).unwrap();
        assert_eq!(&stored[0].as_fixed().unwrap()[..12], b"a\xf0\x9f\x98\x80b\0\0\0\0\0\0");
        assert_eq!(form.decode(&mut stored.into_iter(), 3).unwrap(), elements);
        for wrong in [&b"\xff\0\0\0\0\0\0\0\0\0\0\0"[..], b"abcd\0\0\0\0\0\0\0\0"] {
            let wrong = Elements::fixed(wrong.to_vec());
            assert!(form.decode(&mut [wrong].into_iter(), 1).is_err());
        }
    }

    #[test]
    fn fixed_text_becomes_text_of_any_length() {
        let holds = |dtype: &DType| *dtype == DType::String || few(dtype);
        let form = Form::new(&DType::FixedText(3), &holds).unwrap();
        let texts = Elements::variable(["é1", "", "abc"]);
        let fixed = fix(&texts, 3).unwrap();
        let stored = form.encode(&fixed).unwrap();
        assert_eq!(stored, [texts]);
        // HDF5's bytes of any length are lists, and its fixed bytes can be text.
        let text_only = |dtype: &DType| matches!(dtype, DType::String | DType::FixedBytes(_));
        let form_of = |holds: &dyn Fn(&DType) -> bool| {
            Form::new(&DType::FixedText(3), holds).unwrap().leaves()[0].1.dtype.clone()
        };
        assert_eq!(form_of(&text_only), DType::FixedBytes(12));
        assert_eq!(form_of(&|dtype| text_only(dtype) || *dtype == DType::Bytes), DType::String);
        assert_eq!(form.decode(&mut stored.into_iter(), 3).unwrap(), fixed);
        assert!(form.decode(&mut [Elements::variable(["long"])].into_iter(), 1).is_err());
        let surrogate = [0xd800_u32, 0, 0].iter().flat_map(|point| point.to_ne_bytes()).collect::<Vec<u8>>();
        assert!(form.encode(&Elements::fixed(surrogate)).unwrap_err().is_unsupported());
    }

    #[test]
    fn elements_that_do_not_fit_are_errors() {
        let int8 = Form::new(&DType::Int8, &few).unwrap();
        let wide = Elements::fixed(300_i16.to_ne_bytes().to_vec());
        assert!(int8.decode(&mut [wide].into_iter(), 1).is_err());
        let mut text = Form::new(&DType::String, &few).unwrap();
        assert!(text.measure(&Elements::variable(["a\0"])).unwrap_err().is_unsupported());
        text.measure(&Elements::variable(["a"])).unwrap();
        assert!(text.encode(&Elements::variable(["ab"])).is_err());
        assert!(Form::new(&DType::List(Arc::new(DType::Int8)), &few).is_none());
    }
}
