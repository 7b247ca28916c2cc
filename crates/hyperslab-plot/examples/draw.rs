//! Draws a node of a store: `draw FILE NODE OUT.png [SELECTION …]`; `OUT` of `-` draws in the terminal.

use hyperslab::Selection;
use hyperslab_plot::terminal::Graphics;
use hyperslab_plot::{PlotOptions, plot};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, node, out, selections @ ..] = words.as_slice() else {
        return Err("expected FILE NODE OUT [SELECTION …]".into());
    };
    let mut selection = Selection::all();
    for part in selections {
        selection = selection.and(part.parse()?);
    }
    let figure = plot(&hyperslab::open(file)?, node, &selection, &PlotOptions::default())?;
    if out == "-" {
        let drawn = figure.to_terminal(Graphics::TrueColor, (80, 24))?;
        std::io::Write::write_all(&mut std::io::stdout(), drawn.as_bytes())?;
    } else {
        figure.write(out.as_ref(), (720.0, 460.0), 2.0, true)?;
    }
    Ok(())
}
