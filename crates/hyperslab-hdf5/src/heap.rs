//! Heaps: storage for names, links, attributes and variable-length elements.

pub(crate) mod fractal;
pub(crate) mod global;
pub(crate) mod local;
