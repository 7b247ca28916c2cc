//! Remote storage: S3, Google Cloud, Azure and web servers, as [`Storage`](hyperslab_core::Storage).
//!
//! Formats use the same trait as for a local folder. The difference is the cost: a request takes as long as the
//! transfer of megabytes. Therefore:
//!
//! - many ranges of many objects are requested at once ([`Storage::read_many`](hyperslab_core::Storage::read_many)),
//!   and close ranges are merged based on the measured cost of a request, with bounded waste;
//! - formats announce what they will read ([`prefetch`](hyperslab_core::Storage::prefetch)), so that each level of a
//!   tree is one round of concurrent requests;
//! - structures and documents are cached in memory and optionally in a folder on disk, within limits;
//! - the number and the bytes of requests in flight are limited.
//!
//! If an object changes while it is read, its entity tag reveals this and reads fail. The client library retries
//! failed requests. Secrets (credentials, queries of URLs) never appear in names and messages.
//!
//! | module | content |
//! |---|---|
//! | `location` | [`Remote`]: a URL and its client; [`RemoteOptions`] |
//! | `storage` | [`RemoteStorage`]: the objects below a URL |
//! | `object` | one object and its cached bytes |
//! | `upload` | uploads of stores to a bucket |
//! | `disk` | the disk cache |
//! | `merge` | merging of ranges into requests |
//! | `cost` | the measured cost of requests |
//! | `client` | requests: limits, versions |
//! | `wire` | sending requests: counted, delayed on demand, with conditions |
//! | `meter` | traffic counters |
//! | `runtime` | the runtime for requests |
//! | `failure` | errors, without secrets |
//! | `http`, `s3`, `gcs`, `azure` | clients of each kind of storage |
//! | `profile`, `tls` | the AWS tools' profile files; TLS |
#![forbid(unsafe_code)]

#[cfg(feature = "azure")]
mod azure;
mod client;
mod cost;
mod disk;
mod failure;
#[cfg(feature = "gcs")]
mod gcs;
#[cfg(feature = "http")]
mod http;
mod location;
mod merge;
mod meter;
mod object;
#[cfg(feature = "s3")]
mod profile;
mod runtime;
#[cfg(feature = "s3")]
mod s3;
mod storage;
mod tls;
mod upload;
mod wire;

pub use location::{Remote, RemoteOptions};
pub use meter::{Meter, Traffic};
pub use runtime::{interrupt_current_reads, interrupt_reads};
pub use storage::RemoteStorage;
pub use upload::Present;
