//! The results as a Markdown table, and the table of the README.

use std::fmt::Write;
use std::path::Path;

use crate::harness::{Outcome, say};
use crate::results::{Line, Results, is_bound, time};
use crate::{machine, picture, summary};

/// Writes `RESULTS.md` and `results.svg` beside the results.
pub(crate) fn write(results: &Results, python: Option<&Path>) -> Outcome {
    std::fs::create_dir_all(&results.folder)?;
    let table = results.folder.join("RESULTS.md");
    std::fs::write(&table, markdown(results, &machine::facts(python))?)?;
    std::fs::write(results.folder.join("results.svg"), picture::draw(&results.lines))?;
    // Committed results also appear in the README.
    let page = results.folder.join("../README.md");
    if page.exists() {
        summary::write(&results.lines, &page)?;
    }
    say(&format!("written: {}", table.display()));
    Ok(())
}

fn markdown(results: &Results, facts: &[(String, String)]) -> Outcome<String> {
    let mut text = String::from(
        "# Speed compared with the reference libraries\n\n\
         Written by `cargo xtask bench`; `cargo xtask bench WORD …` repeats the cases whose name contains the word, or those of\n\
         that area, and keeps the other rows. Each figure is the median of several runs after a warm-up. The ratio compares\n\
         times of one run, the peer's to ours: above 1 we are faster. *Italics* are lower bounds, not peers: copying bytes,\n\
         decoding frames or summing in memory, and nothing else.\n\n\
         ![ratios](results.svg)\n\n",
    );
    for (name, value) in facts {
        writeln!(text, "- {name}: {value}")?;
    }
    for area in areas(&results.lines) {
        writeln!(
            text,
            "\n## {area}\n\n| case | size | ours | peer | ratio | note |\n|---|---|---|---|---|---|"
        )?;
        for line in results.lines.iter().filter(|line| line.area == area) {
            row(&mut text, line)?;
        }
    }
    Ok(text)
}

fn row(text: &mut String, line: &Line) -> Outcome {
    let start = format!("| {} | {} | {} |", line.case, line.size(), time(line.ours()));
    if line.peers().is_empty() {
        writeln!(text, "{start} | | {} |", line.note)?;
    }
    for (name, seconds) in line.peers() {
        let mark = if is_bound(name) { "*" } else { "" };
        let ratio = seconds / line.ours();
        writeln!(text, "{start} {mark}{name}{mark} {} | **{ratio:.2}×** | {} |", time(seconds), line.note)?;
    }
    Ok(())
}

/// The areas, in the order of their first rows.
pub(crate) fn areas(lines: &[Line]) -> Vec<&str> {
    let mut areas: Vec<&str> = Vec::new();
    for line in lines {
        if !areas.contains(&line.area.as_str()) {
            areas.push(&line.area);
        }
    }
    areas
}
