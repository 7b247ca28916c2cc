//! Rows of named columns, in batches: the common form of tables, arrays and geometries for `.csv`, `.json`, `.npy`, `.arrow` and
//! `.parquet` files.
//!
//! | source | columns |
//! |---|---|
//! | a table | its own, dimensions first |
//! | an array of structs | one per member; preceded by one per dimension if there are several |
//! | any other array | one per dimension (its labels, or positions if it has none), then `value`, or the name of the only variable of a data set that is converted; decoded values in `.csv`, `.arrow` and `.parquet` |
//! | several arrays on dimensions of the widest | one per dimension, then one per array with its name, repeated along dimensions that it lacks |
//! | a geometry | one per axis, one per attribute, then `object` |

mod array;
mod csv;
mod json;
mod npy;
mod write;

use hyperslab_core::{
    Batch, Batches, Column, DType, Data, Elements, Error, Result, StructType, element_to_json,
};

pub(crate) use array::{axes_in, rows_together, run};
pub use csv::write_csv;
pub use json::write_json;
pub use npy::write_npy;
pub use write::{ENDINGS, as_rows, takes_decoded, takes_elements, write, writes};
pub(crate) use write::{ending, write_staged};

/// Rows of named columns, in batches.
pub struct Rows<'a> {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows. Every batch has one sequence of elements per column.
    pub batches: Batches<'a>,
}

impl std::fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl<'a> Rows<'a> {
    /// Rows that are all in memory.
    #[must_use]
    pub fn once(columns: Vec<Column>, batch: Batch) -> Self {
        Self { columns, batches: Box::new(std::iter::once(Ok(batch))) }
    }

    /// Keeps only these columns, in this order.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a column that does not exist; the message lists the existing ones.
    pub fn project(self, names: &[String]) -> Result<Self> {
        let chosen = names
            .iter()
            .map(|name| {
                self.columns
                    .iter()
                    .position(|column| column.name == *name)
                    .ok_or_else(|| no_column(name, &self.columns))
            })
            .collect::<Result<Vec<_>>>()?;
        let columns = chosen.iter().map(|&at| self.columns[at].clone()).collect();
        let batches = self.batches.map(move |batch| {
            let batch = batch?;
            let columns = chosen.iter().map(|&at| batch.columns[at].clone()).collect();
            Ok(Batch { rows: batch.rows, columns })
        });
        Ok(Self { columns, batches: Box::new(batches) })
    }

    /// The first rows in one batch. No further batch is read.
    ///
    /// # Errors
    ///
    /// Any error from a batch.
    pub fn head(self, rows: usize) -> Result<(Vec<Column>, Batch)> {
        let mut picks: Vec<(usize, usize)> = Vec::new();
        let mut batches: Vec<Batch> = Vec::new();
        for batch in self.batches {
            if picks.len() >= rows {
                break;
            }
            let batch = batch?;
            picks.extend((0..batch.rows.min(rows - picks.len())).map(|row| (batches.len(), row)));
            batches.push(batch);
        }
        let column = |(number, column): (usize, &Column)| {
            let parts: Vec<&Elements> = batches.iter().map(|batch| &batch.columns[number]).collect();
            Elements::gather(&column.dtype, &parts, &picks)
        };
        let columns = self.columns.iter().enumerate().map(column).collect::<Result<_>>()?;
        Ok((self.columns, Batch { rows: picks.len(), columns }))
    }

    /// All rows in one batch.
    ///
    /// # Errors
    ///
    /// Any error from a batch.
    pub fn collect(self) -> Result<(Vec<Column>, Batch)> {
        let batches = self.batches.collect::<Result<Vec<_>>>()?;
        let columns = self
            .columns
            .iter()
            .enumerate()
            .map(|(number, column)| {
                let parts: Vec<&Elements> = batches.iter().map(|batch| &batch.columns[number]).collect();
                Elements::concatenate(&column.dtype, &parts)
            })
            .collect::<Result<_>>()?;
        let rows = batches.iter().map(|batch| batch.rows).sum();
        Ok((self.columns, Batch { rows, columns }))
    }
}

/// A cell as JSON: like [`element_to_json`], with enumeration members by name.
#[must_use]
pub fn cell_to_json(dtype: &DType, elements: &Elements, row: usize) -> serde_json::Value {
    match element_to_json(dtype, elements, row) {
        serde_json::Value::Number(code) => match dtype {
            DType::Enum(named) => {
                let value = code.as_i64().map(i128::from).or_else(|| code.as_u64().map(i128::from));
                let name = value.and_then(|value| named.name_of(value));
                name.map_or_else(|| code.into(), |name| name.to_owned().into())
            }
            _ => serde_json::Value::Number(code),
        },
        other => other,
    }
}

pub(crate) fn no_column(name: &str, columns: &[Column]) -> Error {
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    let meant = hyperslab_core::closest(name, names.iter().copied());
    let meant = meant.map_or(String::new(), |meant| format!("did you mean {meant}? "));
    Error::invalid(format!("no column {name}; {meant}there are {}", names.join(", ")))
}

/// A column that is neither a dimension nor filtered.
pub(crate) fn plain_column(name: impl Into<String>, dtype: DType, nullable: bool) -> Column {
    Column { name: name.into(), dtype, nullable, dimension: false, filters: Vec::new() }
}

/// The members of structs, each as a sequence of elements. A missing struct has missing members.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the elements do not have the layout of their type.
pub fn members(fields: &StructType, elements: &Elements) -> Result<Vec<Elements>> {
    let wrong = || Error::invalid("the structs do not have the layout of their type");
    let mut members = match &elements.data {
        Data::Struct { members, .. } if members.len() == fields.members.len() => members.clone(),
        Data::Fixed(bytes) if fields.size > 0 => fields
            .members
            .iter()
            .map(|member| {
                let size = member.dtype.size().ok_or_else(wrong)?;
                let end = member.offset.checked_add(size).filter(|end| *end <= fields.size);
                let end = end.ok_or_else(wrong)?;
                let mut column = hyperslab_core::Buffer::zeroed(bytes.len() / fields.size * size)?;
                let elements = bytes.chunks_exact(fields.size);
                for (held, out) in elements.zip(column.as_mut_slice().chunks_exact_mut(size.max(1))) {
                    out.copy_from_slice(&held[member.offset..end]);
                }
                Ok(Elements::fixed(column.freeze()))
            })
            .collect::<Result<Vec<_>>>()?,
        Data::Fixed(_) if fields.members.is_empty() => Vec::new(),
        _ => return Err(wrong()),
    };
    if let Some(validity) = &elements.validity {
        for member in &mut members {
            member.validity = Some(match &member.validity {
                None => validity.clone(),
                Some(own) => hyperslab_core::Validity::from_flags(
                    (0..validity.len()).map(|at| validity.get(at) && own.get(at)),
                ),
            });
        }
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_skip_padding() -> Result<()> {
        let mut fields = StructType::packed([("a", DType::UInt8), ("b", DType::UInt16)]);
        fields.members[1].offset = 2;
        fields.size = 4;
        let elements = Elements::fixed(vec![1, 0xff, 2, 3, 4, 0xff, 5, 6]);
        let members = members(&fields, &elements)?;
        assert_eq!(members[0].as_fixed().unwrap()[..], [1, 4]);
        assert_eq!(members[1].as_fixed().unwrap()[..], [2, 3, 5, 6]);
        Ok(())
    }

    #[test]
    fn columns_are_selected_by_name_and_batches_joined() -> Result<()> {
        let columns = vec![plain_column("a", DType::UInt8, false), plain_column("t", DType::String, false)];
        let batch = |a: Vec<u8>, t: &[&str]| {
            Ok(Batch { rows: a.len(), columns: vec![Elements::fixed(a), Elements::variable(t)] })
        };
        let rows = || Rows {
            columns: columns.clone(),
            batches: Box::new(vec![batch(vec![1, 2], &["x", "yy"]), batch(vec![3], &[""])].into_iter()),
        };
        let (chosen, all) = rows().project(&["t".to_owned()])?.collect()?;
        assert_eq!((chosen[0].name.as_str(), all.rows), ("t", 3));
        assert_eq!(all.columns[0], Elements::variable(["x", "yy", ""]));
        let error = rows().project(&["z".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "no column z; there are a, t");
        Ok(())
    }
}
