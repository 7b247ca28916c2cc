//! Arguments of `tet convert`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

use super::OpenOptionsArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet convert data.npy data.tet
  tet convert data.tet data.npz --node /t
  tet convert data.npy data.tet --chunks 64,64,64 --filter zstd:3
  tet convert 'data/*.nc' all.zarr --concat time              join many files along time
  tet convert era5.nc era5.zarr --chunks time=31,lat=73 --keep t2m --rename t2m=temperature
  tet convert table.tiledb table.parquet                      also .arrow and .csv
  tet convert cells.parquet cells.tiledb --dimensions x,y     rows to a sparse array
  tet convert points.csv points.zv --levels 2                 columns x, y, z to points
  tet convert mesh.npz mesh.zv                                arrays vertices, faces … to a mesh
  tet convert cells.h5 cells.ome.zarr --levels 4              an OME-Zarr image of five levels")]
pub(crate) struct ConvertArgs {
    /// Input: file, directory, URL (https://…, s3://bucket/…) or quoted pattern; several with --concat
    #[arg(value_name = "IN", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Output path, or URL of a bucket; the format follows from its extension
    #[arg(value_name = "OUT", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) out: PathBuf,

    #[command(flatten)]
    pub(crate) open: OpenOptionsArgs,

    /// Join all inputs along this dimension, in the order of its coordinate
    ///
    /// Arrays without the dimension must be equal in all inputs. Times that count from different dates are converted to the
    /// units of the earliest input. Gaps are reported; overlaps and other disagreements are errors.
    #[arg(long, value_name = "DIMENSION")]
    pub(crate) concat: Option<String>,

    /// How to treat attributes that differ between joined inputs: first (keep the first), common (leave out), same (fail)
    #[arg(long, value_name = "RULE", value_parser = ["first", "common", "same"], default_value = "first", hide_short_help = true)]
    pub(crate) merge_attributes: String,

    /// Rename a node, a dimension or a column of a table; repeatable
    #[arg(long, value_name = "OLD=NEW")]
    pub(crate) rename: Vec<String>,

    /// Leave out this node and its children, or this column of a table; repeatable, or separated by commas
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    pub(crate) drop: Vec<String>,

    /// Convert only this node, its children and its coordinates, or this column of a table; repeatable, or separated by commas
    #[arg(long, value_name = "NODE", value_delimiter = ',', conflicts_with = "node")]
    pub(crate) keep: Vec<String>,

    /// Output format: hdf5, hdf5-earliest, hdf5-2.0, netcdf4, netcdf3, 64-bit-offset, cdf5, zarr2, zarr3, tiledb, tet, npy, npz
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,

    /// Restrict to this node and its children
    #[arg(long)]
    pub(crate) node: Option<String>,

    /// Multiscale images: convert only this level; 0 is the finest
    #[arg(long, value_name = "K", conflicts_with = "concat", hide_short_help = true)]
    pub(crate) level: Option<usize>,

    /// Convert only this part; repeatable
    ///
    /// Every array is cut along the named dimensions (`time[3:7]`, `lat=30..60`); arrays without them are copied as a
    /// whole. An index such as `time[3]` drops the dimension, and its coordinate becomes a scalar. With --node, the node's
    /// coordinates, bounds, grid mapping, ancillary variables and cell measures are included. A selection by position
    /// (`[0, 10:20]`) needs one array, or arrays of the same dimensions; coordinates and the like do not count.
    #[arg(long, value_name = "SELECTION")]
    pub(crate) select: Vec<String>,

    /// Chunks: a shape (64,64,64), extents by dimension (time=31,lat=73; lat=all), a size (4MiB) or auto; for geometry,
    /// the extents of a chunk in space
    #[arg(long, value_name = "SHAPE")]
    pub(crate) chunks: Option<String>,

    /// Axes to make unlimited, by number or name, in every array that has them (HDF5, NetCDF)
    #[arg(long, value_name = "AXES", value_delimiter = ',')]
    pub(crate) unlimited: Vec<String>,

    /// Shard shape (Zarr), such as 512,512,512; a single number applies to all axes, rounded up to whole chunks
    #[arg(long, value_name = "SHAPE", value_delimiter = ',')]
    pub(crate) shards: Option<Vec<u64>>,

    /// Filters, such as shuffle,zstd:3, or 'none' [default: the source's filters]
    #[arg(long, value_name = "FILTERS")]
    pub(crate) filter: Option<String>,

    /// Page size (HDF5), such as 64KiB, for few requests on remote storage; 0 for none [default: as the source]
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub(crate) page_size: Option<String>,

    /// File whose bytes become the user block (HDF5), padded to 512, 1024, 2048 … bytes; 'none' removes it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub(crate) user_block: Option<PathBuf>,

    /// Table: columns that become the dimensions of a sparse array
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) dimensions: Vec<String>,

    /// Table: allow several rows with the same coordinates
    #[arg(long, hide_short_help = true)]
    pub(crate) duplicates: bool,

    /// Table: order of the rows: row-major, column-major or hilbert
    #[arg(long, value_name = "ORDER", hide_short_help = true)]
    pub(crate) order: Option<String>,

    /// Kind of geometry, such as point_cloud, streamline or mesh (.zv)
    ///
    /// From a table, the columns x, y, z (or its dimensions) are the positions, and object_id (or object, ids) the objects. From
    /// arrays, these names are read: vertices, positions, points or coordinates; links, edges or faces; object_id, object or ids.
    /// Every other numeric column or array with one row per vertex becomes an attribute.
    #[arg(long, value_name = "KIND", hide_short_help = true)]
    pub(crate) geometry: Option<String>,

    /// Number of coarser levels of the geometry (.zv), or of the image (.zarr: OME-Zarr)
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) levels: usize,

    /// How to compute coarser levels of an image: mean, mode (for labels) or nearest
    #[arg(
        long,
        value_name = "METHOD",
        requires = "levels",
        default_value = "mean",
        hide_default_value = true,
        hide_short_help = true
    )]
    pub(crate) downsample: String,

    /// Replace OUT if it is a store or an empty folder; other folders and symbolic links are kept
    #[arg(long)]
    pub(crate) force: bool,

    /// Wait until OUT is on disk, so that it survives a power cut; replacing or changing a store always does
    #[arg(long, hide_short_help = true)]
    pub(crate) sync: bool,

    /// Add to OUT if it exists (.tet, HDF5, Zarr: new arrays; TileDB: a new fragment over the same arrays, or more rows;
    /// Zarr Vectors: more vertices, objects and links)
    #[arg(long, conflicts_with = "force")]
    pub(crate) append: bool,

    /// Fail if the output format cannot hold everything; write nothing
    #[arg(long, hide_short_help = true)]
    pub(crate) strict: bool,

    /// Exit with 0 even if the output format cannot hold everything
    #[arg(long, conflicts_with = "strict", hide_short_help = true)]
    pub(crate) skip_unsupported: bool,

    /// Write stored values to .csv, .arrow and .parquet, which otherwise get values decoded by the file's conventions
    #[arg(long, hide_short_help = true)]
    pub(crate) raw: bool,

    /// Copy the values of virtual arrays instead of keeping them virtual
    #[arg(long, hide_short_help = true)]
    pub(crate) materialise: bool,

    /// Record the source in an attribute of the root
    #[arg(long, hide_short_help = true)]
    pub(crate) provenance: bool,

    /// Memory limit for data being copied, such as 256MiB
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub(crate) memory: Option<String>,

    /// Print only warnings
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
