//! Storage on other machines: S3, Google Cloud, Azure and web servers, as [`Storage`](hyperslab_core::Storage).
//!
//! Formats see the same trait as for a local folder. What differs is cost: a request takes as long as megabytes. So
//!
//! - many ranges of many objects are requested at once ([`Storage::read_many`](hyperslab_core::Storage::read_many)), and
//!   neighbours are merged by the measured cost of a request, with bounded waste;
//! - formats say ahead what they will read ([`prefetch`](hyperslab_core::Storage::prefetch)), so that each level of a tree is
//!   one round of concurrent requests;
//! - what was read of structures and documents is kept in memory, and on disk if a folder is given, within limits;
//! - requests in flight are bounded by count and by bytes.
//!
//! An object that changes while it is read is noticed by its entity tag and refused. Failed requests are retried by the
//! client library. Nothing secret (credentials, queries of URLs) appears in names and messages.
//!
//! | module | holds |
//! |---|---|
//! | `location` | [`Remote`]: a URL and how to reach it; [`RemoteOptions`] |
//! | `storage` | [`RemoteStorage`]: the objects under a URL |
//! | `object` | one object, and what is kept of it |
//! | `upload` | stores that are put into a bucket |
//! | `disk` | what is kept on disk from one run to the next |
//! | `merge` | which ranges are requested together |
//! | `cost` | what a request costs, measured |
//! | `client` | requests: limits, versions |
//! | `wire` | requests as they are sent: counted, held back, with conditions |
//! | `meter` | requests, counted |
//! | `runtime` | where requests run |
//! | `failure` | errors, without secrets |
//! | `http`, `s3`, `gcs`, `azure` | clients of each kind of storage |
//! | `profile`, `tls` | the AWS tools' profile files; encryption of connections |
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
pub use runtime::interrupt_reads;
pub use storage::RemoteStorage;
pub use upload::Present;
