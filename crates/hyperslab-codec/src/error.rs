//! Errors of the kernels.

use std::borrow::Cow;

/// A kernel's result.
pub type Result<T> = std::result::Result<T, CodecError>;

/// Why a kernel failed. Every variant names the codec; the caller adds the file, the structure and the byte.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes are wrong.
    #[error("{codec}: {reason}")]
    Corrupt {
        /// The kernel's name.
        codec: &'static str,
        /// The problem with the bytes.
        reason: Cow<'static, str>,
    },
    /// The decoded size differs from the expected one.
    #[error("{codec}: decoded to {} bytes, expected {expected}", SizeBound(*found, *at_least))]
    Size {
        /// The kernel's name.
        codec: &'static str,
        /// The expected size, or the limit.
        expected: usize,
        /// The decoded size; see `at_least`.
        found: usize,
        /// Whether decoding stopped at `found`, so that the true size is not known.
        at_least: bool,
    },
    /// The checksum does not match the bytes.
    #[error("{codec}: checksum {computed:#x}, stored {stored:#x}")]
    Checksum {
        /// The kernel's name.
        codec: &'static str,
        /// The checksum of the actual bytes.
        computed: u64,
        /// The stored checksum.
        stored: u64,
    },
    /// The bytes are valid, but this build does not read them.
    #[error("{codec}: {feature} is not supported")]
    Unsupported {
        /// The kernel's name.
        codec: &'static str,
        /// The missing feature.
        feature: Cow<'static, str>,
    },
    /// The caller's parameters are wrong.
    #[error("{codec}: {reason}")]
    Invalid {
        /// The kernel's name.
        codec: &'static str,
        /// The problem with the parameters.
        reason: Cow<'static, str>,
    },
}

/// Prints a size, or that it is a lower bound.
struct SizeBound(usize, bool);

impl std::fmt::Display for SizeBound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.1 { write!(f, "at least {}", self.0) } else { write!(f, "{}", self.0) }
    }
}

pub(crate) fn corrupt(codec: &'static str, reason: impl Into<Cow<'static, str>>) -> CodecError {
    CodecError::Corrupt { codec, reason: reason.into() }
}

pub(crate) fn invalid(codec: &'static str, reason: impl Into<Cow<'static, str>>) -> CodecError {
    CodecError::Invalid { codec, reason: reason.into() }
}

pub(crate) fn unsupported(codec: &'static str, feature: impl Into<Cow<'static, str>>) -> CodecError {
    CodecError::Unsupported { codec, feature: feature.into() }
}

/// The output does not have the expected size.
pub(crate) fn size(codec: &'static str, expected: usize, found: usize) -> CodecError {
    CodecError::Size { codec, expected, found, at_least: false }
}

/// The output does not fit in `limit` bytes.
pub(crate) fn too_long(codec: &'static str, limit: usize) -> CodecError {
    CodecError::Size { codec, expected: limit, found: limit.saturating_add(1), at_least: true }
}
