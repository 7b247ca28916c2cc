//! The ratios as a chart: one row per case, one mark per contender, times on a logarithmic axis where ours is 1.

use std::fmt::Write;

use crate::report::areas;
use crate::results::{Line, is_bound};

const ROW: f64 = 17.0;
const LABELS: f64 = 330.0;
const WIDTH: f64 = 980.0;
const TOP: f64 = 58.0;
const MARGIN: f64 = 24.0;
/// The range of the axis, in powers of ten.
const LOW: f64 = -1.0;
const HIGH: f64 = 3.0;

/// Draws the chart of all rows that have a ratio.
pub(crate) fn draw(lines: &[Line]) -> String {
    let shown: Vec<&Line> =
        lines.iter().filter(|line| !line.peers().is_empty() && line.ours() > 0.0).collect();
    let areas: Vec<&str> =
        areas(lines).into_iter().filter(|area| shown.iter().any(|l| l.area == *area)).collect();
    let height = TOP + ROW * (shown.len() as f64 + 1.4 * areas.len() as f64) + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"system-ui, sans-serif\" font-size=\"11\">\n\
         <rect width=\"{WIDTH}\" height=\"{height:.0}\" fill=\"#fff\"/>\n\
         <text x=\"12\" y=\"20\" font-size=\"14\" font-weight=\"600\">Time of each contender, ours = 1 (right of the line: slower than us)</text>\n"
    );
    legend(&mut svg);
    axis(&mut svg, height);
    let mut y = TOP;
    for area in areas {
        y += ROW * 1.4;
        text(&mut svg, 12.0, y - 4.0, "font-weight=\"600\" fill=\"#0b5\"", area);
        for line in shown.iter().filter(|line| line.area == area) {
            row(&mut svg, y, line);
            y += ROW;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn row(svg: &mut String, y: f64, line: &Line) {
    let middle = y + ROW / 2.0;
    text(svg, 20.0, middle + 4.0, "fill=\"#222\"", &line.case);
    let peers = line.peers();
    let mut slowest = place(1.0);
    for (name, seconds) in &peers {
        let ratio = seconds / line.ours();
        let x = place(ratio);
        let (colour, radius) = if is_bound(name) { ("#999", 3.0) } else { ("#06c", 4.5) };
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"{radius}\" fill=\"{colour}\"><title>{}: {ratio:.2}×</title></circle>",
            escaped(name)
        );
        slowest = f64::max(slowest, x);
    }
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" x2=\"{slowest:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" stroke=\"#06c\" stroke-opacity=\"0.25\" stroke-width=\"5\"/>",
        place(1.0)
    );
    // Name the fastest contender that does the same work; a bound only if there is none.
    if let Some((name, seconds)) = peers.iter().find(|(name, _)| !is_bound(name)).or(peers.first()) {
        let label = format!("{name} {:.2}×", seconds / line.ours());
        text(svg, slowest + 8.0, middle + 4.0, "fill=\"#555\" font-size=\"10\"", &label);
    }
}

fn legend(svg: &mut String) {
    let (x, y) = (LABELS, 38.0);
    let _ = writeln!(svg, "<circle cx=\"{x}\" cy=\"{}\" r=\"4.5\" fill=\"#06c\"/>", y - 4.0);
    text(svg, x + 9.0, y, "fill=\"#222\"", "a peer doing the same work");
    let _ = writeln!(svg, "<circle cx=\"{}\" cy=\"{}\" r=\"3\" fill=\"#999\"/>", x + 190.0, y - 4.0);
    text(svg, x + 199.0, y, "fill=\"#222\"", "a bound: copying, decoding or summing in memory, alone");
}

fn axis(svg: &mut String, height: f64) {
    for (ratio, label) in
        [(0.1, "0.1"), (0.5, "0.5"), (1.0, "1"), (2.0, "2"), (10.0, "10"), (100.0, "100"), (1000.0, "1000")]
    {
        let x = place(ratio);
        let (colour, width) = if label == "1" { ("#333", 1.5) } else { ("#ddd", 1.0) };
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
            height - MARGIN
        );
        text(svg, x - 4.0, TOP - 4.0, "fill=\"#555\"", label);
        text(svg, x - 4.0, height - MARGIN + 14.0, "fill=\"#555\"", label);
    }
}

/// The position of a ratio on the axis.
fn place(ratio: f64) -> f64 {
    let share = (ratio.max(f64::MIN_POSITIVE).log10().clamp(LOW, HIGH) - LOW) / (HIGH - LOW);
    LABELS + share * (WIDTH - LABELS - 130.0)
}

fn text(svg: &mut String, x: f64, y: f64, style: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>", escaped(words));
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn ratios_are_in_order_and_names_are_escaped() {
        assert!(place(0.5) < place(1.0) && place(1.0) < place(3.0));
        assert_eq!(place(1e9), place(1e3));
        let seconds = BTreeMap::from([("hyperslab".to_owned(), 1.0), ("a<b".to_owned(), 2.0)]);
        let line =
            Line { area: "x".into(), case: "y & z".into(), mebibytes: 1, seconds, note: String::new() };
        let svg = draw(&[line]);
        assert!(svg.contains("a&lt;b: 2.00×") && svg.contains("y &amp; z") && svg.ends_with("</svg>\n"));
    }
}
