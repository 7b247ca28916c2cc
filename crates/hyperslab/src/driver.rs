//! The parts of a format driver, for applications that add their own format.
//!
//! These are the traits and types of `hyperslab-core`: [`FormatDriver`] recognises, opens and creates stores, [`Store`]
//! lists nodes, [`Array`] locates and decodes chunks, [`Sink`] writes. Pass a driver to [`register`](crate::register).

pub use hyperslab_core::*;
