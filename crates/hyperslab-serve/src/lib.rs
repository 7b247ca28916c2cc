//! A read-only web server for stores of any format.
//!
//! | path | response |
//! |---|---|
//! | `/` | the page; `ok` for programs |
//! | `/view/` | the built-in page, even if `/` serves another one |
//! | `/meta`, `/attr`, `/data`, `/paths`, `/stats` | the API of h5grove 4 (used by H5Web), for every format |
//! | `/zarr/STORE/KEY` | the store as a Zarr v3 store, with the codecs of the specification |
//! | `/zarr-numcodecs/STORE/KEY` | the same, for readers that also support the codecs of numcodecs |
//! | `/zarr2/STORE/KEY` | the same as Zarr v2, for programs without Zarr v3 |
//! | `/neuroglancer/STORE/KEY` | geometries as Neuroglancer's precomputed annotations and skeletons |
//! | `/api/…` | stores, nodes, tables and geometries for the built-in page |
//!
//! | module | purpose |
//! |---|---|
//! | `root` | resolves names to locations, never outside the served folder |
//! | `stores` | keeps stores open, and reopens them when their files change |
//! | `connections` | limits the number of connections and disconnects slow clients |
//! | `guard` | the `Host` header, the token, CORS, methods and the length of requests |
//! | `work` | runs engine work on a bounded number of threads, in bounded memory and time; cancels it if the client disconnects |
//! | `answer` | response bodies with `ETag`, ranges and lengths; the response cache; streams |
//! | `grove` | the API of h5grove |
//! | `zarr` | Zarr over HTTP |
//! | `neuroglancer` | annotations and skeletons |
//! | `api` | the built-in page's own API |
//! | `page` | the files of the pages |
//!
//! ```no_run
//! # async fn run() -> hyperslab::Result<()> {
//! use hyperslab_serve::{Server, ServeOptions};
//! let server = Server::new("data".as_ref(), ServeOptions::default())?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await.unwrap();
//! server.serve(listener).await.unwrap();
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod answer;
mod api;
mod connections;
mod grove;
mod guard;
mod neuroglancer;
mod options;
mod page;
mod parameters;
mod root;
mod stores;
mod work;
mod zarr;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;

pub use options::{ServeOptions, random_token};

use answer::Answers;
use hyperslab::Result;
use root::Root;
use stores::Stores;
use work::Work;

/// A server for one location.
#[derive(Debug, Clone)]
pub struct Server(Arc<State>);

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) root: Root,
    pub(crate) stores: Stores,
    pub(crate) work: Arc<Work>,
    pub(crate) answers: Answers,
    pub(crate) options: ServeOptions,
}

impl Server {
    /// Creates a server for a store, a folder of stores or a URL.
    ///
    /// # Errors
    ///
    /// [`Io`](hyperslab::Error::Io) if the location or URL cannot be read, [`Invalid`](hyperslab::Error::Invalid) for a file
    /// that is not a store, an invalid origin, or a page folder without a page.
    pub fn new(location: &Path, options: ServeOptions) -> Result<Self> {
        options.cors.iter().try_for_each(|origin| guard::check_origin(origin))?;
        options.page.as_deref().map_or(Ok(()), page::check)?;
        let root = Root::new(location, &options.open)?;
        // A quarter is for the response cache, the rest for work.
        let kept = options.memory / 4;
        Ok(Self(Arc::new(State {
            stores: Stores::new(&options),
            root,
            work: Arc::new(Work::new(&options, options.memory - kept)),
            answers: Answers::new(kept),
            options,
        })))
    }

    /// The name of the store if a single store is served; `None` for a folder.
    #[must_use]
    pub fn only_store(&self) -> Option<&str> {
        self.0.root.only_store()
    }

    /// The address of the page on a listener, with the token. Browsers cannot open an unspecified IP address.
    #[must_use]
    pub fn page_address(&self, listening: SocketAddr) -> String {
        let host = match listening.ip() {
            ip if ip.is_unspecified() => "localhost".to_owned(),
            IpAddr::V6(ip) => format!("[{ip}]"),
            ip => ip.to_string(),
        };
        let page = format!("http://{host}:{}/", listening.port());
        match &self.0.options.token {
            Some(token) => format!("{page}?token={}", guard::encoded(token)),
            None => page,
        }
    }

    /// The routes, for a listener or for tests.
    pub fn router(&self) -> Router {
        let state = Arc::clone(&self.0);
        Router::new()
            .route("/", get(page::root))
            .route("/meta", get(grove::meta))
            .route("/attr", get(grove::attr))
            .route("/data", get(grove::data))
            .route("/paths", get(grove::paths))
            .route("/stats", get(grove::stats))
            .route("/zarr/{*key}", get(zarr::core))
            .route("/zarr-numcodecs/{*key}", get(zarr::numcodecs))
            .route("/zarr2/{*key}", get(zarr::v2))
            .route("/neuroglancer/{*key}", get(neuroglancer::object))
            .route("/api/about", get(api::about))
            .route("/api/files", get(api::files))
            .route("/api/node", get(api::node))
            .route("/api/children", get(api::children))
            .route("/api/data", get(api::data))
            .route("/api/table", get(api::table))
            .route("/api/geometry", get(api::geometry))
            .route("/view", get(page::to_own))
            .route("/view/", get(page::own))
            .route("/view/{*name}", get(page::own_file))
            .fallback(page::other)
            .layer(axum::middleware::from_fn_with_state(Arc::clone(&state), guard::check))
            .with_state(state)
    }

    /// Serves requests until the process ends.
    ///
    /// # Errors
    ///
    /// Any error of the listener.
    pub async fn serve(self, listener: tokio::net::TcpListener) -> std::io::Result<()> {
        connections::serve(listener, self.router(), &self.0.options).await
    }
}
