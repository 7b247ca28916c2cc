//! Arguments of `tet read`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet read data.tet                        the only array
  tet read data.tet /t '[0, 10:20, ::2]'   by position, as in NumPy
  tet read data.tet /t 'time[3:7]'         along a named dimension
  tet read data.tet /t 'x=-5..5'           by coordinate label, both ends included
  tet read s3://bucket/data.zarr /t '[3]' --explain
  tet read data.tet /t -o out.npy          .npy, .json, .csv, .arrow or .parquet by extension
  tet read trades.tdb 'day=2020-01..2020-02' --columns price,volume
  tet read cells.tiledb --where \"count > 50 and type == 'NK'\"
  tet read cells.zv --box 0,0,0,10,10,10 -o part.ply")]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Node (optional if the file has only one) and selections
    #[arg(value_name = "NODE | SELECTION")]
    pub(crate) what: Vec<String>,

    /// Columns of a table, members of structs or attributes of a geometry to read
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,

    /// Table: read only rows that meet a condition, such as "count > 50 and type in ('NK', 'B')"; repeatable. A date
    /// means the whole day (or month, or year): "t <= '2020-01-05'" includes that day
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) conditions: Vec<String>,

    /// Geometry: read only this closed box, as x0,y0,z0,x1,y1,z1
    #[arg(long = "box", value_name = "CORNERS", allow_hyphen_values = true)]
    pub(crate) region: Option<String>,

    /// Geometry: read only this object; repeatable
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) object: Vec<i64>,

    /// Geometry: read only the objects of this group; repeatable
    #[arg(long, value_name = "G", hide_short_help = true)]
    pub(crate) group: Vec<u64>,

    /// Geometry and multiscale images: level of detail; 0 is the finest
    #[arg(long, value_name = "K")]
    pub(crate) level: Option<usize>,

    /// Write to a file: .npy, .json, .csv, .arrow or .parquet, by its extension
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Replace OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Decode values by the file's conventions: scale_factor, add_offset, missing values, dates [default for .csv, .arrow and
    /// .parquet]
    #[arg(long)]
    pub(crate) decode: bool,

    /// Write stored values to .csv, .arrow and .parquet
    #[arg(long, conflicts_with = "decode")]
    pub(crate) raw: bool,

    /// Print all values instead of a summary
    #[arg(long, hide_short_help = true)]
    pub(crate) full: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Show the chunks, bytes, requests and memory that the read needs, without reading values
    #[arg(long, conflicts_with_all = ["output", "columns", "conditions"])]
    pub(crate) explain: bool,

    /// Memory limit for the result, such as 4GiB
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub(crate) memory: Option<String>,
}

impl ReadArgs {
    /// Returns true if values are decoded by the file's conventions.
    pub(crate) fn decodes(&self) -> bool {
        let output = self.output.as_deref();
        self.decode || !self.raw && output.is_some_and(hyperslab::rows::takes_decoded)
    }

    /// Returns true if an option was given that only applies to a geometry.
    pub(crate) const fn is_geometric(&self) -> bool {
        self.region.is_some() || !self.object.is_empty() || !self.group.is_empty()
    }
}
