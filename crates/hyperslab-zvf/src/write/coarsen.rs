//! A coarser level: one vertex for each occupied bin.

use std::collections::{HashMap, HashSet};

use hyperslab_core::{DType, Elements, element_to_json};

use super::source::{Column, Source};
use crate::coord::{Coord, chunk_of};

/// Vertices in one bin become their mean; so do floating-point attributes, and of others the first is kept. An object becomes the
/// sequence of its bins without repetitions, a link the link of its bins where those differ.
pub(super) fn coarsen(source: &Source, bin: &[f64]) -> Source {
    let mut numbers: HashMap<Coord, u32> = HashMap::new();
    let mut of = Vec::with_capacity(source.len());
    let (mut sums, mut counts, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
    for vertex in 0..source.len() {
        let position = source.position(vertex);
        let coord: Coord = position.iter().zip(bin).map(|(at, size)| chunk_of(*at, *size)).collect();
        let number = *numbers.entry(coord).or_insert_with(|| {
            sums.resize(sums.len() + source.rank, 0.0);
            counts.push(0_u64);
            firsts.push(vertex);
            counts.len() as u32 - 1
        });
        let sum = &mut sums[number as usize * source.rank..][..source.rank];
        sum.iter_mut().zip(position).for_each(|(sum, at)| *sum += at);
        counts[number as usize] += 1;
        of.push(number);
    }
    for (sum, count) in sums.chunks_exact_mut(source.rank).zip(&counts) {
        for part in sum {
            *part /= *count as f64;
            if source.dtype == DType::Float32 {
                *part = f64::from(*part as f32);
            }
        }
    }
    let attributes =
        source.attributes.iter().map(|column| coarse_column(column, &of, &counts, &firsts)).collect();
    let objects = source.objects.iter().map(|(id, rows)| {
        let mut bins: Vec<u32> = rows.iter().map(|row| of[*row as usize]).collect();
        bins.dedup();
        (*id, bins)
    });
    let links = source.links.as_ref().map(|(width, links)| (*width, coarse_links(*width, links, &of)));
    Source {
        kind: source.kind,
        rank: source.rank,
        dtype: source.dtype.clone(),
        positions: sums,
        attributes,
        links,
        objects: objects.collect(),
    }
}

fn coarse_column(column: &Column, of: &[u32], counts: &[u64], firsts: &[usize]) -> Column {
    let size = column.row_size();
    let mut bytes = Vec::with_capacity(counts.len() * size);
    if !matches!(column.dtype, DType::Float32 | DType::Float64) {
        firsts
            .iter()
            .for_each(|first| bytes.extend_from_slice(&column.bytes[first * size..(first + 1) * size]));
        return Column { bytes, ..column.clone() };
    }
    let width = column.width.unwrap_or(1) as usize;
    let mut sums = vec![0.0; counts.len() * width];
    let elements = Elements::fixed(column.bytes.clone());
    for (vertex, number) in of.iter().enumerate() {
        for part in 0..width {
            let index = vertex * width + part;
            let value = match column.dtype {
                DType::Float32 => f32_at(&column.bytes, index).into(),
                _ => element_to_json(&column.dtype, &elements, index).as_f64().unwrap_or(f64::NAN),
            };
            sums[*number as usize * width + part] += value;
        }
    }
    for (index, sum) in sums.iter().enumerate() {
        let mean = sum / counts[index / width] as f64;
        match column.dtype {
            DType::Float32 => bytes.extend((mean as f32).to_ne_bytes()),
            _ => bytes.extend(mean.to_ne_bytes()),
        }
    }
    Column { bytes, ..column.clone() }
}

fn f32_at(bytes: &[u8], index: usize) -> f32 {
    bytes.as_chunks::<4>().0.get(index).map_or(f32::NAN, |word| f32::from_ne_bytes(*word))
}

/// Links between different bins, each once.
fn coarse_links(width: usize, links: &[u32], of: &[u32]) -> Vec<u32> {
    let (mut seen, mut coarse) = (HashSet::new(), Vec::new());
    for link in links.chunks_exact(width) {
        let bins: Vec<u32> = link.iter().map(|vertex| of[*vertex as usize]).collect();
        let mut sorted = bins.clone();
        sorted.sort_unstable();
        if sorted.windows(2).all(|pair| pair[0] != pair[1]) && seen.insert(sorted) {
            coarse.extend(bins);
        }
    }
    coarse
}
