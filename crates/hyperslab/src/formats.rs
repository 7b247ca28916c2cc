//! The formats of this build: the table of drivers, and the functions that query all of them. No other module knows
//! every format.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use hyperslab_core::{
    Content, CreateOptions, Error, FileBlob, FormatDriver, FormatInfo, Glimpse, LocalStorage, Recognition,
    Result, Sink, StoreForm, TableSink, TableSpec, Variant, closest, did_you_mean,
};

/// The drivers of this build, in the order in which they try to recognise a store.
macro_rules! built_in {
    ($($(#[doc = $doc:literal])+ $(#[cfg($cfg:meta)])? $name:ident = $driver:path;)*) => {
        impl Format {
            $($(#[doc = $doc])+ $(#[cfg($cfg)])? pub const $name: Self = Self(&$driver);)*

            const BUILT_IN: &'static [Self] = &[$($(#[cfg($cfg)])? Self::$name),*];
        }
    };
}

built_in! {
    /// Single-file `.tet`, and packages of them.
    #[cfg(feature = "tet")]
    TET = hyperslab_tet::TetDriver;
    /// HDF5, and NetCDF-4 on top of it.
    #[cfg(feature = "hdf5")]
    HDF5 = hyperslab_hdf5::Hdf5Driver;
    /// NetCDF classic: CDF-1, CDF-2 and CDF-5.
    #[cfg(feature = "netcdf3")]
    NETCDF3 = hyperslab_netcdf3::Netcdf3Driver;
    /// TileDB arrays and groups.
    #[cfg(feature = "tiledb")]
    TILEDB = hyperslab_tiledb::TileDbDriver;
    /// Zarr v2 and v3 directories.
    #[cfg(feature = "zarr")]
    ZARR = hyperslab_zarr::ZarrDriver;
    /// Zarr stores in zip archives.
    #[cfg(feature = "zarr")]
    ZARR_ZIP = hyperslab_zarr::ZarrZipDriver;
    /// Kerchunk references: Zarr stores whose chunks are parts of other files.
    #[cfg(feature = "zarr")]
    REFERENCES = hyperslab_zarr::ReferencesDriver;
    /// Kerchunk references in Parquet files.
    #[cfg(all(feature = "zarr", feature = "arrow"))]
    PARQUET_REFERENCES = crate::references::ParquetReferencesDriver;
    /// Zarr Vectors stores, and bare fragment indexes.
    #[cfg(feature = "zvf")]
    ZVF = hyperslab_zvf::ZvfDriver;
    /// NumPy's `.npy`: one array.
    NPY = hyperslab_npy::NpyDriver;
    /// NumPy's `.npz`: several arrays.
    NPZ = hyperslab_npy::NpzDriver;
    /// Parquet files: one table.
    #[cfg(feature = "arrow")]
    PARQUET = crate::source::ParquetDriver;
    /// Arrow files: one table.
    #[cfg(feature = "arrow")]
    ARROW = crate::source::ArrowDriver;
    /// Comma-separated text: one table.
    CSV = crate::source::CsvDriver;
}

/// Drivers registered by the application.
static REGISTERED: RwLock<Vec<Format>> = RwLock::new(Vec::new());

/// A format: a handle to its driver. Two formats are equal if their names are.
#[derive(Clone, Copy)]
pub struct Format(&'static dyn FormatDriver);

impl Format {
    /// All formats: those of this build, then [registered](register) ones.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        Self::BUILT_IN.iter().chain(&*registered).copied().collect()
    }

    /// The format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let named = |format: &&Self| format.name() == name;
        let registered = || {
            let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
            registered.iter().find(named).copied()
        };
        Self::BUILT_IN.iter().find(named).copied().or_else(registered)
    }

    /// The format with this file name extension.
    #[must_use]
    pub fn from_extension(path: &Path) -> Option<Self> {
        let name = crate::location_name(path);
        let extension = Path::new(&name).extension()?.to_str()?.to_ascii_lowercase();
        Self::all().into_iter().find(|format| format.info().extensions.contains(&extension.as_str()))
    }

    /// The name, as used by `--format` and `--to`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Name, extensions, variants and capabilities.
    #[must_use]
    pub fn info(self) -> &'static FormatInfo {
        self.0.info()
    }

    /// The driver.
    #[must_use]
    pub const fn driver(self) -> &'static dyn FormatDriver {
        self.0
    }

    /// Returns true if the format stores geometry rather than arrays.
    #[must_use]
    pub fn writes_geometry(self) -> bool {
        !self.info().geometry_kinds.is_empty()
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl Hash for Format {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Format").field(&self.name()).finish()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| {
            let named = |format: Self| {
                let variants = format.info().variants.iter().map(|variant| variant.name);
                std::iter::once(format.name()).chain(variants).collect::<Vec<&str>>()
            };
            let names: Vec<&str> = Self::all().into_iter().flat_map(named).collect();
            Error::invalid(format!("no format {name}{}", did_you_mean(name, names.iter().copied())))
        })
    }
}

/// The names of all formats, for messages.
fn names() -> String {
    let names: Vec<_> = Format::all().into_iter().map(Format::name).collect();
    names.join(", ")
}

/// Registers a format of the application for the lifetime of the process. Its stores are recognised, opened and
/// created like any others. If several formats share an extension, the first one registered gets it.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if another format or variant has one of its names.
pub fn register(driver: &'static dyn FormatDriver) -> Result<Format> {
    let format = Format(driver);
    let info = format.info();
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    for name in info.variants.iter().map(|variant| variant.name).chain([info.name]) {
        let is_taken = |other: &Format| other.name() == name || other.info().variant(name).is_some();
        if name.is_empty() || Format::BUILT_IN.iter().chain(&*registered).any(is_taken) {
            return Err(Error::invalid(format!("cannot register a format: the name {name:?} is taken")));
        }
    }
    registered.push(format);
    Ok(format)
}

/// The format and variant with this name: `zarr`, `zarr2`, `netcdf4`. An extension names them too: `nc`, `h5`.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if no format or variant has this name.
pub fn format_named(name: &str) -> Result<(Format, Option<Variant>)> {
    let of_variant = |format: Format| Some((format, Some(format.info().variant(name)?)));
    match Format::all().into_iter().find_map(of_variant) {
        Some(found) => Ok(found),
        None => name.parse().map(|format| (format, None)).or_else(|unknown| {
            // People also name a format by its extension: `nc`, `h5`.
            format_of_extension(&Path::new("x").with_extension(name)).ok_or(unknown)
        }),
    }
}

/// The format and variant with this file name extension.
#[must_use]
pub fn format_of_extension(path: &Path) -> Option<(Format, Option<Variant>)> {
    let format = Format::from_extension(path)?;
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let variants = format.info().variants;
    let own = variants.iter().find(|variant| variant.extensions.contains(&extension.as_str()));
    Some((format, own.and_then(|variant| format.info().variant(variant.name))))
}

/// The end of a message about an unknown extension: the closest known one, if there is one.
#[must_use]
pub fn extension_hint(path: &Path) -> String {
    let Some(extension) = path.extension().and_then(|extension| extension.to_str()) else {
        return String::new();
    };
    let formats = Format::all();
    let known = formats.iter().flat_map(|format| {
        let info = format.info();
        info.extensions.iter().chain(info.variants.iter().flat_map(|variant| variant.extensions))
    });
    let files = crate::rows::ENDINGS.iter().chain(crate::geometry::ENDINGS);
    match closest(extension, known.chain(files).copied()) {
        Some(meant) => format!("; did you mean .{meant}?"),
        None => String::new(),
    }
}

/// The format and variant of a new or existing target, from the given name or else from the extension. A name may be
/// completed by the extension's format: `zarr2` for a file that ends in `.zip` is `zarr2-zip`. If an existing store
/// is appended to and its extension is unknown, its content is recognised. `None` if the format cannot be determined.
///
/// # Errors
///
/// As [`format_named`].
pub fn format_of_target(
    target: &Path,
    name: Option<&str>,
    appends: bool,
) -> Result<Option<(Format, Option<Variant>)>> {
    let by_extension = format_of_extension(target);
    let Some(name) = name else {
        let existing = || {
            let store = appends.then(|| crate::open(target).ok()).flatten()?;
            store.driver().map(|format| (format, None))
        };
        return Ok(by_extension.or_else(existing));
    };
    let named = format_named(name)?;
    let completes = |full: &str| full.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    let Some((format, _)) = by_extension.filter(|(format, _)| *format != named.0) else {
        return Ok(Some(named));
    };
    let variant = format.info().variants.iter().find(|variant| completes(variant.name));
    Ok(Some(match variant {
        Some(variant) => (format, format.info().variant(variant.name)),
        None if completes(format.name()) => (format, None),
        None => named,
    }))
}

/// Recognises the format of some content. A driver that is certain is preferred over one that only recognises a
/// container.
pub(crate) fn recognise(content: &Content) -> Result<Option<Format>> {
    let glimpse = Glimpse::new(content)?;
    let mut container = None;
    for format in Format::all().into_iter().filter(|format| format.info().forms.contains(&content.form())) {
        match format.0.recognise(&glimpse)? {
            Recognition::Yes => return Ok(Some(format)),
            Recognition::Container => container = container.or(Some(format)),
            Recognition::No => {}
        }
    }
    Ok(container)
}

/// Like [`recognise`], for storage where each access takes a round trip: formats that the name suggests are tried
/// first, and everything that they inspect is requested together.
#[cfg(feature = "remote")]
pub(crate) fn recognise_remote(content: &Content, named: Option<Format>) -> Result<Option<Format>> {
    let glimpse = Glimpse::new(content)?;
    let all = Format::all().into_iter().filter(|format| format.info().forms.contains(&content.form()));
    let is_likely = |format: &Format| {
        named.is_some_and(|named| *format == named || format.info().built_on == Some(named.name()))
    };
    let (likely, others): (Vec<Format>, Vec<Format>) = all.partition(is_likely);
    let mut not_listed = None;
    for candidates in [likely, others] {
        if let Content::Directory(storage) = content {
            let keys = candidates.iter().flat_map(|format| format.info().probe_keys);
            let requests: Vec<_> = keys.map(|key| hyperslab_core::ObjectRange::whole(key)).collect();
            storage.prefetch(&requests);
        }
        let mut container = None;
        for format in candidates {
            match format.0.recognise(&glimpse) {
                Ok(Recognition::Yes) => return Ok(Some(format)),
                Ok(Recognition::Container) => container = container.or(Some(format)),
                Ok(Recognition::No) => {}
                // This format must be listed, but the server does not support listing. Only report this if the name
                // suggests the format and no other is recognised.
                Err(error) if error.is_unsupported() => {
                    not_listed = not_listed.or_else(|| is_likely(&format).then_some(error));
                }
                Err(error) => return Err(error),
            }
        }
        if container.is_some() {
            return Ok(container);
        }
    }
    not_listed.map_or(Ok(None), Err)
}

/// The error for content that no driver recognises.
pub(crate) fn unrecognised(path: &Path, form: StoreForm) -> Error {
    let problem = match form {
        StoreForm::File => "unknown signature",
        StoreForm::Directory => "the directory is not a store",
    };
    Error::invalid(format!("{}: {problem}; expected one of {}", path.display(), names()))
}

/// Refuses to replace anything that could be lost by mistake. A store of any known format may be replaced, and so may
/// an empty folder or file. Everything else is kept, whatever the options: a mistyped target must not destroy a
/// folder of documents. Symbolic links are not followed, so a store elsewhere is kept too.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if something else exists at the target; [`Io`](Error::Io) if it cannot be inspected.
pub(crate) fn check_replaceable(target: &Path, new: StoreForm) -> Result<()> {
    let name = target.display();
    let metadata = match target.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(problem) => return Err(Error::io(name.to_string(), problem)),
    };
    if metadata.is_symlink() {
        return Err(Error::invalid(format!(
            "{name} is a symbolic link, which is not replaced; name the store that it leads to"
        )));
    }
    let is_ours = if metadata.is_dir() {
        if new == StoreForm::File {
            return Err(Error::invalid(format!(
                "{name} is a folder, which a file cannot replace; remove it or choose another target"
            )));
        }
        let is_empty = std::fs::read_dir(target)
            .map_err(|problem| Error::io(name.to_string(), problem))?
            .next()
            .is_none();
        is_empty || is_store(&Content::Directory(Arc::new(LocalStorage::new(target))))?
    } else {
        metadata.is_file()
            && (metadata.len() == 0 || is_store(&Content::File(Arc::new(FileBlob::open(target)?)))?)
    };
    if is_ours {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{name} exists and is not a store of {}, so it is not replaced; remove it or choose another target",
        names()
    )))
}

/// Like [`check_replaceable`], for a file whose format follows from its extension. Most such files have no signature,
/// so any regular file with the extension may be replaced.
///
/// # Errors
///
/// As [`check_replaceable`].
pub(crate) fn check_replaceable_file(target: &Path) -> Result<()> {
    match target.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => Ok(()),
        _ => check_replaceable(target, StoreForm::File),
    }
}

/// Returns true if the content is certainly a store.
fn is_store(content: &Content) -> Result<bool> {
    match recognise(content)? {
        Some(format) => format.0.is_store(content),
        None => Ok(false),
    }
}

/// Creates a new store of one table. Nothing changes at `target` before the sink is committed.
///
/// # Errors
///
/// As [`create`].
pub fn create_table(
    target: &Path,
    format: Format,
    spec: &TableSpec,
    options: &CreateOptions,
) -> Result<Box<dyn TableSink>> {
    crate::location::check_local(target, "writing a table to")?;
    if !options.replace && target.symlink_metadata().is_ok() {
        return Err(Error::exists(target));
    }
    if options.replace {
        check_replaceable(target, format.info().created_form())?;
    }
    format.0.create_table(target, spec, options)
}

/// Creates a new store of a format, or opens an existing one for additions. Nothing changes at `target` before the
/// sink is committed.
///
/// With [`replace`](CreateOptions::replace), an existing store, empty folder or empty file at the target is replaced.
/// Anything else, including a symbolic link, is an error.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the target exists and may not be replaced; [`Unsupported`](Error::Unsupported) if
/// the format cannot be written or appended to; [`Io`](Error::Io) if the target's folder is not writable.
pub fn create(target: &Path, format: Format, options: &CreateOptions) -> Result<Box<dyn Sink>> {
    let target = &*crate::location::local_path(target);
    crate::location::check_local(target, "writing to")?;
    let exists = target.symlink_metadata().is_ok();
    if !options.replace && !options.append && exists {
        return Err(Error::exists(target));
    }
    if options.append && exists {
        return Ok(crate::forms::formed(format.0.append(target, options)?, target));
    }
    if options.replace {
        check_replaceable(target, format.info().created_form())?;
    }
    format.0.create(target, options)
}
