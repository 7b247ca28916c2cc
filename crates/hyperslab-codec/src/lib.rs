//! Byte transforms as kernels on slices.
