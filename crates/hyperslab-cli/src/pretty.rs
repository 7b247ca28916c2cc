//! Formats sizes, shapes, tables and arrays for reading.

use std::fmt::Write as _;
use std::io::{self, Write};

use hyperslab::driver::element_to_text;
use hyperslab::{DType, Error, Result, Values};

use crate::paint;

/// Larger arrays are shown by their edges.
const MOST_ELEMENTS: usize = 1000;
/// Elements shown at each end of a long axis.
const EDGE: u64 = 3;
/// Rows of elements are wrapped at this width.
const WIDTH: usize = 100;

/// Bytes in a suitable unit: `1.5 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if value < 10.0 { format!("{value:.2} {unit}") } else { format!("{value:.1} {unit}") }
}

/// A number of things: `1 row`, `2 rows`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// A number with thousands separators: `81,408`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Parses a size: `4GiB`, `256 MB`, `1000`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "kb" => 1e3,
        "m" | "mib" => 1024.0 * 1024.0,
        "mb" => 1e6,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "gb" => 1e9,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "tb" => 1e12,
        _ => return Err(Error::invalid(format!("{text:?} is not a size such as 4GiB"))),
    };
    let number: f64 =
        number.parse().map_err(|_| Error::invalid(format!("{text:?} is not a size such as 4GiB")))?;
    Ok((number * factor) as u64)
}

/// Extents joined by crosses: `365 × 720`; empty for a scalar.
pub(crate) fn shape(extents: &[u64]) -> String {
    if extents.is_empty() {
        return "scalar".to_owned();
    }
    extents.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ")
}

/// Rows of cells in aligned columns under a dim heading; columns whose heading starts with `>` are right-aligned.
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    empty_columns: bool,
}

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self {
            headings: headings.iter().map(|heading| (*heading).to_owned()).collect(),
            rows: Vec::new(),
            empty_columns: false,
        }
    }

    /// Keeps columns that are empty in every row.
    pub(crate) fn with_empty_columns(mut self) -> Self {
        self.empty_columns = true;
        self
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let used =
            |column: usize| self.rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.is_empty()));
        let columns: Vec<usize> =
            (0..self.headings.len()).filter(|column| self.empty_columns || used(*column)).collect();
        let heading = |column: usize| self.headings[column].trim_start_matches('>');
        let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| cell(row, column).chars().count());
            cells.max().unwrap_or(0).max(heading(column).chars().count())
        };
        let widths: Vec<usize> = columns.iter().map(|column| width(*column)).collect();
        let line = |cells: &dyn Fn(usize) -> String| {
            let mut line = String::from(" ");
            for (column, width) in columns.iter().zip(&widths) {
                let cell = cells(*column);
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                let right = self.headings[*column].starts_with('>');
                let _ = if right { write!(line, " {pad}{cell} ") } else { write!(line, " {cell}{pad} ") };
            }
            line.trim_end().to_owned()
        };
        writeln!(out, "{}", paint::dim(line(&|column| heading(column).to_owned())))?;
        for row in &self.rows {
            writeln!(out, "{}", line(&|column| cell(row, column)))?;
        }
        Ok(())
    }
}

/// Values in brackets, as in NumPy; long arrays by their edges unless `full`.
pub(crate) fn write_values(values: &Values, full: bool, out: &mut dyn Write) -> io::Result<()> {
    let edges = !full && values.len() > MOST_ELEMENTS;
    let mut width = 0;
    // Structs and texts vary too much in width to be aligned.
    if values.dtype.is_numeric() || matches!(values.dtype, DType::Bool) {
        each_shown(&values.shape, edges, 0, &mut |index| width = width.max(text(values, index).len()));
    }
    let mut printer = Printer { values, edges, width, out };
    printer.axis(&values.shape, 0, 0)?;
    writeln!(printer.out)
}

fn text(values: &Values, index: usize) -> String {
    if values.elements.is_missing(index) {
        return "_".to_owned();
    }
    match values.dtype {
        DType::String | DType::FixedText(_) | DType::FixedBytes(_) | DType::Bytes => {
            format!("{:?}", element_to_text(&values.dtype, &values.elements, index))
        }
        _ => element_to_text(&values.dtype, &values.elements, index),
    }
}

/// The positions of an axis to show: all, or both ends with a gap.
fn shown(extent: u64, edges: bool) -> Vec<Option<u64>> {
    if !edges || extent <= 2 * EDGE + 1 {
        return (0..extent).map(Some).collect();
    }
    (0..EDGE).map(Some).chain([None]).chain((extent - EDGE..extent).map(Some)).collect()
}

fn each_shown(shape: &[u64], edges: bool, base: usize, visit: &mut impl FnMut(usize)) {
    let [extent, inner @ ..] = shape else { return visit(base) };
    // Values of this shape are in memory, unless an extent is zero.
    let stride = hyperslab::driver::product(inner).unwrap_or(0) as usize;
    for at in shown(*extent, edges).into_iter().flatten() {
        each_shown(inner, edges, base + at as usize * stride, visit);
    }
}

struct Printer<'a> {
    values: &'a Values,
    edges: bool,
    width: usize,
    out: &'a mut dyn Write,
}

impl Printer<'_> {
    fn axis(&mut self, shape: &[u64], base: usize, depth: usize) -> io::Result<()> {
        let [extent, inner @ ..] = shape else {
            return write!(self.out, "{:>width$}", text(self.values, base), width = self.width);
        };
        let stride = inner.iter().product::<u64>() as usize;
        write!(self.out, "[")?;
        let mut column = depth + 1;
        for (number, at) in shown(*extent, self.edges).into_iter().enumerate() {
            if number > 0 {
                if inner.is_empty() && column + self.width + 2 <= WIDTH {
                    write!(self.out, ", ")?;
                } else {
                    let lines = "\n".repeat(inner.len().max(1));
                    write!(self.out, ",{lines}{}", " ".repeat(depth + 1))?;
                    column = depth + 1;
                }
            }
            match at {
                Some(at) => self.axis(inner, base + at as usize * stride, depth + 1)?,
                None => write!(self.out, "…")?,
            }
            column += self.width + 2;
        }
        write!(self.out, "]")
    }
}

#[cfg(test)]
mod tests {
    use hyperslab::Elements;

    use super::*;

    fn printed(shape: &[u64]) -> String {
        let cells = shape.iter().product::<u64>() as u32;
        let bytes: Vec<u8> = (0..cells).flat_map(u32::to_ne_bytes).collect();
        let values = Values::new(DType::UInt32, shape, Elements::fixed(bytes)).unwrap();
        let mut out = Vec::new();
        write_values(&values, false, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn arrays_print_like_numpy() {
        assert_eq!(printed(&[]), "0\n");
        assert_eq!(printed(&[2, 3]), "[[0, 1, 2],\n [3, 4, 5]]\n");
        assert_eq!(printed(&[2, 1, 2]), "[[[0, 1]],\n\n [[2, 3]]]\n");
        assert!(printed(&[2000]).starts_with("[   0,    1,    2, …, 1997,"));
    }

    #[test]
    fn sizes_are_parsed_and_formatted() {
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!(parse_bytes("4GiB").unwrap(), 4 << 30);
        assert_eq!(parse_bytes("1.5 MB").unwrap(), 1_500_000);
        assert!(parse_bytes("many").is_err());
    }
}
