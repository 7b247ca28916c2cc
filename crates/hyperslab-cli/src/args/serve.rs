//! Arguments of `tet serve`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

use super::StorageArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet serve data.h5 --open                 one file, in the browser
  tet serve data/ --port 9000              every store below a folder
  tet serve --demo --open                  the samples of tet demo
  tet serve data/ --host 0.0.0.0           other machines too, with a token

Zarr readers find each store at http://127.0.0.1:8642/zarr/NAME.")]
pub(crate) struct ServeArgs {
    /// File, directory, folder of stores or URL
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath, required_unless_present = "demo")]
    pub(crate) path: Option<PathBuf>,

    /// Serve the samples of `tet demo`, which are made first where they are missing
    #[arg(long, conflicts_with = "path")]
    pub(crate) demo: bool,

    /// Port to listen on; 0 chooses a free one
    #[arg(long, default_value_t = 8642)]
    pub(crate) port: u16,

    /// Address to listen on; any but a loopback address needs a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,

    /// Open the page in a browser
    #[arg(long)]
    pub(crate) open: bool,

    /// Refuse requests without this token [default on other than loopback addresses: a random one, printed]
    #[arg(long, env = "HYPERSLAB_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,

    /// Listen on other than loopback addresses without a token
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Let pages of this origin read answers, such as https://example.org; * for any (repeatable)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,

    /// Answer to this host name, too (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,

    /// Memory for work and for answers that are kept, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(16..1 << 24))]
    pub(crate) memory: u64,

    /// Seconds that a request may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..86_400))]
    pub(crate) timeout: u64,

    /// Folder of a page that replaces the built-in one, as `cargo xtask page` makes it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) page: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) storage: StorageArgs,
}
