//! The open file: its bytes, the widths of its addresses and lengths, and its caches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use hyperslab_codec::checksum::{agree, lookup3};
use hyperslab_core::{Blob, Error, Fields, Place, Result};

use crate::cache_image::CacheImage;
use crate::dimensions::Scale;
use crate::driver;
use crate::group::Group;
use crate::heap::global::Collection;
use crate::paths::{Paths, Reached};
use crate::shared::SharedTable;
use crate::store::{LastWalk, Listing};
use crate::superblock::Superblock;
use hyperslab_core::Externals;

/// The widths of addresses ("size of offsets") and lengths, in bytes. Both are at most 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) address: usize,
    pub(crate) length: usize,
}

/// Fields whose width the superblock gives.
pub(crate) trait FileFields {
    /// An address relative to the base; `None` for the undefined address, with all bits one.
    fn address(&mut self, sizes: Sizes) -> Result<Option<u64>>;
    /// A length or count.
    fn length(&mut self, sizes: Sizes) -> Result<u64>;
    /// An address that must be defined.
    fn defined(&mut self, sizes: Sizes) -> Result<u64>;
    /// Text up to a NUL, which is consumed.
    fn text(&mut self) -> Result<String>;
    /// Reads a version; refuses all but these.
    fn version(&mut self, known: &[u8]) -> Result<u8>;
}

impl FileFields for Fields<'_> {
    fn address(&mut self, sizes: Sizes) -> Result<Option<u64>> {
        let address = self.uint(sizes.address)?;
        Ok((address != ones(sizes.address)).then_some(address))
    }

    fn length(&mut self, sizes: Sizes) -> Result<u64> {
        self.uint(sizes.length)
    }

    fn defined(&mut self, sizes: Sizes) -> Result<u64> {
        let place = self.place();
        self.address(sizes)?.ok_or_else(|| place.corrupt("an undefined address"))
    }

    fn text(&mut self) -> Result<String> {
        let place = self.place();
        let Some(end) = self.rest().iter().position(|byte| *byte == 0) else {
            return Err(place.corrupt("text without its NUL"));
        };
        let text = String::from_utf8_lossy(self.bytes(end)?).into_owned();
        self.skip(1)?;
        Ok(text)
    }

    fn version(&mut self, known: &[u8]) -> Result<u8> {
        let place = self.place();
        let version = self.u8()?;
        if known.contains(&version) { Ok(version) } else { Err(place.corrupt(format!("version {version}"))) }
    }
}

/// The largest number of this many bytes: "undefined" for addresses, "unlimited" for lengths.
pub(crate) const fn ones(width: usize) -> u64 {
    if width >= 8 { u64::MAX } else { (1 << (8 * width)) - 1 }
}

/// The maximum number of groups and of heap collections in the caches, and the maximum bytes of each. The last one is cached
/// whatever its size.
const MAX_CACHED: usize = 256;
const MAX_CACHED_BYTES: u64 = 64 << 20;

/// The number of structures requested together: enough to hide the latency of a server, few enough to fit in memory.
const PREFETCHED: usize = 1024;

/// A cache of structures by address.
#[derive(Debug)]
struct Cache<T> {
    held: HashMap<u64, Arc<T>>,
    bytes: u64,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { held: HashMap::new(), bytes: 0 }
    }
}

impl<T> Cache<T> {
    fn get(&self, address: u64) -> Option<Arc<T>> {
        self.held.get(&address).cloned()
    }

    fn keep(&mut self, address: u64, value: &Arc<T>, bytes: u64) {
        if self.held.len() >= MAX_CACHED || self.bytes.saturating_add(bytes) > MAX_CACHED_BYTES {
            self.held.clear();
            self.bytes = 0;
        }
        if self.held.insert(address, Arc::clone(value)).is_none() {
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }
}

/// An open file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) blob: Arc<dyn Blob>,
    pub(crate) name: Arc<str>,
    /// The number of bytes in the blob.
    pub(crate) length: u64,
    /// The number of bytes stored: fewer if a driver leaves gaps between files.
    pub(crate) stored: u64,
    pub(crate) superblock: Superblock,
    /// The blob joins several files.
    pub(crate) is_joined: bool,
    pub(crate) externals: Arc<dyn Externals>,
    /// The number of files opened to get here, because external links may form a cycle.
    pub(crate) distance: u32,
    pub(crate) shared: OnceLock<Option<SharedTable>>,
    /// Structures stored in the cache image instead of at their addresses.
    image: CacheImage,
    pub(crate) paths: Mutex<Paths>,
    /// The paths by which callers reached groups.
    pub(crate) reached: Mutex<Reached>,
    pub(crate) last_walk: Mutex<Option<LastWalk>>,
    /// The last large group that was listed.
    pub(crate) last_listing: Mutex<Option<Listing>>,
    groups: Mutex<Cache<Group>>,
    collections: Mutex<Cache<Collection>>,
    /// NetCDF-4's numbered scales by group: addresses by number.
    dimensions: Mutex<Cache<HashMap<i64, u64>>>,
    /// Parsed dimension scales, because each is used by many datasets.
    scales: Mutex<Cache<Scale>>,
}

impl File {
    /// Opens the file in this blob.
    pub(crate) fn open(blob: Arc<dyn Blob>, externals: Arc<dyn Externals>, distance: u32) -> Result<Self> {
        let superblock = Superblock::read(&*blob)?;
        let mut file = Self::alone(blob, superblock, externals, distance)?;
        let whole = file.operation(|| driver::members(&file, &*Arc::clone(&file.externals)))?;
        if let Some(whole) = whole {
            file.length = whole.blob.len()?;
            file.stored = whole.stored;
            file.blob = whole.blob;
            file.is_joined = true;
        }
        // If the extension cannot be read, continue without its messages.
        file.image = file.operation(|| CacheImage::read(&file)).unwrap_or_default();
        file.join();
        Ok(file)
    }

    /// The file in this blob, without the files that a driver keeps beside it.
    pub(crate) fn alone(
        blob: Arc<dyn Blob>,
        superblock: Superblock,
        externals: Arc<dyn Externals>,
        distance: u32,
    ) -> Result<Self> {
        Ok(Self {
            name: Arc::clone(blob.name()),
            length: blob.len()?,
            stored: blob.len()?,
            blob,
            superblock,
            is_joined: false,
            externals,
            distance,
            shared: OnceLock::new(),
            image: CacheImage::default(),
            paths: Mutex::default(),
            reached: Mutex::default(),
            last_walk: Mutex::default(),
            last_listing: Mutex::default(),
            groups: Mutex::default(),
            collections: Mutex::default(),
            dimensions: Mutex::default(),
            scales: Mutex::default(),
        })
    }

    pub(crate) const fn sizes(&self) -> Sizes {
        self.superblock.sizes
    }

    /// The place of a structure, for errors. Addresses count from the base, places from the start of the file.
    pub(crate) fn place(&self, structure: &'static str, address: u64) -> Place<'_> {
        Place::new(&self.name, structure, self.superblock.base.saturating_add(address))
    }

    /// Reads `length` bytes of a structure at `address`, drawing on the operation's budget.
    pub(crate) fn read(&self, structure: &'static str, address: u64, length: u64) -> Result<Bytes> {
        let place = self.place(structure, address);
        if let Some(held) = self.image.get(address) {
            let range = usize::try_from(length).ok().filter(|length| *length <= held.len());
            self.spend(range.map_or(0, |length| length as u64), structure)?;
            return range.map(|length| held.slice(..length)).ok_or_else(|| {
                place.corrupt(format!("{length} bytes expected, the cache image has {}", held.len()))
            });
        }
        let start = self.absolute(place, address)?;
        let end = start.checked_add(length).filter(|end| *end <= self.length);
        // Do not charge for bytes past the end of the file, since none are read.
        self.spend(end.map_or(0, |_| length), structure)?;
        match end {
            Some(end) => self.blob.read_range(start..end),
            None => {
                Err(place.corrupt(format!("{length} bytes expected, the file ends at {:#x}", self.length)))
            }
        }
    }

    /// Announces that structures at these addresses, of about this many bytes each, will be read soon. On remote storage they
    /// are requested together.
    pub(crate) fn prefetch(&self, addresses: impl IntoIterator<Item = u64>, length: u64) {
        if !self.blob.is_remote() {
            return;
        }
        let range = |address: u64| {
            let start = self.superblock.base.checked_add(address)?;
            Some(start..start.checked_add(length)?.min(self.length))
        };
        let ranges: Vec<_> = addresses
            .into_iter()
            .take(PREFETCHED)
            .filter_map(range)
            .filter(|range| !range.is_empty())
            .collect();
        self.blob.prefetch(&ranges);
    }

    /// Reads up to `length` bytes of a structure whose size is not known in advance.
    pub(crate) fn read_some(&self, structure: &'static str, address: u64, length: u64) -> Result<Bytes> {
        let start = self.absolute(self.place(structure, address), address)?;
        let room =
            self.image.get(address).map_or(self.length.saturating_sub(start), |held| held.len() as u64);
        self.read(structure, address, length.min(room))
    }

    /// Reads a structure that ends with its checksum. The checksum is verified and cut off.
    pub(crate) fn read_checked(&self, structure: &'static str, address: u64, length: u64) -> Result<Bytes> {
        let bytes = self.read(structure, address, length)?;
        let place = self.place(structure, address);
        let body = check_sum(&bytes, place)?;
        Ok(bytes.slice(..body))
    }

    /// Converts an address to an offset in the blob.
    pub(crate) fn absolute(&self, place: Place<'_>, address: u64) -> Result<u64> {
        match self.superblock.base.checked_add(address) {
            Some(absolute) if absolute < self.length => Ok(absolute),
            _ => Err(place.corrupt(format!("lies outside the file, which ends at {:#x}", self.length))),
        }
    }

    /// The group whose object header is at this address.
    pub(crate) fn group(self: &Arc<Self>, address: u64) -> Result<Arc<Group>> {
        if let Some(group) = lock(&self.groups).get(address) {
            return Ok(group);
        }
        let group = Arc::new(Group::open(self, address)?);
        lock(&self.groups).keep(address, &group, group.bytes());
        Ok(group)
    }

    /// The global heap collection at this address.
    pub(crate) fn collection(&self, address: u64) -> Result<Arc<Collection>> {
        if let Some(collection) = lock(&self.collections).get(address) {
            return Ok(collection);
        }
        let collection = Arc::new(Collection::read(self, address)?);
        lock(&self.collections).keep(address, &collection, collection.bytes());
        Ok(collection)
    }

    /// The numbered scales of the group at this address. `read` is called if they are not cached.
    pub(crate) fn dimensions(
        &self,
        group: u64,
        read: impl FnOnce() -> HashMap<i64, u64>,
    ) -> Arc<HashMap<i64, u64>> {
        if let Some(dimensions) = lock(&self.dimensions).get(group) {
            return dimensions;
        }
        let dimensions = Arc::new(read());
        lock(&self.dimensions).keep(group, &dimensions, 32 * dimensions.len() as u64);
        dimensions
    }

    /// The dimension scale at this address. `read` is called if it is not cached.
    pub(crate) fn scale(&self, address: u64, read: impl FnOnce() -> Option<Scale>) -> Option<Arc<Scale>> {
        if let Some(scale) = lock(&self.scales).get(address) {
            return Some(scale);
        }
        let scale = Arc::new(read()?);
        lock(&self.scales).keep(address, &scale, scale.weight());
        Some(scale)
    }

    pub(crate) fn unsupported(&self, feature: impl Into<String>) -> Error {
        Error::unsupported(Arc::clone(&self.name), feature)
    }
}

/// Verifies the checksum in the last four bytes. Returns the number of bytes before it.
pub(crate) fn check_sum(bytes: &[u8], place: Place<'_>) -> Result<usize> {
    let Some((body, stored)) = bytes.split_last_chunk::<4>() else {
        return Err(place.corrupt("no room for a checksum"));
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), lookup3(body, 0));
    if agree(computed, stored) {
        return Ok(body.len());
    }
    Err(place.corrupt(format!("checksum {computed:#010x}, stored {stored:#010x}")))
}

/// Locks the mutex, even if it is poisoned: cached values are replaced as a whole, so they are always consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
