//! The geometry to write, checked: rows that exist, one owner a vertex.

use hyperslab_core::{DType, Error, GeometryData, Result, Values, element_to_json};

use super::Kind;

/// A vertex without an object.
pub(super) const NOBODY: u32 = u32::MAX;

/// Geometry, with rows as 32-bit numbers.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) kind: Kind,
    pub(super) rank: usize,
    /// 32- or 64-bit floats.
    pub(super) dtype: DType,
    pub(super) positions: Vec<f64>,
    pub(super) attributes: Vec<Column>,
    /// Endpoints of a link, and all links' rows.
    pub(super) links: Option<(usize, Vec<u32>)>,
    /// By id, ascending.
    pub(super) objects: Vec<(i64, Vec<u32>)>,
}

/// An attribute: one row a vertex.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) dtype: DType,
    /// Values of a row; `None` for a plain column.
    pub(super) width: Option<u64>,
    pub(super) bytes: Vec<u8>,
}

impl Column {
    pub(super) fn row_size(&self) -> usize {
        self.dtype.size().unwrap_or(1) * self.width.unwrap_or(1) as usize
    }
}

impl Source {
    pub(super) fn new(kind: Kind, data: &GeometryData) -> Result<Self> {
        let [rows, rank] = data.vertices.shape.as_slice() else {
            return Err(Error::invalid("vertices need one row a vertex and one column an axis"));
        };
        if *rows >= u64::from(NOBODY) || *rank == 0 || *rank > 16 {
            return Err(Error::invalid(format!("{rows} vertices of {rank} coordinates")));
        }
        let dtype = match &data.vertices.dtype {
            DType::Float64 => DType::Float64,
            other if other.is_numeric() => DType::Float32,
            other => return Err(Error::invalid(format!("vertices of {other}"))),
        };
        let positions = floats(&data.vertices)?;
        if let Some(at) = positions.iter().position(|position| !position.is_finite()) {
            return Err(Error::invalid(format!("vertex {} is not at a finite position", at as u64 / rank)));
        }
        let attributes = data
            .attributes
            .iter()
            .map(|(name, values)| column(name, values, *rows))
            .collect::<Result<_>>()?;
        let links = data.links.as_ref().filter(|_| !kind.is_path() && kind != Kind::PointCloud);
        let links = links.map(|links| link_rows(kind, links, *rows)).transpose()?;
        let mut objects = Vec::with_capacity(data.objects.len());
        for (id, own) in &data.objects {
            if own.iter().any(|row| row >= rows) {
                return Err(Error::invalid(format!("object {id} names vertices past the last")));
            }
            objects.push((*id, own.iter().map(|row| *row as u32).collect()));
        }
        objects.sort_by_key(|(id, _)| *id);
        if objects.windows(2).any(|pair: &[(i64, Vec<u32>)]| pair[0].0 == pair[1].0) {
            return Err(Error::invalid("an object's id comes twice"));
        }
        Ok(Self { kind, rank: *rank as usize, dtype, positions, attributes, links, objects })
    }

    pub(super) fn len(&self) -> usize {
        self.positions.len() / self.rank
    }

    /// The position of a vertex, as it is stored.
    pub(super) fn position(&self, vertex: usize) -> &[f64] {
        &self.positions[vertex * self.rank..(vertex + 1) * self.rank]
    }

    /// The corners of all vertices.
    pub(super) fn bounds(&self) -> [Vec<f64>; 2] {
        let (mut low, mut high) = (vec![f64::INFINITY; self.rank], vec![f64::NEG_INFINITY; self.rank]);
        for vertex in self.positions.chunks_exact(self.rank) {
            for axis in 0..self.rank {
                low[axis] = low[axis].min(vertex[axis]);
                high[axis] = high[axis].max(vertex[axis]);
            }
        }
        if self.positions.is_empty() { [vec![0.0; self.rank], vec![0.0; self.rank]] } else { [low, high] }
    }

    /// The object of each vertex, and its number in that object; a vertex has one owner at most.
    pub(super) fn owners(&self) -> Result<Vec<(u32, u32)>> {
        let mut owners = vec![(NOBODY, 0); self.len()];
        for (object, (id, rows)) in self.objects.iter().enumerate() {
            for (number, row) in rows.iter().enumerate() {
                let owner = &mut owners[*row as usize];
                if owner.0 != NOBODY {
                    return Err(Error::invalid(format!(
                        "vertex {row} of object {id} belongs to another, or comes twice"
                    )));
                }
                *owner = (object as u32, number as u32);
            }
        }
        Ok(owners)
    }
}

fn floats(values: &Values) -> Result<Vec<f64>> {
    let bytes = values.elements.as_fixed().ok_or_else(|| Error::invalid("vertices are not numbers"))?;
    Ok(match &values.dtype {
        DType::Float32 => {
            bytes.as_chunks::<4>().0.iter().map(|word| f32::from_ne_bytes(*word).into()).collect()
        }
        DType::Float64 => bytes.as_chunks::<8>().0.iter().map(|word| f64::from_ne_bytes(*word)).collect(),
        other => (0..values.len())
            // What a 32-bit float makes of it is what is stored.
            .map(|index| {
                let number = element_to_json(other, &values.elements, index).as_f64().unwrap_or(f64::NAN);
                f64::from(number as f32)
            })
            .collect(),
    })
}

fn column(name: &str, values: &Values, rows: u64) -> Result<Column> {
    let wrong = |problem: String| Error::invalid(format!("the attribute {name:?} {problem}"));
    let width = match values.shape.as_slice() {
        [own] if *own == rows => None,
        [own, width] if *own == rows && *width > 0 => Some(*width),
        shape => return Err(wrong(format!("has the shape {shape:?} for {rows} vertices"))),
    };
    let plain = crate::meta::dtype(&values.dtype.to_string()).is_some();
    let bytes = values.elements.as_fixed().filter(|_| plain && values.elements.validity.is_none());
    let bytes = bytes
        .ok_or_else(|| wrong(format!("of {} cannot be written: numbers only, none missing", values.dtype)))?;
    Ok(Column { name: name.to_owned(), dtype: values.dtype.clone(), width, bytes: bytes.to_vec() })
}

fn link_rows(kind: Kind, links: &Values, rows: u64) -> Result<(usize, Vec<u32>)> {
    let width = match links.shape.as_slice() {
        [_, width] if (2..=8).contains(width) => *width as usize,
        shape => return Err(Error::invalid(format!("links of the shape {shape:?}"))),
    };
    if matches!(kind, Kind::Graph | Kind::Skeleton) && width != 2 {
        return Err(Error::invalid(format!("links of {width} vertices in a {}", kind.name())));
    }
    let numbers: Option<Vec<u64>> = match (&links.dtype, links.elements.as_fixed()) {
        (DType::UInt64 | DType::Int64, Some(bytes)) => {
            Some(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect())
        }
        (DType::UInt32, Some(bytes)) => {
            Some(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word).into()).collect())
        }
        (DType::Int32, Some(bytes)) => {
            let signed = bytes.as_chunks::<4>().0.iter().map(|word| i32::from_ne_bytes(*word));
            Some(signed.map(|row| u64::try_from(row).unwrap_or(u64::MAX)).collect())
        }
        _ => None,
    };
    let numbers = numbers.ok_or_else(|| Error::invalid(format!("links of {}", links.dtype)))?;
    match numbers.iter().find(|row| **row >= rows) {
        Some(row) => Err(Error::invalid(format!("a link to vertex {row} of {rows}"))),
        None => Ok((width, numbers.into_iter().map(|row| row as u32).collect())),
    }
}
