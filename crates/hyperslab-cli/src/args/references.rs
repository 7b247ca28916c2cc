//! Arguments of `tet references`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet references climate.h5 -o climate.json            open with xarray's kerchunk engine or tet
  tet references climate.h5 -o climate.parq            Parquet files, which readers load on demand
  tet references climate.h5 --url s3://b/climate.h5    references to where the file will be")]
pub(crate) struct ReferencesArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Output file (.json) or directory (.parq) [default: print JSON]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Where readers find the file [default: its absolute path]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// Maximum number of bytes of one array to copy into the document
    #[arg(long, value_name = "BYTES")]
    pub(crate) inline_limit: Option<u64>,

    /// Replace an existing output file
    #[arg(long)]
    pub(crate) force: bool,
}
