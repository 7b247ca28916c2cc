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
    /// The name, as `--format` and `--to` take it. [`Store::format`](crate::Store::format) returns the same.
    pub name: &'static str,
    /// The extensions of its files, in lower case and without a dot.
    pub extensions: &'static [&'static str],
    /// What can be chosen when writing.
    pub variants: &'static [VariantInfo],
    /// The forms of its stores. The first one is created.
    pub forms: &'static [StoreForm],
    /// What its stores can hold, and what can be done with them.
    pub capabilities: Capabilities,
    /// The kinds of geometry that can be written, in the format's words; none when it holds no geometry.
    pub geometry_kinds: &'static [&'static str],
    /// The names of the filters that can be written, other formats' names for them included; none where any is tried.
    pub filters: &'static [&'static str],
    /// The filters that every library of the format reads; none where all are alike. A conversion from another format uses no
    /// others unless they are asked for.
    pub standard_filters: &'static [&'static str],
    /// Objects of a directory by which it is recognised: those on remote storage are requested together.
    pub probe_keys: &'static [&'static str],
    /// The first parts of the keys by which a directory becomes a store: in a bucket they are written last, in this order.
    pub visible_last: &'static [&'static str],
    /// The format that its stores are built on, which sees them as a [container](super::Recognition::Container).
    pub built_on: Option<&'static str>,
    /// Its readers name a dimension that has no name by this prefix and the axis: other formats need no such name.
    pub generated_dimension: Option<&'static str>,
    /// Text is stored as characters along one more dimension, and other types in the forms that NetCDF has for them.
    pub character_text: bool,
}

impl FormatInfo {
    /// A format of files that can be read and nothing else.
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

    /// The variant of this name.
    #[must_use]
    pub fn variant(&'static self, name: &str) -> Option<Variant> {
        self.variants.iter().find(|variant| variant.name == name).map(Variant)
    }

    /// The error of a store that has the wrong form for this format.
    #[must_use]
    pub fn wrong_form(&self, path: &str, found: StoreForm) -> Error {
        let expected = match found {
            StoreForm::File => StoreForm::Directory,
            StoreForm::Directory => StoreForm::File,
        };
        Error::invalid(format!("{path} is a {found}, but {} needs a {expected}", self.name))
    }
}

/// What stores of a format can hold, and what can be done with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// New stores can be written.
    pub create: bool,
    /// Existing stores can be added to.
    pub append: bool,
    /// Arrays of existing stores can become longer.
    pub grow: bool,
    /// A store holds several arrays, and groups of them. Otherwise it holds one array, at `/`.
    pub several_arrays: bool,
    /// A store holds tables.
    pub tables: bool,
    /// Elements of arrays may be missing.
    pub nullable: bool,
    /// Nodes have attributes.
    pub attributes: bool,
    /// A store keeps a history of its own.
    pub history: bool,
    /// Each write is kept apart, until fragments are [consolidated](super::FormatDriver::consolidate).
    pub fragments: bool,
    /// An array is a group of fields. A group with one field of its own name is one array to other formats.
    pub field_arrays: bool,
    /// Some names of nodes are reserved for the format's own files.
    pub reserved_names: bool,
    /// A store keeps links, named types and stored types as they are in another store of the format.
    pub links: bool,
    /// A file can be cut into pages ([`CreateOptions::page_size`](super::CreateOptions::page_size)).
    pub pages: bool,
    /// A file may begin with bytes that are not its own ([`CreateOptions::preamble`](super::CreateOptions::preamble)).
    pub preamble: bool,
    /// An array states the value of cells that were never written.
    pub fill_values: bool,
    /// An array states which of its axes may grow, and how far.
    pub unlimited: bool,
    /// A group can be an image at several resolutions, as OME-Zarr has it.
    pub multiscales: bool,
    /// An array has at least one dimension.
    pub no_scalars: bool,
    /// All arrays are in the root: there are no groups below it.
    pub no_groups: bool,
    /// An array has at least one element.
    pub no_empty: bool,
    /// The axes of an array count from any integer or date ([`Labels::Domain`](crate::Labels::Domain)).
    pub domains: bool,
    /// An array states a text for each position along an axis ([`Labels::Texts`](crate::Labels::Texts)).
    pub label_texts: bool,
}

impl Capabilities {
    /// None of them.
    pub const NONE: Self = Self {
        create: false,
        append: false,
        grow: false,
        several_arrays: false,
        tables: false,
        nullable: false,
        attributes: false,
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
    /// The name, as `--to` takes it: `zarr2`.
    pub name: &'static str,
    /// Those of the format's extensions that mean this variant.
    pub extensions: &'static [&'static str],
    /// Types that the NetCDF-4 library lacks are stored in the form in which its users know them.
    pub netcdf_types: bool,
}

impl VariantInfo {
    /// A variant that must be asked for.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, extensions: &[], netcdf_types: false }
    }
}

/// A variant of a registered format. Two are equal when their names are.
#[derive(Debug, Clone, Copy)]
pub struct Variant(&'static VariantInfo);

impl Variant {
    /// The name, as `--to` takes it.
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
