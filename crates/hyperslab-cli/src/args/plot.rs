//! Arguments of `tet plot`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet plot data.nc /t 'time[0]'            a heatmap in the terminal
  tet plot data.nc /t -o maps.png          small multiples along the first dimension
  tet plot data.nc /t 'lat~50' 'lon~8'     a line
  tet plot data.h5 /x --hist 100 -o x.svg  a histogram
  tet plot neurons.zv -o neurons.png       the points and lines of a geometry")]
pub(crate) struct PlotArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Node (optional if the file has only one) and selections
    #[arg(value_name = "NODE | SELECTION")]
    pub(crate) what: Vec<String>,

    /// Write the figure to a file: .png, .svg, or .json for the reduced data
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Replace OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Draw a histogram of all selected values, with this many bins
    #[arg(long, value_name = "BINS", num_args = 0..=1, default_missing_value = "50")]
    pub(crate) hist: Option<usize>,

    /// Plot stored values; ignore missing-value markers, scale_factor and add_offset
    #[arg(long)]
    pub(crate) raw: bool,

    /// How to combine cells that share a pixel [default: minmax for lines, mean for heatmaps]
    #[arg(long, value_name = "HOW", value_parser = ["mean", "min", "max", "minmax"])]
    pub(crate) reduce: Option<String>,

    /// Colour map: viridis, magma, inferno, plasma, cividis, turbo, gray, rdbu …; NAME_r reverses it
    #[arg(long, value_name = "NAME")]
    pub(crate) cmap: Option<String>,

    /// Range of the colours, or of a line's value axis
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub(crate) range: Option<String>,

    /// Percentiles that get the first and the last colour
    #[arg(long, value_name = "LOW,HIGH", default_value = "1,99", conflicts_with = "range")]
    pub(crate) percentiles: String,

    /// Maximum number of panels for a three-dimensional selection
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub(crate) panels: usize,

    /// The number to plot of complex values
    #[arg(long, value_name = "PART", value_parser = ["magnitude", "phase", "real", "imaginary"], default_value = "magnitude")]
    pub(crate) part: String,

    /// Title of the figure
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,

    /// Size of the figure, in logical pixels
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "720x460")]
    pub(crate) size: String,

    /// Pixels per logical pixel in a PNG
    #[arg(long, value_name = "FACTOR", default_value_t = 2.0)]
    pub(crate) scale: f32,

    /// How to draw in the terminal [default: the best that the terminal is known to support]
    #[arg(long, value_name = "HOW", value_parser = ["kitty", "sixel", "truecolor", "palette", "plain"])]
    pub(crate) graphics: Option<String>,

    /// Print the reduced data as JSON
    #[arg(long, conflicts_with = "output")]
    pub(crate) json: bool,

    /// Geometry: the two axes to draw, such as x,z
    #[arg(long, value_name = "X,Y")]
    pub(crate) axes: Option<String>,

    /// Geometry: colour points by an axis or a vertex attribute
    #[arg(long, value_name = "NAME")]
    pub(crate) color_by: Option<String>,

    /// Geometry: draw only this closed box, as x0,y0,z0,x1,y1,z1
    #[arg(long = "box", value_name = "CORNERS", allow_hyphen_values = true)]
    pub(crate) region: Option<String>,

    /// Geometry: draw only this object; repeatable
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) object: Vec<i64>,

    /// Geometry: draw only the objects of this group; repeatable
    #[arg(long, value_name = "G")]
    pub(crate) group: Vec<u64>,

    /// Geometry: level of detail; 0 is the finest
    #[arg(long, value_name = "K")]
    pub(crate) level: Option<usize>,

    /// Memory limit for chunks and partial results, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
}
