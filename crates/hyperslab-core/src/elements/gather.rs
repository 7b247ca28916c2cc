//! Gathers elements from several sequences into one: how variable-length results are assembled.

use bytes::Bytes;

use super::{Data, Elements, Validity};
use crate::{DType, Error, Result};

impl Elements {
    /// The picked elements, in order: `(row, index)` picks element `index` of `rows[row]`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if a sequence does not have the layout of `dtype`, or lacks the element.
    pub fn gather(dtype: &DType, rows: &[&Self], picks: &[(usize, usize)]) -> Result<Self> {
        let missing = || Error::invalid(format!("an element of type {dtype} is missing"));
        let data = match dtype {
            fixed if fixed.is_fixed() => {
                let size = fixed.size().unwrap_or(0);
                let mut bytes = Vec::with_capacity(picks.len().saturating_mul(size));
                for &(row, index) in picks {
                    let held = rows.get(row).and_then(|row| row.as_fixed()).ok_or_else(missing)?;
                    let start = index.checked_mul(size).ok_or_else(missing)?;
                    bytes.extend_from_slice(held.get(start..start + size).ok_or_else(missing)?);
                }
                Data::Fixed(bytes.into())
            }
            DType::List(base) => {
                let (mut offsets, mut below) = (Vec::with_capacity(picks.len() + 1), Vec::new());
                offsets.push(0);
                for &(row, index) in picks {
                    let Some(Data::List { offsets: held, .. }) = rows.get(row).map(|row| &row.data) else {
                        return Err(missing());
                    };
                    let start = *held.get(index).ok_or_else(missing)? as usize;
                    let end = *held.get(index + 1).ok_or_else(missing)? as usize;
                    below.extend((start..end).map(|item| (row, item)));
                    offsets.push(below.len() as u64);
                }
                Data::List { offsets, items: Box::new(Self::gather(base, &items_of(rows)?, &below)?) }
            }
            DType::Array(base, shape) => {
                let each: usize = shape.iter().product();
                let below: Vec<_> = picks
                    .iter()
                    .flat_map(|&(row, index)| (0..each).map(move |item| (row, index * each + item)))
                    .collect();
                Data::FixedList { each, items: Box::new(Self::gather(base, &items_of(rows)?, &below)?) }
            }
            DType::Struct(fields) => {
                let mut members = Vec::with_capacity(fields.members.len());
                for (number, member) in fields.members.iter().enumerate() {
                    let columns = rows
                        .iter()
                        .map(|row| match &row.data {
                            Data::Struct { members, .. } => members.get(number).ok_or_else(missing),
                            _ => Err(missing()),
                        })
                        .collect::<Result<Vec<_>>>()?;
                    members.push(Self::gather(&member.dtype, &columns, picks)?);
                }
                Data::Struct { length: picks.len(), members }
            }
            _ => {
                let (mut offsets, mut bytes) = (Vec::with_capacity(picks.len() + 1), Vec::new());
                offsets.push(0);
                for &(row, index) in picks {
                    let Some(Data::Variable { offsets: held, bytes: all }) =
                        rows.get(row).map(|row| &row.data)
                    else {
                        return Err(missing());
                    };
                    let start = *held.get(index).ok_or_else(missing)? as usize;
                    let end = *held.get(index + 1).ok_or_else(missing)? as usize;
                    bytes.extend_from_slice(all.get(start..end).ok_or_else(missing)?);
                    offsets.push(bytes.len() as u64);
                }
                Data::Variable { offsets, bytes: Bytes::from(bytes) }
            }
        };
        let validity = rows
            .iter()
            .any(|row| row.validity.is_some())
            .then(|| Validity::from_flags(picks.iter().map(|&(row, index)| !rows[row].is_missing(index))));
        Ok(Self { data, validity })
    }

    /// Concatenates sequences of elements.
    ///
    /// # Errors
    ///
    /// As [`gather`](Self::gather).
    pub fn concatenate(dtype: &DType, parts: &[&Self]) -> Result<Self> {
        if let [only] = parts {
            return Ok((*only).clone());
        }
        if let (true, Some(all)) =
            (dtype.is_fixed(), parts.iter().map(|part| part.as_fixed()).collect::<Option<Vec<_>>>())
        {
            let mut bytes = Vec::with_capacity(all.iter().map(|part| part.len()).sum());
            all.iter().for_each(|part| bytes.extend_from_slice(part));
            let validity = parts.iter().any(|part| part.validity.is_some()).then(|| {
                let flags =
                    parts.iter().flat_map(|part| (0..part.len(dtype)).map(|index| !part.is_missing(index)));
                Validity::from_flags(flags)
            });
            return Ok(Self::fixed(bytes).with_validity(validity));
        }
        let lengths = parts.iter().map(|part| part.len(dtype)).enumerate();
        let picks: Vec<_> =
            lengths.flat_map(|(part, length)| (0..length).map(move |index| (part, index))).collect();
        Self::gather(dtype, parts, &picks)
    }
}

fn items_of<'a>(rows: &[&'a Elements]) -> Result<Vec<&'a Elements>> {
    rows.iter()
        .map(|row| match &row.data {
            Data::List { items, .. } | Data::FixedList { items, .. } => Ok(&**items),
            _ => Err(Error::invalid("expected a sequence of lists")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_text_are_gathered() -> Result<()> {
        let dtype = DType::List(DType::String.into());
        let lists = |texts: &[&[&str]]| {
            let mut offsets = vec![0];
            offsets.extend(texts.iter().scan(0, |sum, list| {
                *sum += list.len() as u64;
                Some(*sum)
            }));
            let items = Box::new(Elements::variable(texts.iter().copied().flatten()));
            Elements { data: Data::List { offsets, items }, validity: None }
        };
        let (a, b) = (lists(&[&["x"], &[]]), lists(&[&["y", "z"]]));
        let both = Elements::gather(&dtype, &[&a, &b], &[(1, 0), (0, 0), (0, 1), (1, 0)])?;
        assert_eq!(both, lists(&[&["y", "z"], &["x"], &[], &["y", "z"]]));
        assert!(Elements::gather(&dtype, &[&a], &[(0, 2)]).is_err());
        Ok(())
    }

    #[test]
    fn missing_stays_missing() -> Result<()> {
        let row =
            Elements::fixed(vec![1, 2, 3]).with_validity(Some(Validity::from_flags([true, false, true])));
        let picked = Elements::gather(&DType::UInt8, &[&row], &[(0, 1), (0, 2)])?;
        assert!(picked.is_missing(0) && !picked.is_missing(1));
        Ok(())
    }
}
