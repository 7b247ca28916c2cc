//! The content of a panel.

use std::borrow::Cow;

use crate::axis::Axis;
use crate::color::{ColorMap, ColorScale};
use crate::figure::{Content, Panel, PointColor};
use crate::layout::PlacedPanel;
use crate::scene::{Color, Point, Scene, Shape};

/// The colour of lines and bars.
pub(crate) const ACCENT: Color = Color::rgb(0x2b, 0x6c, 0xb0);

/// The maximum number of columns and rows for cells of irregular coordinates.
const MAX_SPREAD: usize = 8192;

/// Distinct colours for groups.
pub(crate) const GROUPS: [Color; 10] = [
    Color::rgb(0x4e, 0x79, 0xa7),
    Color::rgb(0xf2, 0x8e, 0x2b),
    Color::rgb(0xe1, 0x57, 0x59),
    Color::rgb(0x76, 0xb7, 0xb2),
    Color::rgb(0x59, 0xa1, 0x4f),
    Color::rgb(0xed, 0xc9, 0x48),
    Color::rgb(0xb0, 0x7a, 0xa1),
    Color::rgb(0xff, 0x9d, 0xa7),
    Color::rgb(0x9c, 0x75, 0x5f),
    Color::rgb(0xba, 0xb0, 0xac),
];

pub(crate) fn draw(scene: &mut Scene, place: &PlacedPanel<'_>, scale: Option<&ColorScale>) {
    match &place.panel.content {
        Content::Heat { cells, columns, rows } => {
            let Some(scale) = scale else { return };
            let page = (2.0 * place.frame.width, 2.0 * place.frame.height);
            let (cells, columns, rows) =
                spread(cells, (*columns, *rows), place.panel, (page.0 as usize, page.1 as usize));
            let pixels = heat_pixels(&cells, columns, place.panel.y.downwards, scale);
            let (columns, rows) = (columns as u32, rows as u32);
            scene.shapes.push(Shape::Image { frame: place.frame, columns, rows, pixels });
        }
        Content::Line { points } => line(scene, place, points),
        Content::Band { pieces } => band(scene, place, pieces),
        Content::Bars { edges, counts } => bars(scene, place, edges, counts),
        Content::Points { points, color, lines } => drawn_points(scene, place, points, (color, scale), lines),
    }
}

/// Cells of an irregular axis repeated, so that each takes its share of the axis. `room` is the number of columns and rows to use
/// for that. Returns the cells and the number of columns and rows.
pub(crate) fn spread<'a>(
    cells: &'a [f64],
    (columns, rows): (usize, usize),
    panel: &Panel,
    room: (usize, usize),
) -> (Cow<'a, [f64]>, usize, usize) {
    if panel.x.is_even() && panel.y.is_even() {
        return (Cow::Borrowed(cells), columns, rows);
    }
    // The cell of each column or row of the result.
    let sources = |axis: &Axis, count: usize, room: usize| -> Vec<usize> {
        if axis.is_even() {
            return (0..count).collect();
        }
        let room = room.clamp(1, MAX_SPREAD);
        let (low, high) = axis.range;
        let cell = |number: usize| {
            let at = axis.at_share((number as f64 + 0.5) / room as f64);
            (((at - low) / (high - low) * count as f64) as usize).min(count.saturating_sub(1))
        };
        (0..room).map(cell).collect()
    };
    let (across, down) = (sources(&panel.x, columns, room.0), sources(&panel.y, rows, room.1));
    let row =
        |row: &usize| across.iter().map(move |column| cells[row * columns + column]).collect::<Vec<_>>();
    (Cow::Owned(down.iter().flat_map(row).collect()), across.len(), down.len())
}

/// Cells as colours, from the top row to the bottom row.
pub(crate) fn heat_pixels(cells: &[f64], columns: usize, downwards: bool, scale: &ColorScale) -> Vec<Color> {
    let row = |row: &[f64]| row.iter().map(|value| scale.color(*value)).collect::<Vec<_>>();
    let rows = cells.chunks(columns.max(1));
    if downwards { rows.flat_map(row).collect() } else { rows.rev().flat_map(row).collect() }
}

/// Lines between neighbours. An isolated value becomes a dot.
fn line(scene: &mut Scene, place: &PlacedPanel<'_>, points: &[(f64, f64)]) {
    for run in points.split(|(_, value)| !value.is_finite()).filter(|run| !run.is_empty()) {
        let points: Vec<Point> = run.iter().map(|(x, y)| (place.x(*x), place.y(*y))).collect();
        match points[..] {
            [only] => scene.shapes.push(Shape::Dots { dots: vec![(only, ACCENT)], radius: 1.6 }),
            _ => scene.line(points, 1.5, ACCENT),
        }
    }
}

/// The area between the minimum and maximum of each piece.
fn band(scene: &mut Scene, place: &PlacedPanel<'_>, pieces: &[(f64, f64)]) {
    let (from, to) = place.panel.x.range;
    let each = (to - from) / pieces.len().max(1) as f64;
    let mut start = 0;
    for run in pieces.split(|(low, high)| !(low.is_finite() && high.is_finite())) {
        let x = |number: usize| place.x(from + (start + number) as f64 * each + each / 2.0);
        // A minimal height keeps constant stretches visible.
        let upper = run.iter().enumerate().map(|(number, piece)| (x(number), place.y(piece.1) - 0.6));
        let lower = run.iter().enumerate().map(|(number, piece)| (x(number), place.y(piece.0) + 0.6));
        let mut points: Vec<Point> = upper.collect();
        points.extend(lower.rev());
        match run.len() {
            0 => {}
            1 => scene.line(vec![points[0], points[1]], 1.2, ACCENT),
            _ => scene.shapes.push(Shape::Area { points, color: ACCENT }),
        }
        start += run.len() + 1;
    }
}

fn bars(scene: &mut Scene, place: &PlacedPanel<'_>, edges: &[f64], counts: &[f64]) {
    let floor = place.y(0.0);
    let each = place.frame.width / counts.len().max(1) as f32;
    let bins = edges.windows(2).zip(counts).enumerate().filter(|(_, (_, count))| **count > 0.0);
    for (number, (pair, count)) in bins {
        let top = place.y(*count).min(floor - 1.0);
        // If the edges of a bin are equal in double precision, compute its position from its number.
        let (left, right) = if pair[0] < pair[1] {
            (place.x(pair[0]), place.x(pair[1]))
        } else {
            (place.frame.x + number as f32 * each, place.frame.x + (number + 1) as f32 * each)
        };
        // A thin gap between bars, if they are wide enough.
        let gap = if right - left > 4.0 { 0.5 } else { 0.0 };
        let points = vec![(left + gap, floor), (left + gap, top), (right - gap, top), (right - gap, floor)];
        scene.shapes.push(Shape::Area { points, color: ACCENT });
    }
}

fn drawn_points(
    scene: &mut Scene,
    place: &PlacedPanel<'_>,
    points: &[[f64; 2]],
    (color, scale): (&PointColor, Option<&ColorScale>),
    lines: &[Vec<usize>],
) {
    let color_of = |row: usize| point_color(color, scale, row);
    let at = |row: usize| (place.x(points[row][0]), place.y(points[row][1]));
    let drawable =
        |row: &usize| points.get(*row).is_some_and(|point| point.iter().all(|number| number.is_finite()));
    for rows in lines {
        let thin = if lines.len() > 5000 { 0.5 } else { 1.1 };
        for run in rows.split(|row| !drawable(row)).filter(|run| run.len() > 1) {
            if let PointColor::Values(_) = color {
                for pair in run.windows(2) {
                    scene.line(vec![at(pair[0]), at(pair[1])], thin, color_of(pair[0]));
                }
            } else {
                scene.line(run.iter().map(|row| at(*row)).collect(), thin, color_of(run[0]));
            }
        }
    }
    if lines.is_empty() {
        let (radius, alpha) = match points.len() {
            0..=500 => (2.6, 230),
            501..=5_000 => (1.8, 210),
            5_001..=50_000 => (1.1, 190),
            _ => (0.6, 160),
        };
        let rows = (0..points.len()).filter(drawable);
        let dots = rows.map(|row| (at(row), color_of(row).with_alpha(alpha))).collect();
        scene.shapes.push(Shape::Dots { dots, radius });
    }
}

/// The colour of a point.
pub(crate) fn point_color(color: &PointColor, scale: Option<&ColorScale>, row: usize) -> Color {
    match color {
        PointColor::Same => ACCENT,
        PointColor::Groups(groups) => groups.get(row).map_or(ACCENT, |group| GROUPS[group % GROUPS.len()]),
        PointColor::Values(values) => match (scale, values.get(row)) {
            (Some(scale), Some(value)) => scale.color(*value),
            _ => ColorMap::sequential().at(0.5),
        },
    }
}
