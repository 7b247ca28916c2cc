//! Heaps: where names, links, attributes and elements of variable length are kept.

pub(crate) mod fractal;
pub(crate) mod global;
pub(crate) mod local;
