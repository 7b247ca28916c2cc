//! `tet plot`: draws a node, in the terminal or to a file.

use std::io::IsTerminal;

use hyperslab::geometry::parse_box;
use hyperslab::{Error, GeometryQuery, RealPart, Result};
use hyperslab_plot::terminal::Graphics;
use hyperslab_plot::{ColorMap, PlotOptions, Reduction, plot};

use crate::args::PlotArgs;
use crate::{Answer, address, output, paint, pretty};

/// The size of a terminal that does not report it.
const COLUMNS: usize = 80;
const ROWS: usize = 24;

pub(crate) fn run(args: &PlotArgs) -> Result<Answer> {
    let (node, selection) = address::node_and_selection(&args.what)?;
    let mut open = super::open_options(&args.open)?;
    if let Some(memory) = &args.memory {
        open = open.with_memory(pretty::parse_bytes(memory)?);
    }
    // Reject unknown extensions before anything is read.
    args.output.as_deref().map(hyperslab_plot::extension).transpose()?;
    let size = size(&args.size)?;
    let graphics = graphics(args)?;
    let terminal = terminal_size();
    let pixels = match &args.output {
        _ if args.json => scaled(size, 1.0),
        Some(_) => scaled(size, args.scale),
        None => graphics.pixels(terminal),
    };
    let store = hyperslab::open_with(&args.open.path, &open)?;
    let (node, selection) = address::chosen_node(&store, node, selection)?;
    let figure = plot(&store, &node, &selection, &options(args, pixels)?)?;
    match &args.output {
        Some(path) => {
            super::write_at(path, args.force, &args.open, |path, force| {
                figure.write(path, size, args.scale, force)
            })?;
            let name = hyperslab::location_name(path);
            output::report(|err| writeln!(err, "{} {name}", paint::good("✓")))?;
        }
        None if args.json => output::print_json(&figure.to_json())?,
        None => {
            let drawn = figure.to_terminal(graphics, terminal)?;
            output::print_raw(&drawn)?;
        }
    }
    Ok(Answer::Yes)
}

fn options(args: &PlotArgs, pixels: (u32, u32)) -> Result<PlotOptions> {
    let reduction = args.reduce.as_deref().map(|how| match how {
        "min" => Reduction::Min,
        "max" => Reduction::Max,
        "minmax" => Reduction::MinMax,
        _ => Reduction::Mean,
    });
    let axes = args.axes.as_deref().map(|axes| match axes.split_once(',') {
        Some((x, y)) => Ok((x.trim().to_owned(), y.trim().to_owned())),
        None => Err(Error::invalid(format!("--axes {axes}: expected two names such as x,z"))),
    });
    let part = match args.part.as_str() {
        "phase" => RealPart::Phase,
        "real" => RealPart::Real,
        "imaginary" => RealPart::Imaginary,
        _ => RealPart::Magnitude,
    };
    Ok(PlotOptions::default()
        .with_pixels(pixels)
        .with_reduction(reduction)
        .with_map(args.cmap.as_deref().map(ColorMap::named).transpose()?)
        .with_range(args.range.as_deref().map(|range| pair(range, ',', "--range")).transpose()?)
        .with_percentiles(pair(&args.percentiles, ',', "--percentiles")?)
        .with_histogram(args.hist)
        .with_raw(args.raw)
        .with_panels(args.panels)
        .with_part(part)
        .with_geometry(GeometryQuery {
            level: args.level,
            region: args.region.as_deref().map(parse_box).transpose()?,
            objects: args.object.clone(),
            groups: args.group.clone(),
            attributes: None,
        })
        .with_axes(axes.transpose()?)
        .with_color_by(args.color_by.clone())
        .with_title(args.title.clone()))
}

/// Parses two numbers with a separator.
fn pair(text: &str, between: char, option: &str) -> Result<(f64, f64)> {
    let numbers = text
        .split_once(between)
        .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)));
    numbers.ok_or_else(|| {
        Error::invalid(format!("{option} {text}: expected two numbers separated by {between:?}"))
    })
}

fn size(text: &str) -> Result<(f32, f32)> {
    let (width, height) = pair(text, 'x', "--size")?;
    if !(width >= 100.0 && height >= 100.0 && width <= 10_000.0 && height <= 10_000.0) {
        return Err(Error::invalid(format!("--size {text}: expected 100x100 to 10000x10000")));
    }
    Ok((width as f32, height as f32))
}

fn scaled((width, height): (f32, f32), scale: f32) -> (u32, u32) {
    ((width * scale).max(1.0) as u32, (height * scale).max(1.0) as u32)
}

/// The graphics to use: as requested, or what the terminal supports. Other outputs get plain characters.
fn graphics(args: &PlotArgs) -> Result<Graphics> {
    if let Some(chosen) = &args.graphics {
        return chosen.parse();
    }
    if !std::io::stdout().is_terminal() {
        return Ok(Graphics::Plain);
    }
    Ok(Graphics::detect(|name| std::env::var(name).ok()))
}

/// Columns and rows of the terminal; `COLUMNS` and `LINES` if there is none.
fn terminal_size() -> (usize, usize) {
    if let Some((terminal_size::Width(columns), terminal_size::Height(rows))) = terminal_size::terminal_size()
    {
        return (usize::from(columns), usize::from(rows));
    }
    let variable = |name: &str| std::env::var(name).ok()?.parse().ok().filter(|size| *size > 0);
    (variable("COLUMNS").unwrap_or(COLUMNS), variable("LINES").unwrap_or(ROWS))
}
