//! Points and lines of geometries.

use hyperslab::geometry::GeometryReader;
use hyperslab::{Error, GeometryQuery, Result};

use crate::axis::Axis;
use crate::color::{ColorMap, ColorScale};
use crate::figure::{Content, Figure, Panel, PointColor};
use crate::make::{PlotOptions, room};

/// A level with more vertices is skipped if there is a coarser one.
const MAX_VERTICES: u64 = 1_000_000;

pub(crate) fn figure(reader: &GeometryReader, node: &str, options: &PlotOptions) -> Result<Figure> {
    let axes = reader.schema().axes.clone();
    let (x, y) = chosen_axes(&axes, options)?;
    let (query, level) = query(reader, options)?;
    let selected = reader.query(&query)?;
    let numbers = selected.coordinates();
    let rank = axes.len();
    let points: Vec<[f64; 2]> = numbers.chunks_exact(rank).map(|row| [row[x], row[y]]).collect();
    let column = |axis: usize| numbers.chunks_exact(rank).map(|row| row[axis]).collect::<Vec<f64>>();
    let third = (0..rank).find(|axis| *axis != x && *axis != y);
    let lines = selected.lines()?;
    let (color, label) = if let Some(name) = &options.color_by {
        let values = axes.iter().position(|axis| axis == name).map(column).or_else(|| selected.numbers(name));
        let values = values.ok_or_else(|| {
            let names: Vec<&str> = selected.data.attributes.iter().map(|(name, _)| name.as_str()).collect();
            Error::invalid(format!(
                "{node}: no axis or numeric vertex attribute is called {name}; choose one of: {}",
                axes.iter().map(String::as_str).chain(names).collect::<Vec<_>>().join(", ")
            ))
        })?;
        (PointColor::Values(values), name.clone())
    } else if selected.data.objects.len() > 1 && !lines.is_empty() {
        (PointColor::Groups(groups(points.len(), &selected.data.objects)), String::new())
    } else if let Some(third) = third {
        (PointColor::Values(column(third)), axes[third].clone())
    } else {
        (PointColor::Same, String::new())
    };
    let colors = match &color {
        PointColor::Values(values) => {
            // The middle of a diverging map is the colour of the paper.
            let map = options.map.unwrap_or_else(ColorMap::sequential);
            let scale = ColorScale::of(values, Some(map), options.range, options.percentiles);
            let axis = Axis::colors(label, scale.low, scale.high);
            Some((scale, axis))
        }
        _ => None,
    };
    let mut parts = vec![format!("{} vertices", selected.vertices())];
    if !lines.is_empty() {
        let is_mesh = reader.schema().kinds.iter().any(|kind| kind == "mesh");
        parts.push(format!("{} {}", lines.len(), if is_mesh { "faces" } else { "lines" }));
    }
    if let Some(level) = level {
        parts.push(format!("level {level}"));
    }
    let axis = |number: usize| {
        let (low, high) = room(points.iter().map(|point| if number == x { point[0] } else { point[1] }));
        Axis::values(axes[number].clone(), low, high)
    };
    let panel = Panel {
        title: String::new(),
        x: axis(x),
        y: axis(y),
        content: Content::Points { color, lines, points: points.clone() },
    };
    let spans = (panel.x.range.1 - panel.x.range.0, panel.y.range.1 - panel.y.range.0);
    let aspect = Some(spans.0 / spans.1).filter(|ratio| (0.1..=10.0).contains(ratio));
    let title = options.title.clone().unwrap_or_else(|| reader.schema().kinds.join(", "));
    Ok(Figure { title, subtitle: parts.join(", "), panels: vec![panel], colors, aspect })
}

/// The query, and the level if it is not the finest.
fn query(reader: &GeometryReader, options: &PlotOptions) -> Result<(GeometryQuery, Option<usize>)> {
    let mut query = options.geometry.clone();
    let is_part = query.region.is_some() || !query.objects.is_empty() || !query.groups.is_empty();
    if query.level.is_none() && !is_part {
        let levels = reader.inner().levels()?;
        let small = levels.iter().position(|level| level.vertices <= MAX_VERTICES);
        query.level = small.or(levels.len().checked_sub(1)).filter(|level| *level > 0);
    }
    query.attributes =
        Some(options.color_by.iter().filter(|name| !reader.schema().axes.contains(name)).cloned().collect());
    let level = query.level.filter(|level| *level > 0);
    Ok((query, level))
}

fn chosen_axes(axes: &[String], options: &PlotOptions) -> Result<(usize, usize)> {
    if axes.len() < 2 {
        return Err(Error::invalid("a geometry with fewer than two axes cannot be drawn"));
    }
    let Some((x, y)) = &options.axes else { return Ok((0, 1)) };
    let find = |name: &String| {
        let found = axes.iter().position(|axis| axis == name);
        found.ok_or_else(|| Error::invalid(format!("no axis {name}; the geometry has {}", axes.join(", "))))
    };
    match (find(x)?, find(y)?) {
        (x, y) if x == y => Err(Error::invalid("choose two different axes")),
        both => Ok(both),
    }
}

/// The first object that contains each vertex, by its position in the list.
fn groups(vertices: usize, objects: &[(i64, Vec<u64>)]) -> Vec<usize> {
    let mut groups = vec![usize::MAX; vertices];
    for (number, (_, rows)) in objects.iter().enumerate() {
        for row in rows {
            if let Some(group) = groups.get_mut(*row as usize).filter(|group| **group == usize::MAX) {
                *group = number;
            }
        }
    }
    groups
}
