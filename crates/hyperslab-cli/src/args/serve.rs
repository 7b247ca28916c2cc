//! Arguments of `tet serve`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

use super::StorageArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet serve data.h5 --open                 one file in the browser
  tet serve data/ --port 9000              every store below a folder
  tet serve --demo --open                  the samples of tet demo
  tet serve data/ --host 0.0.0.0           accept other machines; prints a token

Zarr readers find each store at http://127.0.0.1:8642/zarr/NAME.")]
pub(crate) struct ServeArgs {
    /// File, directory, folder of stores or URL
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath, required_unless_present = "demo")]
    pub(crate) path: Option<PathBuf>,

    /// Serve the samples of `tet demo`, creating them if they are missing
    #[arg(long, conflicts_with = "path")]
    pub(crate) demo: bool,

    /// Port to listen on; 0 chooses a free one
    #[arg(long, default_value_t = 8642)]
    pub(crate) port: u16,

    /// Address to listen on; addresses other than loopback require a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,

    /// Open the page in a browser
    #[arg(long)]
    pub(crate) open: bool,

    /// Refuse requests without this token [default on non-loopback addresses: a random token, which is printed]
    #[arg(long, env = "HYPERSLAB_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,

    /// Listen on a non-loopback address without a token
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Allow pages of this origin to read responses, such as https://example.org; * for any (repeatable)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,

    /// Also accept requests for this host name (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,

    /// Memory for requests and cached responses, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(16..1 << 24))]
    pub(crate) memory: u64,

    /// Timeout of a request, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..86_400))]
    pub(crate) timeout: u64,

    /// Folder of a page to serve instead of the built-in one, as built by `cargo xtask page`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) page: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) storage: StorageArgs,
}
