//! Stanford PLY, binary and little-endian: vertices with attributes, edges or faces.

use std::io::Write;

use hyperslab_core::{DType, Error, Result};

use super::{Selected, view};

/// Writes PLY. Attributes with one number per vertex become properties, others are left out. Links of two vertices become edges,
/// longer ones faces. `object` is the first object that contains the vertex, or -1.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for more than three axes; [`Io`](Error::Io) if the system reports an error.
pub fn write_ply(selected: &Selected, out: &mut dyn Write) -> Result<()> {
    let failed = |source| Error::io("output", source);
    let points = view::points(selected)?;
    let links = view::links(selected)?;
    let single = selected.data.vertices.dtype == DType::Float32;
    let properties: Vec<(String, Vec<f64>)> = selected
        .data
        .attributes
        .iter()
        .filter(|(_, values)| view::is_number(values))
        .map(|(name, values)| (word(name), view::floats(values)))
        .collect();
    let objects = (!selected.data.objects.is_empty()).then(|| selected.owners());
    let real = if single { "float" } else { "double" };
    let mut header = format!("ply\nformat binary_little_endian 1.0\nelement vertex {}\n", points.len());
    for axis in ["x", "y", "z"] {
        header.push_str(&format!("property {real} {axis}\n"));
    }
    for (name, _) in &properties {
        header.push_str(&format!("property double {name}\n"));
    }
    if objects.is_some() {
        header.push_str("property int object\n");
    }
    let edges = links.first().is_some_and(|link| link.len() == 2);
    if edges {
        header
            .push_str(&format!("element edge {}\nproperty int vertex1\nproperty int vertex2\n", links.len()));
    } else if !links.is_empty() {
        header.push_str(&format!("element face {}\nproperty list uchar int vertex_indices\n", links.len()));
    }
    header.push_str("end_header\n");
    out.write_all(header.as_bytes()).map_err(failed)?;
    let mut row = Vec::new();
    for (index, point) in points.iter().enumerate() {
        row.clear();
        for number in point {
            if single {
                row.extend_from_slice(&(*number as f32).to_le_bytes());
            } else {
                row.extend_from_slice(&number.to_le_bytes());
            }
        }
        for (_, numbers) in &properties {
            row.extend_from_slice(&numbers.get(index).copied().unwrap_or(f64::NAN).to_le_bytes());
        }
        if let Some(owners) = &objects {
            let owner = owners[index].map_or(Ok(-1), i32::try_from);
            let owner = owner.map_err(|_| Error::invalid("PLY cannot hold object ids beyond 32 bits"))?;
            row.extend_from_slice(&owner.to_le_bytes());
        }
        out.write_all(&row).map_err(failed)?;
    }
    for link in &links {
        row.clear();
        if !edges {
            row.push(
                u8::try_from(link.len())
                    .map_err(|_| Error::invalid("PLY cannot hold faces of more than 255 vertices"))?,
            );
        }
        for vertex in link {
            let vertex =
                i32::try_from(*vertex).map_err(|_| Error::invalid("PLY cannot hold this many vertices"))?;
            row.extend_from_slice(&vertex.to_le_bytes());
        }
        out.write_all(&row).map_err(failed)?;
    }
    Ok(())
}

/// A name as one word, distinct from the axis names.
fn word(name: &str) -> String {
    let word: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if ["x", "y", "z", "object", ""].contains(&word.as_str()) { format!("{word}_") } else { word }
}
