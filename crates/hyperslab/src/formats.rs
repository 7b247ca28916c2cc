//! The formats of this build: names, endings, recognition, opening and creating. The one place that knows them all.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use hyperslab_core::storage::StageOptions;
use hyperslab_core::{Blob, Directory, Error, FileBlob, LocalDirectory, Result, Sink, Store};

use crate::{OpenOptions, npy};

/// A format that can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Single-file `.tet`, and packages of them.
    #[cfg(feature = "tet")]
    Tet,
    /// HDF5, and NetCDF-4 on top of it.
    #[cfg(feature = "hdf5")]
    Hdf5,
    /// TileDB arrays and groups.
    #[cfg(feature = "tiledb")]
    TileDb,
    /// Zarr v2 and v3 directories.
    #[cfg(feature = "zarr")]
    Zarr,
    /// Zarr Vectors stores, and bare fragment indexes.
    #[cfg(feature = "zvf")]
    Zvf,
    /// NumPy's `.npy`: one array.
    Npy,
    /// NumPy's `.npz`: several.
    Npz,
}

impl Format {
    /// All formats of this build, in the order in which they are recognised.
    pub const ALL: &'static [Self] = &[
        #[cfg(feature = "tet")]
        Self::Tet,
        #[cfg(feature = "hdf5")]
        Self::Hdf5,
        #[cfg(feature = "tiledb")]
        Self::TileDb,
        #[cfg(feature = "zarr")]
        Self::Zarr,
        #[cfg(feature = "zvf")]
        Self::Zvf,
        Self::Npy,
        Self::Npz,
    ];

    /// The name, as `--format` and `--to` take it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "tet")]
            Self::Tet => "tet",
            #[cfg(feature = "hdf5")]
            Self::Hdf5 => "hdf5",
            #[cfg(feature = "tiledb")]
            Self::TileDb => "tiledb",
            #[cfg(feature = "zarr")]
            Self::Zarr => "zarr",
            #[cfg(feature = "zvf")]
            Self::Zvf => "zvf",
            Self::Npy => "npy",
            Self::Npz => "npz",
        }
    }

    /// The endings that mean the format where a file does not exist yet.
    #[must_use]
    pub const fn endings(self) -> &'static [&'static str] {
        match self {
            #[cfg(feature = "tet")]
            Self::Tet => &["tet"],
            #[cfg(feature = "hdf5")]
            Self::Hdf5 => &["h5", "hdf5", "he5", "nc", "nc4"],
            #[cfg(feature = "tiledb")]
            Self::TileDb => &["tiledb", "tdb"],
            #[cfg(feature = "zarr")]
            Self::Zarr => &["zarr"],
            #[cfg(feature = "zvf")]
            Self::Zvf => &["zarrvectors", "zv"],
            Self::Npy => &["npy"],
            Self::Npz => &["npz"],
        }
    }

    /// The format that a file name's ending means.
    #[must_use]
    pub fn from_ending(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        Self::ALL.iter().copied().find(|format| format.endings().contains(&ending.as_str()))
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|format| format.name()).collect();
            Error::invalid(format!("no format {name}; there are {}", names.join(", ")))
        })
    }
}

/// A form of a format that can be chosen when writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variant {
    /// Zarr v2: `.zarray` and `.zattrs`.
    Zarr2,
    /// Zarr v3: `zarr.json`.
    Zarr3,
    /// HDF5 that the NetCDF-4 library opens: types that it lacks are stored in the form that its users know.
    NetCdf4,
}

impl Variant {
    /// All of them, with the format that each belongs to.
    const ALL: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Zarr2, "zarr2", "zarr"), (Self::Zarr3, "zarr3", "zarr"), (Self::NetCdf4, "netcdf4", "hdf5")];

    /// The variant of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own, _)| *own == name).map(|(variant, ..)| *variant)
    }
}

/// The format and variant that a name means: `zarr`, `zarr2`, `netcdf4`.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for a name that this build does not have.
pub fn format_named(name: &str) -> Result<(Format, Option<Variant>)> {
    match Variant::ALL.iter().find(|(_, own, _)| *own == name) {
        Some((variant, _, format)) => Ok((format.parse()?, Some(*variant))),
        None => Ok((name.parse()?, None)),
    }
}

/// The format and variant that a file name's extension means.
#[must_use]
pub fn format_of_extension(path: &Path) -> Option<(Format, Option<Variant>)> {
    let format = Format::from_ending(path)?;
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    let is_netcdf = extension == "nc" || extension == "nc4";
    Some((format, is_netcdf.then_some(Variant::NetCdf4)))
}

/// The format whose bytes these are.
pub(crate) fn recognise(blob: &dyn Blob) -> Result<Option<Format>> {
    #[cfg(feature = "tet")]
    if hyperslab_tet::probe(blob)? {
        return Ok(Some(Format::Tet));
    }
    #[cfg(feature = "hdf5")]
    if hyperslab_hdf5::probe(blob)? {
        return Ok(Some(Format::Hdf5));
    }
    let head = blob.read_range(0..blob.len()?.min(16))?;
    #[cfg(feature = "zvf")]
    if hyperslab_zvf::probe_fragment_index(&head) {
        return Ok(Some(Format::Zvf));
    }
    Ok(if head.starts_with(npy::MAGIC) {
        Some(Format::Npy)
    } else if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        Some(Format::Npz)
    } else {
        None
    })
}

/// The format whose names these are.
pub(crate) fn recognise_directory(directory: &dyn Directory) -> Result<Option<Format>> {
    // A Zarr Vectors store is a Zarr store too.
    #[cfg(feature = "zvf")]
    if hyperslab_zvf::probe(directory)? {
        return Ok(Some(Format::Zvf));
    }
    #[cfg(feature = "zarr")]
    if hyperslab_zarr::probe(directory)? {
        return Ok(Some(Format::Zarr));
    }
    #[cfg(feature = "tiledb")]
    if hyperslab_tiledb::probe(directory)? {
        return Ok(Some(Format::TileDb));
    }
    #[cfg(feature = "tet")]
    if hyperslab_tet::probe_package(directory)? {
        return Ok(Some(Format::Tet));
    }
    Ok(None)
}

/// Opens a file of a known format.
pub(crate) fn open_file(format: Format, blob: Arc<dyn Blob>, path: &Path) -> Result<Arc<dyn Store>> {
    Ok(match format {
        #[cfg(feature = "tet")]
        Format::Tet => Arc::new(hyperslab_tet::open(blob)?),
        #[cfg(feature = "hdf5")]
        Format::Hdf5 => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = hyperslab_hdf5::Folder::new(folder.unwrap_or_else(|| Path::new(".")));
            Arc::new(hyperslab_hdf5::open(blob, Arc::new(folder))?)
        }
        #[cfg(feature = "zvf")]
        Format::Zvf => Arc::new(hyperslab_zvf::open_fragment_index(&*blob)?),
        Format::Npy => Arc::new(npy::NpyStore::open(blob)?),
        Format::Npz => Arc::new(npy::NpzStore::open(blob)?),
        #[cfg(any(feature = "tiledb", feature = "zarr"))]
        directory => {
            return Err(Error::invalid(format!("{}: {} is a directory", path.display(), directory.name())));
        }
    })
}

/// Opens a directory of a known format.
pub(crate) fn open_directory(
    format: Format,
    directory: Arc<dyn Directory>,
    path: &Path,
    options: &OpenOptions,
) -> Result<Arc<dyn Store>> {
    #[cfg(not(feature = "tiledb"))]
    let _ = options;
    Ok(match format {
        #[cfg(feature = "tet")]
        Format::Tet => Arc::new(hyperslab_tet::open_package(&*directory)?),
        #[cfg(feature = "tiledb")]
        Format::TileDb => {
            let mut tiledb = hyperslab_tiledb::OpenOptions::default();
            if let Some((start, end)) = options.at {
                tiledb.at = hyperslab_tiledb::TimeWindow { start, end };
            }
            tiledb.key = options.key.as_ref().map(|key| hyperslab_tiledb::Key::new(key.bytes()));
            if options.mapped {
                Arc::new(hyperslab_tiledb::open_path(path, tiledb)?)
            } else {
                Arc::new(hyperslab_tiledb::open(directory, tiledb)?)
            }
        }
        #[cfg(feature = "zarr")]
        Format::Zarr => Arc::new(hyperslab_zarr::open(directory)?),
        #[cfg(feature = "zvf")]
        Format::Zvf => Arc::new(hyperslab_zvf::open(directory)?),
        #[cfg(feature = "hdf5")]
        Format::Hdf5 => {
            return Err(Error::invalid(format!("{}: {} is a file", path.display(), format.name())));
        }
        Format::Npy | Format::Npz => {
            return Err(Error::invalid(format!("{}: {} is a file", path.display(), format.name())));
        }
    })
}

/// How to create a store.
#[derive(Debug, Clone, Default)]
pub struct CreateOptions {
    /// Replace the store that stands there.
    pub replace: bool,
    /// Make a new store durable before it is committed. What replaces or changes a store always is.
    pub sync: bool,
    /// Add to what stands there, in formats that can.
    pub append: bool,
    /// When adding to TileDB: an array is a new fragment of the one of its name, or of the only one that there is.
    pub only_array: bool,
    /// Where the content comes from (`npy`, `hdf5` …), for formats that keep a history.
    pub source: Option<String>,
    /// Chunks are gathered in shards of this shape, in formats that have them.
    pub shard_shape: Option<Vec<u64>>,
    /// The variant to write, in formats that have several.
    pub variant: Option<Variant>,
}

impl CreateOptions {
    /// How a single file is put in its place.
    fn stage(&self) -> StageOptions {
        StageOptions::default().with_replace(self.replace).with_sync(self.sync)
    }
}

/// Can a store of the format be added to?
fn adds(format: Format) -> bool {
    match format {
        #[cfg(feature = "tet")]
        Format::Tet => true,
        #[cfg(feature = "tiledb")]
        Format::TileDb => true,
        #[cfg(feature = "hdf5")]
        Format::Hdf5 => true,
        #[cfg(feature = "zarr")]
        Format::Zarr => true,
        _ => false,
    }
}

/// What a new store or file is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    File,
    Folder,
}

/// What a store of the format is on the disk.
pub(crate) fn shape(format: Format) -> Shape {
    match format {
        #[cfg(feature = "tiledb")]
        Format::TileDb => Shape::Folder,
        #[cfg(feature = "zarr")]
        Format::Zarr => Shape::Folder,
        #[cfg(feature = "zvf")]
        Format::Zvf => Shape::Folder,
        _ => Shape::File,
    }
}

/// Refuses to replace what is not ours to replace. A store of any format here may be replaced, and so may an empty folder
/// or file: nothing is lost with them. Everything else stays, however the caller insists: a folder of documents under a
/// mistyped name must survive the option. A symbolic link is not followed, so that a store elsewhere survives too.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) when something else stands at the target; [`Io`](Error::Io) when it cannot be looked at.
pub(crate) fn check_replaceable(target: &Path, new: Shape) -> Result<()> {
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
        if new == Shape::File {
            return Err(Error::invalid(format!(
                "{name} is a folder, which a file cannot replace; remove it or choose another target"
            )));
        }
        let is_empty = std::fs::read_dir(target)
            .map_err(|problem| Error::io(name.to_string(), problem))?
            .next()
            .is_none();
        is_empty || recognise_directory(&LocalDirectory::new(target))?.is_some()
    } else {
        metadata.is_file() && (metadata.len() == 0 || is_store_file(target)?)
    };
    if is_ours {
        return Ok(());
    }
    let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
    Err(Error::invalid(format!(
        "{name} exists and is not a store of {}, so it is not replaced; remove it or choose another target",
        names.join(", ")
    )))
}

/// As [`check_replaceable`], for a file whose form follows from its extension. Most such files have no signature: whatever
/// regular file has the extension counts as one.
///
/// # Errors
///
/// As [`check_replaceable`].
pub(crate) fn check_replaceable_file(target: &Path) -> Result<()> {
    match target.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => Ok(()),
        _ => check_replaceable(target, Shape::File),
    }
}

/// Is this file a store? Documents of other programs are zip archives too: as `.npz` counts one that holds arrays.
fn is_store_file(path: &Path) -> Result<bool> {
    let blob: Arc<dyn Blob> = Arc::new(FileBlob::open(path)?);
    Ok(match recognise(&*blob)? {
        Some(Format::Npz) => npy::NpzStore::open(blob)
            .and_then(|archive| archive.children("/"))
            .is_ok_and(|members| !members.is_empty()),
        found => found.is_some(),
    })
}

/// Starts a new store of a format. Nothing stands at `target` before it is committed.
///
/// With [`replace`](CreateOptions::replace), a store that stands at the target is replaced, as is an empty folder or file.
/// Anything else there is refused, a symbolic link included.
///
/// # Errors
///
/// [`Exists`](Error::Exists) when the target exists and is not to be replaced, [`Invalid`](Error::Invalid) when it is nothing
/// that may be replaced; [`Io`](Error::Io) when its folder cannot be written.
pub fn create(target: &Path, format: Format, options: &CreateOptions) -> Result<Box<dyn Sink>> {
    let exists = target.symlink_metadata().is_ok();
    if !options.replace && !options.append && exists {
        return Err(Error::exists(target));
    }
    let append = options.append && exists;
    if append && !adds(format) {
        return Err(Error::unsupported(target.display().to_string(), format!("adding to {}", format.name())));
    }
    if options.replace && !append {
        check_replaceable(target, shape(format))?;
    }
    Ok(match format {
        #[cfg(feature = "tet")]
        Format::Tet => {
            let mut tet = hyperslab_tet::TetOptions::default();
            (tet.overwrite, tet.sync) = (options.replace, options.sync);
            tet.tool = concat!("hyperslab ", env!("CARGO_PKG_VERSION")).to_owned();
            if let Some(source) = &options.source {
                tet.history.push(hyperslab_tet::HistoryRow::now("convert", source));
            }
            if append {
                Box::new(hyperslab_tet::TetAppend::open(target, tet)?)
            } else {
                Box::new(hyperslab_tet::TetSink::create(target, tet)?)
            }
        }
        Format::Npy => Box::new(npy::NpySink::create(target, options.stage())?),
        Format::Npz => Box::new(npy::NpzSink::create(target, options.stage())?),
        #[cfg(feature = "zarr")]
        Format::Zarr if append => {
            Box::new(hyperslab_zarr::ZarrAppend::open(target, options.shard_shape.clone())?)
        }
        #[cfg(feature = "zarr")]
        Format::Zarr => {
            let zarr = hyperslab_zarr::WriteOptions {
                replace: options.replace,
                sync: options.sync,
                shard_shape: options.shard_shape.clone(),
                format: match options.variant {
                    Some(Variant::Zarr2) => hyperslab_zarr::ZarrFormat::V2,
                    _ => hyperslab_zarr::ZarrFormat::V3,
                },
                consolidated: true,
            };
            Box::new(hyperslab_zarr::ZarrSink::create(target, zarr)?)
        }
        #[cfg(feature = "tiledb")]
        Format::TileDb => {
            let tiledb = hyperslab_tiledb::WriteOptions {
                force: options.replace,
                sync: options.sync,
                by_name: !options.only_array,
                ..hyperslab_tiledb::WriteOptions::default()
            };
            if append {
                Box::new(hyperslab_tiledb::append(target, tiledb)?)
            } else {
                Box::new(hyperslab_tiledb::create(target, tiledb)?)
            }
        }
        #[cfg(feature = "hdf5")]
        Format::Hdf5 if append => {
            Box::new(hyperslab_hdf5::Hdf5Append::open(target, hyperslab_hdf5::AppendOptions::default())?)
        }
        #[cfg(feature = "hdf5")]
        Format::Hdf5 => {
            let mut hdf5 = hyperslab_hdf5::Hdf5Options::default();
            (hdf5.replace, hdf5.sync) = (options.replace, options.sync);
            Box::new(hyperslab_hdf5::Hdf5Sink::create(target, hdf5)?)
        }
        #[cfg(feature = "zvf")]
        other => {
            return Err(Error::unsupported(
                target.display().to_string(),
                format!("writing {}", other.name()),
            ));
        }
    })
}
