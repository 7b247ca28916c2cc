//! Errors: the problem and its location.
//!
//! Three kinds are kept apart because they call for different next steps: [`Error::Corrupt`] (the bytes are wrong),
//! [`Error::Unsupported`] (the bytes are valid, but we do not read them) and [`Error::Invalid`] (the request is impossible).
//! Parsers build errors through a [`Place`], so that every message names the store, the structure and the byte.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The result type of all Hyperslab functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: the problem and its location.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are wrong.
    #[error("{0}")]
    Corrupt(Box<Corrupt>),
    /// The bytes are valid, but this build does not read or write them.
    #[error("{store}: {feature} is not supported")]
    Unsupported {
        /// The store that needs the feature.
        store: Arc<str>,
        /// The feature, by the format's own name for it.
        feature: String,
    },
    /// The request is impossible.
    #[error("{0}")]
    Invalid(String),
    /// A node, column or file that does not exist.
    #[error("{store}: {what} not found{hint}")]
    NotFound {
        /// The store that was searched.
        store: Arc<str>,
        /// The name that was looked up.
        what: String,
        /// The end of the message: the name that was probably meant, or the names that exist. May be empty.
        hint: String,
    },
    /// The operation was cancelled.
    #[error("stopped before the end")]
    Cancelled,
    /// The target already exists, and the caller did not allow replacing it.
    #[error("{path} already exists")]
    Exists {
        /// The file or directory.
        path: Arc<str>,
    },
    /// The operating system reported an error.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: Arc<str>,
        /// The system's error.
        source: io::Error,
    },
}

/// Wrong bytes: the store, the structure, the byte and the problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// The file or object.
    pub store: Arc<str>,
    /// The structure, in the format's own terms: "chunk index header", "extensible array data block".
    pub structure: Cow<'static, str>,
    /// Where the structure, or the field inside it, starts in the file.
    pub offset: Option<u64>,
    /// The value found and the value expected.
    pub problem: String,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.store, self.structure)?;
        if let Some(offset) = self.offset {
            write!(f, " at {offset:#x}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl Error {
    /// An [`Error::Invalid`] with this message.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// An [`Error::Unsupported`] that names the store and the feature.
    pub fn unsupported(store: impl Into<Arc<str>>, feature: impl Into<String>) -> Self {
        Self::Unsupported { store: store.into(), feature: feature.into() }
    }

    /// An [`Error::NotFound`] that names the store and the missing item.
    pub fn not_found(store: impl Into<Arc<str>>, what: impl Into<String>) -> Self {
        Self::NotFound { store: store.into(), what: what.into(), hint: String::new() }
    }

    /// An [`Error::Exists`] that names the path.
    #[must_use]
    pub fn exists(path: &Path) -> Self {
        Self::Exists { path: path.display().to_string().into() }
    }

    /// An [`Error::Io`] that names the path.
    pub fn io(path: impl Into<Arc<str>>, source: io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// Returns true if the bytes are wrong.
    #[must_use]
    pub const fn is_corrupt(&self) -> bool {
        matches!(self, Self::Corrupt(_))
    }

    /// Returns true if the feature is known but not supported.
    #[must_use]
    pub const fn is_unsupported(&self) -> bool {
        matches!(self, Self::Unsupported { .. })
    }

    /// Returns true if the requested item does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotFound { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }
}

/// A parser's location: store, structure and byte. It is created once per structure and creates that structure's errors.
///
/// ```
/// use hyperslab_core::Place;
/// let place = Place::new("volume.h5", "extensible array data block", 0x5f20);
/// assert_eq!(
///     place.corrupt("checksum 0x1b2c3d4e, stored 0x77aa0102").to_string(),
///     "volume.h5: extensible array data block at 0x5f20: checksum 0x1b2c3d4e, stored 0x77aa0102",
/// );
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The file or object.
    pub store: &'a str,
    /// The structure, in the format's own terms.
    pub structure: &'static str,
    /// Where the structure starts.
    pub offset: u64,
}

impl<'a> Place<'a> {
    /// A structure that starts at `offset` of `store`.
    #[must_use]
    pub const fn new(store: &'a str, structure: &'static str, offset: u64) -> Self {
        Self { store, structure, offset }
    }

    /// The same structure, `by` bytes further on.
    #[must_use]
    pub const fn plus(self, by: u64) -> Self {
        Self { offset: self.offset.saturating_add(by), ..self }
    }

    /// An error that reports this problem here.
    #[must_use]
    pub fn corrupt(self, problem: impl Into<String>) -> Error {
        Error::Corrupt(Box::new(Corrupt {
            store: self.store.into(),
            structure: Cow::Borrowed(self.structure),
            offset: Some(self.offset),
            problem: problem.into(),
        }))
    }

    /// An error for a feature that is not supported.
    #[must_use]
    pub fn unsupported(self, feature: impl Into<String>) -> Error {
        Error::unsupported(self.store, feature)
    }
}
