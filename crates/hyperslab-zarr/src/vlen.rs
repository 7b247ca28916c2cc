//! Variable-length elements in one chunk: a `u32` count, then per element a `u32` length and its bytes, little-endian.

use std::ops::Range;

use bytes::Bytes;
use hyperslab_core::{CellOrder, DType, Data, Elements, Extents, Fields, Place, Result, product};

use crate::codec::Number;

/// The only element of a chunk, without a copy.
pub(crate) fn single(chunk: &Bytes, place: Place<'_>) -> Result<Bytes> {
    let mut fields = Fields::new(chunk, place);
    let count = fields.count_u32(4)?;
    if count != 1 {
        return Err(place.corrupt(format!("{count} elements, expected one")));
    }
    let length = fields.count_u32(1)?;
    let start = fields.position();
    fields.skip(length)?;
    fields.end()?;
    Ok(chunk.slice(start..start + length))
}

/// The range of each element of a chunk.
pub(crate) fn spans(bytes: &[u8], place: Place<'_>) -> Result<Vec<Range<usize>>> {
    let mut fields = Fields::new(bytes, place);
    let count = fields.count_u32(4)?;
    let mut spans = Vec::with_capacity(count);
    for _ in 0..count {
        let length = fields.count_u32(1)?;
        let start = fields.position();
        fields.skip(length)?;
        spans.push(start..start + length);
    }
    fields.end()?;
    Ok(spans)
}

/// Decodes the elements of a chunk of `shape` cells stored in `order`: those inside `region` (relative to the chunk), in C order.
pub(crate) fn decode(
    bytes: &[u8],
    shape: &[u64],
    region: &[u64],
    order: &CellOrder,
    place: Place<'_>,
) -> Result<Elements> {
    let spans = spans(bytes, place)?;
    gather(spans.len(), |cell| &bytes[spans[cell].clone()], shape, region, order, place)
}

/// Makes lists of elements whose bytes are those of their items, back to back.
pub(crate) fn into_lists(elements: Elements, base: &DType, place: Place<'_>) -> Result<Elements> {
    let Data::Variable { mut offsets, bytes } = elements.data else { return Ok(elements) };
    let item = base.size().filter(|size| *size > 0).unwrap_or(1) as u64;
    for offset in &mut offsets {
        if !offset.is_multiple_of(item) {
            return Err(place.corrupt(format!("a list of {base} that ends inside an item of {item} bytes")));
        }
        *offset /= item;
    }
    let items = Box::new(Elements::fixed(bytes));
    Ok(Elements { data: Data::List { offsets, items }, validity: elements.validity })
}

/// The bytes of one element: a text, or the items of a list.
pub(crate) fn element_bytes<'a>(elements: &'a Elements, dtype: &DType, index: usize) -> Option<&'a [u8]> {
    match (&elements.data, dtype) {
        (Data::List { offsets, items }, DType::List(base)) if !elements.is_missing(index) => {
            let (item, bytes) = (base.size()?, items.as_fixed()?);
            let at = |index: usize| usize::try_from(*offsets.get(index)?).ok()?.checked_mul(item);
            bytes.get(at(index)?..at(index + 1)?)
        }
        _ => elements.variable_at(index),
    }
}

/// The elements of a chunk of `shape` cells that are inside `region`, in C order.
pub(crate) fn gather<'a>(
    count: usize,
    element: impl Fn(usize) -> &'a [u8],
    shape: &[u64],
    region: &[u64],
    order: &CellOrder,
    place: Place<'_>,
) -> Result<Elements> {
    if product(shape) != Some(count as u64) {
        return Err(place.corrupt(format!("{count} elements are stored in a chunk of {shape:?} cells")));
    }
    let strides = order.strides(shape);
    let cells = product(region).unwrap_or(0) as usize;
    let mut offsets = Vec::with_capacity(cells + 1);
    let mut kept = Vec::new();
    offsets.push(0);
    let mut at: Extents = region.iter().map(|_| 0).collect();
    for _ in 0..cells {
        let cell: u64 = at.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
        kept.extend_from_slice(element(cell as usize));
        offsets.push(kept.len() as u64);
        for (at, extent) in at.iter_mut().zip(region).rev() {
            *at += 1;
            if *at < *extent {
                break;
            }
            *at = 0;
        }
    }
    Ok(Elements { data: Data::Variable { offsets, bytes: kept.into() }, validity: None })
}

/// The texts of numcodecs' `categorize`: label numbers, starting at 1; 0 is no text.
pub(crate) fn categories(
    bytes: &[u8],
    (labels, number): (&[String], Number),
    shape: &[u64],
    region: &[u64],
    order: &CellOrder,
    place: Place<'_>,
) -> Result<Elements> {
    if !bytes.len().is_multiple_of(number.size) {
        return Err(place.corrupt(format!("{} bytes of numbers of {}", bytes.len(), number.size)));
    }
    let mut texts = Vec::with_capacity(bytes.len() / number.size);
    for code in bytes.chunks_exact(number.size) {
        texts.push(match number.integer(code) {
            Some(0) => "",
            Some(code) => {
                let label = usize::try_from(code - 1).ok().and_then(|label| labels.get(label));
                label.ok_or_else(|| place.corrupt(format!("label {code} of {}", labels.len())))?
            }
            None => return Err(place.unsupported("labels numbered by floats")),
        });
    }
    gather(texts.len(), |cell| texts[cell].as_bytes(), shape, region, order, place)
}

/// The texts of numcodecs' `json2`: a JSON list that ends in a type and a shape.
pub(crate) fn json_texts(
    bytes: &[u8],
    shape: &[u64],
    region: &[u64],
    order: &CellOrder,
    place: Place<'_>,
) -> Result<Elements> {
    let wrong = |what: String| place.corrupt(format!("codec \"json2\": {what}"));
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let Some((items, [_, _])) = items.split_at_checked(items.len().saturating_sub(2)) else {
        return Err(wrong("expected a list of items, a type and a shape".to_owned()));
    };
    let texts: Option<Vec<&str>> = items.iter().map(serde_json::Value::as_str).collect();
    let texts = texts.ok_or_else(|| place.unsupported("the codec \"json2\" for objects other than text"))?;
    gather(texts.len(), |cell| texts[cell].as_bytes(), shape, region, order, place)
}

/// Encodes a chunk of elements, in order; `None` if one is missing or too long for a `u32`.
pub(crate) fn encode<'a>(elements: impl ExactSizeIterator<Item = Option<&'a [u8]>>) -> Option<Vec<u8>> {
    let mut bytes = Vec::from(u32::try_from(elements.len()).ok()?.to_le_bytes());
    for element in elements {
        let element = element?;
        bytes.extend(u32::try_from(element.len()).ok()?.to_le_bytes());
        bytes.extend_from_slice(element);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place::new("x.zarr", "chunk", 0);

    #[test]
    fn clipped_and_transposed_chunks_are_read_in_c_order() -> Result<()> {
        let texts = ["a", "", "ccc", "d", "ee", "f"];
        let bytes = encode(texts.iter().map(|text| Some(text.as_bytes()))).unwrap();
        let elements = decode(&bytes, &[2, 3], &[2, 2], &CellOrder::RowMajor, PLACE)?;
        assert_eq!(elements, Elements::variable(["a", "", "d", "ee"]));
        let elements = decode(&bytes, &[2, 3], &[1, 3], &CellOrder::ColumnMajor, PLACE)?;
        assert_eq!(elements, Elements::variable(["a", "ccc", "ee"]));
        Ok(())
    }

    #[test]
    fn lists_are_whole_items() -> Result<()> {
        let lists: [&[u8]; 3] = [&[1, 0, 2, 0], &[], &[3, 0]];
        let bytes = encode(lists.iter().map(|list| Some(*list))).unwrap();
        let decoded = |base: &DType| {
            let elements = decode(&bytes, &[3], &[3], &CellOrder::RowMajor, PLACE)?;
            into_lists(elements, base, PLACE)
        };
        let elements = decoded(&DType::Int16)?;
        let items = Box::new(Elements::fixed(vec![1, 0, 2, 0, 3, 0]));
        assert_eq!(elements.data, Data::List { offsets: vec![0, 2, 2, 3], items });
        let dtype = DType::List(DType::Int16.into());
        for (index, list) in lists.iter().enumerate() {
            assert_eq!(element_bytes(&elements, &dtype, index), Some(*list));
        }
        assert!(decoded(&DType::Int32).unwrap_err().is_corrupt());
        Ok(())
    }

    #[test]
    fn false_counts_are_rejected_before_allocating() {
        let hostile: [&[u8]; 4] =
            [&[255; 14], &[1, 0, 0, 0, 9, 0, 0, 0, 1], &[1, 0, 0, 0, 0, 0, 0, 0, 1], &[2, 0, 0, 0]];
        for bytes in hostile {
            assert!(decode(bytes, &[1], &[1], &CellOrder::RowMajor, PLACE).unwrap_err().is_corrupt());
            assert!(single(&Bytes::from_static(bytes), PLACE).unwrap_err().is_corrupt());
        }
    }
}
