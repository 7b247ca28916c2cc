//! Pictures of arrays and geometries in any format.
//!
//! [`plot`] creates a [`Figure`] of a node: a line for one dimension, a heatmap for two, small multiples for three, a
//! histogram, or the points and lines of a geometry. Arrays are reduced chunk by chunk to the pixels of the figure
//! ([`Group::Pieces`](hyperslab::query::Group::Pieces)), so memory does not grow with them. A figure is plain data
//! that can be drawn as PNG, as SVG or in a terminal.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("x.npy");
//! # let values = hyperslab::Values::new(hyperslab::DType::UInt8, &[2, 3], hyperslab::Elements::fixed(vec![0, 1, 2, 3, 4, 5]))?;
//! # hyperslab::export::write(&values, &path, false)?;
//! use hyperslab_plot::{PlotOptions, plot};
//!
//! let store = hyperslab::open(&path)?;
//! let figure = plot(&store, "/", &hyperslab::Selection::all(), &PlotOptions::default())?;
//! let png = figure.to_png((720.0, 460.0), 2.0)?;
//! assert!(png.starts_with(b"\x89PNG"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | `make`, `points` | creates figures from nodes |
//! | `figure` | [`Figure`]: the content of a figure |
//! | `axis`, `ticks` | coordinates, round numbers, dates in CF's calendars |
//! | `color` | colour maps and colour scales |
//! | `layout`, `content` | converts figures to shapes |
//! | `scene`, `raster`, `svg`, `text` | shapes, as pixels and as SVG |
//! | [`terminal`] | half blocks and Braille dots; the graphics protocols of kitty and sixel |
#![forbid(unsafe_code)]

mod axis;
mod color;
mod content;
mod figure;
mod layout;
mod make;
mod points;
mod raster;
mod samples;
mod scene;
mod svg;
pub mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod ticks;

use std::path::Path;

use hyperslab::{Error, Result, export};

pub use axis::Axis;
pub use color::{ColorMap, ColorScale};
pub use figure::{Content, Figure, Panel, PointColor};
pub use make::{PlotOptions, Reduction, plot};
pub use scene::Color;
pub use ticks::Tick;

impl Figure {
    /// Draws a PNG on a page of at most this size in logical pixels, with `scale` by `scale` pixels each.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a page that is empty or too large.
    pub fn to_png(&self, size: (f32, f32), scale: f32) -> Result<Vec<u8>> {
        raster::png(&raster::draw(&layout::scene(self, size), scale)?)
    }

    /// Draws an SVG document.
    ///
    /// # Errors
    ///
    /// Like [`to_png`](Self::to_png).
    pub fn to_svg(&self, size: (f32, f32)) -> Result<String> {
        svg::write(&layout::scene(self, size))
    }

    /// Writes the figure to a file. The extension of `path` selects the form: `.png`, `.svg` or `.json`. The file
    /// appears complete or not at all.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for another extension, [`Exists`](Error::Exists) if the file exists and `replace` is
    /// false; [`Io`](Error::Io) if the system reports an error.
    pub fn write(&self, path: &Path, size: (f32, f32), scale: f32, replace: bool) -> Result<()> {
        let bytes = match extension(path)? {
            "png" => self.to_png(size, scale)?,
            "svg" => self.to_svg(size)?.into_bytes(),
            _ => format!("{}\n", self.to_json()).into_bytes(),
        };
        export::write_bytes(&bytes, path, replace)
    }
}

/// The form that the extension of a path selects.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an unknown extension.
pub fn extension(path: &Path) -> Result<&'static str> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    ["png", "svg", "json"].into_iter().find(|known| *known == ending).ok_or_else(|| {
        Error::invalid(format!("{}: pictures are written as .png, .svg or .json", path.display()))
    })
}
