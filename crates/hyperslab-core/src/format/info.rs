//! The description of a format: its names, extensions and capabilities.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::Error;

/// The description of a format.
///
/// ```
/// use hyperslab_core::{Capabilities, FormatInfo};
/// static INFO: FormatInfo = FormatInfo {
///     extensions: &["rows"],
///     capabilities: Capabilities { create: true, ..Capabilities::NONE },
///     ..FormatInfo::new("rows")
/// };
/// assert_eq!(INFO.name, "rows");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FormatInfo {
    /// The name, as used by `--format` and `--to`, and returned by [`Store::format`](crate::Store::format).
    pub name: &'static str,
    /// The file extensions, in lower case and without a dot.
    pub extensions: &'static [&'static str],
    /// The variants that can be chosen when writing.
    pub variants: &'static [VariantInfo],
    /// The forms of its stores. New stores have the first one.
    pub forms: &'static [StoreForm],
    /// What its stores can hold, and the supported operations.
    pub capabilities: Capabilities,
    /// The kinds of geometry that can be written, in the format's own terms; empty if it cannot hold geometry.
    pub geometry_kinds: &'static [&'static str],
    /// The names of the filters that can be written, including other formats' names for them; empty to try any filter.
    pub filters: &'static [&'static str],
    /// The filters that every library of the format can read; empty if there is no difference. A conversion from another format
    /// uses only these by default.
    pub standard_filters: &'static [&'static str],
    /// Objects of a directory by which it is recognised. On remote storage they are requested together.
    pub probe_keys: &'static [&'static str],
    /// The first parts of the keys that make a directory a store. In a bucket they are written last, in this order.
    pub visible_last: &'static [&'static str],
    /// The format that it extends, which recognises its stores as a [container](super::Recognition::Container).
    pub built_on: Option<&'static str>,
    /// The prefix of names that its readers generate for unnamed dimensions, followed by the axis. Other formats need not store
    /// such names.
    pub generated_dimension: Option<&'static str>,
    /// Text is stored as characters along an additional dimension, and other types in NetCDF's form.
    pub character_text: bool,
}

impl FormatInfo {
    /// A read-only format of single files.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            extensions: &[],
            variants: &[],
            forms: &[StoreForm::File],
            capabilities: Capabilities::NONE,
            geometry_kinds: &[],
            filters: &[],
            standard_filters: &[],
            probe_keys: &[],
            visible_last: &[],
            built_on: None,
            generated_dimension: None,
            character_text: false,
        }
    }

    /// The form of a new store.
    #[must_use]
    pub fn created_form(&self) -> StoreForm {
        self.forms.first().copied().unwrap_or(StoreForm::File)
    }

    /// The variant with this name.
    #[must_use]
    pub fn variant(&'static self, name: &str) -> Option<Variant> {
        self.variants.iter().find(|variant| variant.name == name).map(Variant)
    }

    /// The error for a store whose form the format does not support.
    #[must_use]
    pub fn wrong_form(&self, path: &str, found: StoreForm) -> Error {
        let expected = match found {
            StoreForm::File => StoreForm::Directory,
            StoreForm::Directory => StoreForm::File,
        };
        Error::invalid(format!("{path} is a {found}, but {} needs a {expected}", self.name))
    }
}

/// What stores of a format can hold, and the supported operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// New stores can be written.
    pub create: bool,
    /// Existing stores can be extended.
    pub append: bool,
    /// Arrays of existing stores can grow.
    pub grow: bool,
    /// A store holds several arrays, and groups of them. Otherwise it holds one array, at `/`.
    pub several_arrays: bool,
    /// A store holds tables.
    pub tables: bool,
    /// Elements of arrays may be missing.
    pub nullable: bool,
    /// Nodes have attributes.
    pub attributes: bool,
    /// Attributes are JSON documents: objects, null and mixed lists as well as numbers and text.
    pub json_attributes: bool,
    /// A store keeps a history.
    pub history: bool,
    /// Each write is stored separately, until fragments are [consolidated](super::FormatDriver::consolidate).
    pub fragments: bool,
    /// An array is a group of fields. For other formats, a group with one field of the same name is a single array.
    pub field_arrays: bool,
    /// Some node names are reserved for the format's own files.
    pub reserved_names: bool,
    /// Links, named types and stored types are copied unchanged between stores of the format.
    pub links: bool,
    /// A file can be divided into pages ([`CreateOptions::page_size`](super::CreateOptions::page_size)).
    pub pages: bool,
    /// A file may start with foreign bytes ([`CreateOptions::preamble`](super::CreateOptions::preamble)).
    pub preamble: bool,
    /// An array has a fill value for cells that were never written.
    pub fill_values: bool,
    /// An array defines which of its axes may grow, and their limits.
    pub unlimited: bool,
    /// A group can be an image at several resolutions, as in OME-Zarr.
    pub multiscales: bool,
    /// An array must have at least one dimension.
    pub no_scalars: bool,
    /// All arrays are in the root: there are no groups below it.
    pub no_groups: bool,
    /// An array must have at least one element.
    pub no_empty: bool,
    /// An array is stored as a whole, not in chunks of a chosen shape.
    pub no_chunks: bool,
    /// Elements are stored as they are, without filters.
    pub no_filters: bool,
    /// Chunks can be gathered in shards ([`CreateOptions::shard_shape`](super::CreateOptions::shard_shape)).
    pub shards: bool,
    /// The axes of an array can start at any integer or date ([`Labels::Domain`](crate::Labels::Domain)).
    pub domains: bool,
    /// An array can have a text for each position along an axis ([`Labels::Texts`](crate::Labels::Texts)).
    pub label_texts: bool,
}

impl Capabilities {
    /// No capabilities.
    pub const NONE: Self = Self {
        create: false,
        append: false,
        grow: false,
        several_arrays: false,
        tables: false,
        nullable: false,
        attributes: false,
        json_attributes: false,
        history: false,
        fragments: false,
        field_arrays: false,
        reserved_names: false,
        links: false,
        pages: false,
        preamble: false,
        fill_values: false,
        unlimited: false,
        multiscales: false,
        no_scalars: false,
        no_groups: false,
        no_empty: false,
        no_chunks: false,
        no_filters: false,
        shards: false,
        domains: false,
        label_texts: false,
    };
}

/// A file or a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreForm {
    /// A single file.
    File,
    /// A directory.
    Directory,
}

impl fmt::Display for StoreForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Directory => "directory",
        })
    }
}

/// A variant of a format that can be chosen when writing.
#[derive(Debug, Clone, Copy)]
pub struct VariantInfo {
    /// The name, as used by `--to`: `zarr2`.
    pub name: &'static str,
    /// The extensions of the format that select this variant.
    pub extensions: &'static [&'static str],
    /// Types that the NetCDF-4 library lacks are stored in the form that its users expect.
    pub netcdf_types: bool,
}

impl VariantInfo {
    /// A variant that has to be selected by name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, extensions: &[], netcdf_types: false }
    }
}

/// A variant of a registered format. Two variants are equal if their names are.
#[derive(Debug, Clone, Copy)]
pub struct Variant(&'static VariantInfo);

impl Variant {
    /// The name, as used by `--to`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The description.
    #[must_use]
    pub const fn info(self) -> &'static VariantInfo {
        self.0
    }
}

impl PartialEq for Variant {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Variant {}

impl Hash for Variant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}
