//! Figures as characters: half blocks for heatmaps, Braille dots for lines and points, eighth blocks for bars.

use super::Graphics;
use crate::axis::Axis;
use crate::color::ColorScale;
use crate::content::{ACCENT, heat_pixels, point_color, spread};
use crate::figure::{Content, Figure, Panel};
use crate::scene::Color;
use crate::ticks;

/// Shades from light to dark, without colours.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// One character with its colours.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cell {
    character: char,
    front: Option<Color>,
    back: Option<Color>,
}

const EMPTY: Cell = Cell { character: ' ', front: None, back: None };

/// Rows of cells.
struct Sheet {
    columns: usize,
    cells: Vec<Cell>,
}

impl Sheet {
    fn new(columns: usize, rows: usize) -> Self {
        Self { columns, cells: vec![EMPTY; columns * rows] }
    }

    fn put(&mut self, column: usize, row: usize, cell: Cell) {
        if column < self.columns
            && let Some(own) = self.cells.get_mut(row * self.columns + column)
        {
            *own = cell;
        }
    }

    fn text(&mut self, column: usize, row: usize, text: &str) {
        for (number, character) in text.chars().enumerate() {
            self.put(column + number, row, Cell { character, ..EMPTY });
        }
    }

    fn write(&self, graphics: Graphics) -> String {
        let mut out = String::new();
        for row in self.cells.chunks(self.columns) {
            let used = row.iter().rposition(|cell| *cell != EMPTY).map_or(0, |last| last + 1);
            let mut colors = (None, None);
            for cell in &row[..used] {
                let wanted = if graphics == Graphics::Plain { (None, None) } else { (cell.front, cell.back) };
                if wanted != colors {
                    out.push_str("\x1b[0m");
                    out.push_str(&escape(38, wanted.0, graphics));
                    out.push_str(&escape(48, wanted.1, graphics));
                    colors = wanted;
                }
                // A name from a file must not move the cursor.
                out.push(if cell.character.is_control() { '\u{fffd}' } else { cell.character });
            }
            if colors != (None, None) {
                out.push_str("\x1b[0m");
            }
            out.push('\n');
        }
        out
    }
}

/// The escape sequence that sets the foreground (38) or background (48) colour.
fn escape(plane: u8, color: Option<Color>, graphics: Graphics) -> String {
    let Some(color) = color else { return String::new() };
    if graphics == Graphics::TrueColor {
        return format!("\x1b[{plane};2;{};{};{}m", color.red, color.green, color.blue);
    }
    format!("\x1b[{plane};5;{}m", palette_index(color))
}

/// The nearest of xterm's 256 colours: its cube of 6 × 6 × 6, or its greys.
fn palette_index(color: Color) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let near =
        |value: u8| (0..6_u8).min_by_key(|level| LEVELS[usize::from(*level)].abs_diff(value)).unwrap_or(0);
    let cube = [near(color.red), near(color.green), near(color.blue)];
    let mean = (u16::from(color.red) + u16::from(color.green) + u16::from(color.blue)) / 3;
    let grey = ((mean.saturating_sub(3)) / 10).min(23) as u8;
    let distance = |red: u8, green: u8, blue: u8| {
        [(red, color.red), (green, color.green), (blue, color.blue)]
            .iter()
            .map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2))
            .sum::<u32>()
    };
    let [red, green, blue] = cube.map(|level| LEVELS[usize::from(level)]);
    let level = 8 + 10 * grey;
    if distance(level, level, level) < distance(red, green, blue) {
        232 + grey
    } else {
        16 + 36 * cube[0] + 6 * cube[1] + cube[2]
    }
}

/// The figure as lines of text, at most `columns` wide and about `rows` high.
pub(super) fn draw(figure: &Figure, graphics: Graphics, columns: usize, rows: usize) -> String {
    let mut out = String::new();
    let mut head = |text: &str| {
        let text = fitted(text, columns);
        if !text.is_empty() {
            out.push_str(&text);
            out.push('\n');
        }
    };
    head(&figure.title);
    head(&figure.subtitle);
    let footer = 3 + usize::from(figure.colors.is_some());
    let beside = if figure.panels.len() > 1 { (columns / 36).clamp(1, figure.panels.len()) } else { 1 };
    let width = columns / beside;
    let high = if figure.panels.len() > 1 { rows / 2 } else { rows.saturating_sub(footer) };
    for group in figure.panels.chunks(beside) {
        let drawn: Vec<Sheet> = group
            .iter()
            .map(|panel| {
                panel_sheet(
                    figure,
                    panel,
                    graphics,
                    (width.saturating_sub(usize::from(beside > 1)), high.max(6)),
                )
            })
            .collect();
        let tallest = drawn.iter().map(|sheet| sheet.cells.len() / sheet.columns).max().unwrap_or(0);
        let mut joined = Sheet::new(columns, tallest);
        for (number, sheet) in drawn.iter().enumerate() {
            for (place, cell) in sheet.cells.iter().enumerate().filter(|(_, cell)| **cell != EMPTY) {
                joined.put(number * width + place % sheet.columns, place / sheet.columns, *cell);
            }
        }
        out.push_str(&joined.write(graphics));
    }
    if let Some((scale, axis)) = &figure.colors {
        out.push_str(&color_bar(scale, axis, graphics, columns));
    }
    out
}

/// The colour bar in one line, with its limits on both sides.
fn color_bar(scale: &ColorScale, axis: &Axis, graphics: Graphics, columns: usize) -> String {
    let ends = if axis.is_times() {
        [axis.text(scale.low), axis.text(scale.high)]
    } else {
        let ends = ticks::texts(&[scale.low, scale.high]);
        [short(scale.low, &ends[0]), short(scale.high, &ends[1])]
    };
    let label = fitted(&axis.label, columns / 3);
    let used = ends.iter().map(|end| end.chars().count()).sum::<usize>() + label.chars().count() + 4;
    let length = columns.saturating_sub(used).clamp(8, 32);
    let mut sheet = Sheet::new(columns, 1);
    sheet.text(0, 0, &ends[0]);
    let start = ends[0].chars().count() + 1;
    for number in 0..length {
        let share = (number as f64 + 0.5) / length as f64;
        let cell = if graphics == Graphics::Plain {
            Cell { character: shade(share), ..EMPTY }
        } else {
            Cell { character: '█', front: Some(scale.map.at(share)), back: None }
        };
        sheet.put(start + number, 0, cell);
    }
    sheet.text(start + length + 1, 0, &format!("{} {label}", ends[1]));
    sheet.write(graphics)
}

/// A text without control characters in at most this many columns. A shortened label keeps its unit.
fn fitted(text: &str, columns: usize) -> String {
    let text: Vec<char> = text.chars().filter(|character| !character.is_control()).collect();
    if text.len() <= columns {
        return text.into_iter().collect();
    }
    let unit = text.windows(2).rposition(|pair| pair == [' ', '[']).filter(|_| text.last() == Some(&']'));
    let unit = unit.map_or(&[][..], |at| &text[at..]);
    let unit = if unit.len() <= columns / 2 { unit } else { &[] };
    let kept = &text[..columns.saturating_sub(unit.len() + 1)];
    kept.iter().chain(['…'].iter().take(columns)).chain(unit).collect()
}

/// Four significant digits are enough beside a colour bar.
fn short(number: f64, text: &str) -> String {
    if text.chars().count() <= 8 { text.to_owned() } else { format!("{number:.3e}") }
}

fn shade(share: f64) -> char {
    SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]
}

/// A panel with its axes.
fn panel_sheet(figure: &Figure, panel: &Panel, graphics: Graphics, (columns, rows): (usize, usize)) -> Sheet {
    let titled = usize::from(!panel.title.is_empty());
    let marks = panel.y.ticks((rows / 4).max(2));
    let margin = marks.iter().map(|tick| tick.label.chars().count()).max().unwrap_or(0).min(columns / 3) + 2;
    let inner = columns.saturating_sub(margin + 1).max(4);
    let below = 2;
    let mut high = rows.saturating_sub(titled + below).max(3);
    let mut wide = inner;
    if let Some(aspect) = figure.aspect {
        // A character is twice as high as wide.
        let fitting = (wide as f64 / aspect / 2.0).round() as usize;
        if fitting <= high {
            high = fitting.max(2);
        } else {
            wide = ((high as f64 * 2.0 * aspect).round() as usize).clamp(4, inner);
        }
    }
    let mut sheet = Sheet::new(columns, titled + high + below);
    if titled == 1 {
        sheet.text(margin, 0, &fitted(&panel.title, wide));
    }
    let place = PanelGrid { panel, wide, high, margin, top: titled };
    match &panel.content {
        Content::Heat { cells, columns, rows } => {
            place.heat(
                &mut sheet,
                (cells, *columns, *rows),
                figure.colors.as_ref().map(|(scale, _)| scale),
                graphics,
            );
        }
        Content::Bars { edges, counts } => place.bars(&mut sheet, edges, counts),
        _ => place.dots(&mut sheet, figure.colors.as_ref().map(|(scale, _)| scale)),
    }
    place.axes(&mut sheet, &marks);
    sheet
}

/// The position of a panel on its sheet.
struct PanelGrid<'a> {
    panel: &'a Panel,
    wide: usize,
    high: usize,
    margin: usize,
    top: usize,
}

impl PanelGrid<'_> {
    fn axes(&self, sheet: &mut Sheet, marks: &[ticks::Tick]) {
        for row in 0..self.high {
            sheet.put(self.margin - 1, self.top + row, Cell { character: '│', ..EMPTY });
        }
        for tick in marks {
            let row = (share(&self.panel.y, tick.at, true) * self.high as f64) as usize;
            let row = self.top + row.min(self.high - 1);
            let label = fitted(&tick.label, self.margin - 2);
            sheet.text(self.margin - 2 - label.chars().count(), row, &label);
            sheet.put(self.margin - 1, row, Cell { character: '┤', ..EMPTY });
        }
        let under = self.top + self.high;
        let mut end = 0;
        for tick in self.panel.x.ticks((self.wide / 14).max(2)) {
            let column = (share(&self.panel.x, tick.at, false) * self.wide as f64) as usize;
            let column = self.margin + column.min(self.wide - 1);
            let length = tick.label.chars().count();
            let start = column.saturating_sub(length / 2).max(usize::from(end > 0) + end);
            if start + length <= sheet.columns {
                sheet.text(start, under, &tick.label);
                end = start + length;
            }
        }
        let (x, y) = (&self.panel.x.label, &self.panel.y.label);
        let label = if y.is_empty() { x.clone() } else { format!("{y} ↑   {x} →") };
        sheet.text(self.margin, under + 1, &fitted(&label, self.wide));
    }

    /// Two cells per character: the upper one as foreground, the lower one as background.
    fn heat(
        &self,
        sheet: &mut Sheet,
        (cells, columns, rows): (&[f64], usize, usize),
        scale: Option<&ColorScale>,
        graphics: Graphics,
    ) {
        let Some(scale) = scale else { return };
        let down = self.panel.y.downwards;
        let halves = if graphics == Graphics::Plain { self.high } else { 2 * self.high };
        let (cells, columns, rows) = spread(cells, (columns, rows), self.panel, (8 * self.wide, 8 * halves));
        let cells = resampled(&cells, (columns, rows), (self.wide, halves));
        if graphics == Graphics::Plain {
            for (place, value) in cells.iter().enumerate() {
                let row = if down { place / self.wide } else { self.high - 1 - place / self.wide };
                let character = if value.is_nan() { '·' } else { shade(scale.share(*value)) };
                sheet.put(self.margin + place % self.wide, self.top + row, Cell { character, ..EMPTY });
            }
            return;
        }
        let pixels = heat_pixels(&cells, self.wide, down, scale);
        for row in 0..self.high {
            for column in 0..self.wide {
                let (front, back) =
                    (pixels[2 * row * self.wide + column], pixels[(2 * row + 1) * self.wide + column]);
                let cell = Cell { character: '▀', front: Some(front), back: Some(back) };
                sheet.put(self.margin + column, self.top + row, cell);
            }
        }
    }

    fn bars(&self, sheet: &mut Sheet, edges: &[f64], counts: &[f64]) {
        const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let most = self.panel.y.range.1;
        for column in 0..self.wide {
            let at = (column as f64 + 0.5) / self.wide as f64;
            let bin = ((at * counts.len() as f64) as usize).min(edges.len().saturating_sub(2));
            let eighths =
                (counts.get(bin).copied().unwrap_or(0.0) / most * 8.0 * self.high as f64).round() as usize;
            for row in 0..self.high {
                let filled = eighths.saturating_sub(8 * (self.high - 1 - row)).min(8);
                if filled > 0 {
                    let cell = Cell { character: EIGHTHS[filled], front: Some(ACCENT), back: None };
                    sheet.put(self.margin + column, self.top + row, cell);
                }
            }
        }
    }

    /// Lines and points as Braille: two by four dots per character.
    fn dots(&self, sheet: &mut Sheet, scale: Option<&ColorScale>) {
        let mut braille = Braille::new(self.wide, self.high);
        let x = |at: f64| share(&self.panel.x, at, false) * (2 * self.wide) as f64;
        let y = |at: f64| share(&self.panel.y, at, true) * (4 * self.high) as f64;
        match &self.panel.content {
            Content::Line { points } => {
                for run in points.split(|(_, value)| !value.is_finite()).filter(|run| !run.is_empty()) {
                    for pair in run.windows(2) {
                        braille.line((x(pair[0].0), y(pair[0].1)), (x(pair[1].0), y(pair[1].1)), ACCENT);
                    }
                    braille.dot(x(run[0].0), y(run[0].1), ACCENT);
                }
            }
            Content::Band { pieces } => {
                let (from, to) = self.panel.x.range;
                let each = (to - from) / pieces.len().max(1) as f64;
                for (number, (low, high)) in
                    pieces.iter().enumerate().filter(|(_, piece)| piece.0.is_finite())
                {
                    let at = x(from + (number as f64 + 0.5) * each);
                    braille.line((at, y(*high)), (at, y(*low)), ACCENT);
                }
            }
            Content::Points { points, color, lines } => {
                let at = |row: usize| points.get(row).map(|point| (x(point[0]), y(point[1])));
                let color_of = |row: usize| point_color(color, scale, row);
                for pair in lines.iter().flat_map(|rows| rows.windows(2)) {
                    if let (Some(from), Some(to)) = (at(pair[0]), at(pair[1])) {
                        braille.line(from, to, color_of(pair[0]));
                    }
                }
                for (row, point) in points.iter().enumerate().filter(|_| lines.is_empty()) {
                    braille.dot(x(point[0]), y(point[1]), color_of(row));
                }
            }
            _ => {}
        }
        for (place, (dots, color)) in braille.cells.iter().enumerate().filter(|(_, (dots, _))| *dots > 0) {
            let character = char::from_u32(0x2800 + u32::from(*dots)).unwrap_or(' ');
            let cell = Cell { character, front: *color, back: None };
            sheet.put(self.margin + place % self.wide, self.top + place / self.wide, cell);
        }
    }
}

/// The relative position along an axis, from the left or from the top.
fn share(axis: &Axis, at: f64, vertical: bool) -> f64 {
    let share = axis.share(at);
    if vertical && !axis.downwards { 1.0 - share } else { share }
}

/// A grid of dots, eight per character.
struct Braille {
    wide: usize,
    cells: Vec<(u8, Option<Color>)>,
}

impl Braille {
    fn new(wide: usize, high: usize) -> Self {
        Self { wide, cells: vec![(0, None); wide * high] }
    }

    fn dot(&mut self, x: f64, y: f64, color: Color) {
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        if !(x >= 0.0 && y >= 0.0) {
            return;
        }
        let (x, y) = ((x as usize).min(2 * self.wide - 1), y as usize);
        if let Some(cell) = self.cells.get_mut(y / 4 * self.wide + x / 2) {
            *cell = (cell.0 | BITS[y % 4][x % 2], Some(color));
        }
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), color: Color) {
        let limit = (4 * (self.wide + self.cells.len())) as f64;
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil();
        if !steps.is_finite() {
            return;
        }
        let steps = steps.clamp(1.0, limit);
        for step in 0..=steps as usize {
            let share = step as f64 / steps;
            self.dot(from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share, color);
        }
    }
}

/// Cells combined or repeated to the wanted size.
fn resampled(cells: &[f64], (columns, rows): (usize, usize), (wide, high): (usize, usize)) -> Vec<f64> {
    let range = |number: usize, from: usize, to: usize| {
        let start = number * from / to;
        start..((number + 1) * from / to).max(start + 1)
    };
    let mut out = Vec::with_capacity(wide * high);
    for row in 0..high {
        for column in 0..wide {
            let (mut sum, mut count) = (0.0, 0_u32);
            for y in range(row, rows, high) {
                for x in range(column, columns, wide) {
                    let value = cells[y * columns + x];
                    if !value.is_nan() {
                        sum += value;
                        count += 1;
                    }
                }
            }
            out.push(if count > 0 { sum / f64::from(count) } else { f64::NAN });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_combined_or_repeated() {
        let cells = [1.0, 2.0, 3.0, f64::NAN];
        assert_eq!(resampled(&cells, (2, 2), (1, 1)), [2.0]);
        assert_eq!(resampled(&cells[..2], (2, 1), (4, 1)), [1.0, 1.0, 2.0, 2.0]);
        assert!(resampled(&cells[3..], (1, 1), (1, 1))[0].is_nan());
    }

    #[test]
    fn shortened_labels_keep_their_unit() {
        assert_eq!(fitted("2 metre temperature [K]", 30), "2 metre temperature [K]");
        assert_eq!(fitted("2 metre temperature [K]", 16), "2 metre tem… [K]");
        assert_eq!(fitted("a very long\x1b title", 8), "a very …");
        assert_eq!(fitted("ab", 0), "");
    }

    #[test]
    fn colours_of_the_palette_are_near() {
        assert_eq!(palette_index(Color::rgb(255, 0, 0)), 196);
        assert_eq!(palette_index(Color::rgb(0, 0, 0)), 16);
        assert_eq!(palette_index(Color::rgb(128, 128, 128)), 244);
    }

    #[test]
    fn dots_are_in_place() {
        let mut braille = Braille::new(2, 1);
        braille.dot(0.0, 0.0, ACCENT);
        braille.dot(3.0, 3.0, ACCENT);
        braille.dot(f64::NAN, 0.0, ACCENT);
        assert_eq!((braille.cells[0].0, braille.cells[1].0), (0x01, 0x80));
    }
}
