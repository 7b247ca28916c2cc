//! The states that a power cut can leave.
//!
//! The model is that of POSIX, without guarantees that only some file systems give:
//!
//! - Bytes that were written but not synced may survive or not, sector by sector, in any combination. The same holds for a file's
//!   length.
//! - A name that was created, moved or removed may be so or not, until its folder is synced. A rename or an exchange is atomic.
//! - Synced content survives.
//!
//! A [`Recorder`] inspects the folder after each step that the storage layer reports, and records the differences. It therefore
//! also sees writes that the storage layer does not report; only syncs must be reported.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hyperslab_core::storage::Step;

use crate::random::Random;

/// The unit that a disk writes atomically.
const SECTOR: usize = 512;

/// Up to this many pending operations, all combinations are tested.
const ENUMERATED: usize = 6;

/// A file or folder, whatever its name.
type Id = usize;

#[derive(Debug, Clone)]
enum Inode {
    File(Vec<u8>),
    Folder(BTreeMap<OsString, Id>),
}

/// A change that is not durable yet.
#[derive(Debug, Clone)]
enum Pending {
    Bytes {
        file: Id,
        offset: usize,
        bytes: Vec<u8>,
    },
    Length {
        file: Id,
        length: usize,
    },
    /// Names that change at once: their new targets, or none.
    Names(Vec<(Id, OsString, Option<Id>)>),
}

impl Pending {
    fn is_of_file(&self, id: Id) -> bool {
        matches!(self, Self::Bytes { file, .. } | Self::Length { file, .. } if *file == id)
    }

    /// Returns true if syncing this folder makes it durable. A rename becomes durable with the folder of the new name.
    fn is_of_folder(&self, id: Id) -> bool {
        let Self::Names(changes) = self else { return false };
        let links = changes.iter().any(|(_, _, to)| to.is_some());
        changes.iter().any(|(folder, _, to)| *folder == id && (to.is_some() || !links))
    }
}

type Inodes = HashMap<Id, Inode>;

/// Records the changes of a folder.
#[derive(Debug)]
pub struct Recorder {
    root: PathBuf,
    /// By device and inode number. Open handles keep numbers from being reused.
    ids: HashMap<(u64, u64), Id>,
    handles: Vec<File>,
    seen: Inodes,
    durable: Inodes,
    pending: Vec<Pending>,
}

/// The folder itself.
const ROOT: Id = 0;

impl Recorder {
    /// Starts with everything in the folder durable.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read.
    pub fn new(root: &Path) -> io::Result<Self> {
        let (ids, handles) = (HashMap::new(), Vec::new());
        let (seen, durable) = (HashMap::new(), HashMap::new());
        let mut own = Self { root: root.to_owned(), ids, handles, seen, durable, pending: Vec::new() };
        own.seen = own.scan()?;
        own.durable = own.seen.clone();
        Ok(own)
    }

    /// The number of changes that are not durable.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Inspects the folder and records the differences.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read.
    pub fn observe(&mut self) -> io::Result<()> {
        let now = self.scan()?;
        for (id, inode) in &now {
            let Inode::File(content) = inode else { continue };
            let before = match self.seen.get(id) {
                Some(Inode::File(before)) => before.as_slice(),
                _ => &[],
            };
            changed_bytes(*id, before, content, &mut self.pending);
        }
        self.pending.extend(changed_names(&self.seen, &now));
        for (id, inode) in &now {
            // A file exists as soon as a name leads to it.
            self.durable.entry(*id).or_insert_with(|| match inode {
                Inode::File(_) => Inode::File(Vec::new()),
                Inode::Folder(_) => Inode::Folder(BTreeMap::new()),
            });
        }
        self.seen = now;
        Ok(())
    }

    /// Marks what a step made durable.
    pub fn sync(&mut self, step: &Step) {
        match step {
            Step::Sync(path) => {
                let Some(id) = self.id_of(path) else { return };
                self.make_durable(|pending| pending.is_of_file(id));
            }
            Step::SyncFolder(path) => {
                let Some(id) = self.id_of(path) else { return };
                self.make_durable(|pending| pending.is_of_folder(id));
            }
            Step::SyncTree(path) => {
                let Some(top) = self.id_of(path) else { return };
                let mut below = vec![top];
                let mut next = 0;
                while let Some(id) = below.get(next) {
                    if let Some(Inode::Folder(entries)) = self.seen.get(id) {
                        below.extend(entries.values());
                    }
                    next += 1;
                }
                self.make_durable(|pending| {
                    below.iter().any(|id| pending.is_of_file(*id) || pending.is_of_folder(*id))
                });
            }
            _ => {}
        }
    }

    fn make_durable(&mut self, is_durable: impl Fn(&Pending) -> bool) {
        let (done, rest): (Vec<_>, Vec<_>) = self.pending.drain(..).partition(is_durable);
        done.iter().for_each(|pending| apply(pending, &mut self.durable));
        self.pending = rest;
    }

    /// The states that a power cut can leave at this point, each as a choice of pending changes: all states, or a
    /// sample.
    #[must_use]
    pub fn choices(&self, samples: usize, random: &mut Random) -> Vec<Vec<bool>> {
        let count = self.pending.len();
        if count <= ENUMERATED {
            return (0..1_usize << count)
                .map(|mask| (0..count).map(|at| mask >> at & 1 == 1).collect())
                .collect();
        }
        let is_name = |pending: &Pending| matches!(pending, Pending::Names(_));
        let mut choices = vec![
            vec![false; count],
            vec![true; count],
            self.pending.iter().map(is_name).collect(),
            self.pending.iter().map(|pending| !is_name(pending)).collect(),
        ];
        for _ in 0..samples {
            let at = (random.number() % count as u64) as usize;
            choices.push(match random.number() % 5 {
                // One change; all but one; a prefix; all names and some bytes; a random choice.
                0 => (0..count).map(|own| own == at).collect(),
                1 => (0..count).map(|own| own != at).collect(),
                2 => (0..count).map(|own| own < at).collect(),
                3 => self.pending.iter().map(|pending| is_name(pending) || random.coin()).collect(),
                _ => (0..count).map(|_| random.coin()).collect(),
            });
        }
        choices
    }

    /// Creates one of the states in a folder, which must not exist.
    ///
    /// # Errors
    ///
    /// If the system reports an error.
    pub fn materialise(&self, choice: &[bool], folder: &Path) -> io::Result<()> {
        let mut inodes = self.durable.clone();
        for (pending, chosen) in self.pending.iter().zip(choice) {
            if *chosen {
                apply(pending, &mut inodes);
            }
        }
        write(&inodes, ROOT, folder)
    }

    fn id_of(&mut self, path: &Path) -> Option<Id> {
        let metadata = path.symlink_metadata().ok()?;
        self.ids.get(&(metadata.dev(), metadata.ino())).copied()
    }

    /// Everything below the root.
    fn scan(&mut self) -> io::Result<Inodes> {
        let mut found = HashMap::new();
        let root = self.root.clone();
        self.scan_at(&root, &mut found)?;
        Ok(found)
    }

    fn scan_at(&mut self, path: &Path, found: &mut Inodes) -> io::Result<Id> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let count = self.ids.len();
        let id = *self.ids.entry((metadata.dev(), metadata.ino())).or_insert(count);
        if id == count {
            self.handles.push(file);
        }
        let inode = if metadata.is_dir() {
            let mut entries = BTreeMap::new();
            for entry in std::fs::read_dir(path)? {
                let entry = entry?;
                entries.insert(entry.file_name(), self.scan_at(&entry.path(), found)?);
            }
            Inode::Folder(entries)
        } else {
            Inode::File(std::fs::read(path)?)
        };
        found.insert(id, inode);
        Ok(id)
    }
}

/// The sectors that differ, and the length.
fn changed_bytes(file: Id, before: &[u8], now: &[u8], pending: &mut Vec<Pending>) {
    if before.len() != now.len() {
        pending.push(Pending::Length { file, length: now.len() });
    }
    for (number, sector) in now.chunks(SECTOR).enumerate() {
        let offset = number * SECTOR;
        let old = before.get(offset..before.len().min(offset + sector.len())).unwrap_or_default();
        // If the file grows, zeros come with the length.
        let (same, new) = sector.split_at(old.len());
        if same != old || new.iter().any(|byte| *byte != 0) {
            pending.push(Pending::Bytes { file, offset, bytes: sector.to_vec() });
        }
    }
}

/// The names that differ. A move is one change; everything else is separate.
fn changed_names(before: &Inodes, now: &Inodes) -> Vec<Pending> {
    let names = |inodes: &Inodes| -> BTreeMap<(Id, OsString), Id> {
        let folders = inodes.iter().filter_map(|(id, inode)| match inode {
            Inode::Folder(entries) => Some((*id, entries)),
            Inode::File(_) => None,
        });
        folders
            .flat_map(|(folder, entries)| {
                entries.iter().map(move |(name, id)| ((folder, name.clone()), *id)).collect::<Vec<_>>()
            })
            .collect()
    };
    let (before, now) = (names(before), names(now));
    let gone = |key: &(Id, OsString), id: &Id| now.get(key) != Some(id);
    let (mut moves, mut single) = (Vec::new(), Vec::new());
    for ((folder, name), id) in now.iter().filter(|(key, id)| before.get(*key) != Some(*id)) {
        let change = (*folder, name.clone(), Some(*id));
        if before.iter().any(|(key, own)| own == id && gone(key, own)) {
            moves.push(change);
        } else {
            single.push(Pending::Names(vec![change]));
        }
    }
    let moved: Vec<Id> = moves.iter().filter_map(|(_, _, id)| *id).collect();
    for (key, id) in before.iter().filter(|(key, _)| !now.contains_key(*key)) {
        let change = (key.0, key.1.clone(), None);
        if moved.contains(id) {
            moves.push(change);
        } else {
            single.push(Pending::Names(vec![change]));
        }
    }
    if !moves.is_empty() {
        single.push(Pending::Names(moves));
    }
    single
}

fn apply(pending: &Pending, inodes: &mut Inodes) {
    match pending {
        Pending::Bytes { file, offset, bytes } => {
            if let Some(Inode::File(content)) = inodes.get_mut(file) {
                let end = offset + bytes.len();
                content.resize(content.len().max(end), 0);
                content[*offset..end].copy_from_slice(bytes);
            }
        }
        Pending::Length { file, length } => {
            if let Some(Inode::File(content)) = inodes.get_mut(file) {
                content.resize(*length, 0);
            }
        }
        Pending::Names(changes) => {
            for (folder, name, to) in changes {
                let Some(Inode::Folder(entries)) = inodes.get_mut(folder) else { continue };
                match to {
                    Some(id) => drop(entries.insert(name.clone(), *id)),
                    None => drop(entries.remove(name)),
                }
            }
        }
    }
}

fn write(inodes: &Inodes, id: Id, path: &Path) -> io::Result<()> {
    match inodes.get(&id) {
        Some(Inode::File(content)) => std::fs::write(path, content),
        Some(Inode::Folder(entries)) => {
            std::fs::create_dir(path)?;
            entries.iter().try_for_each(|(name, id)| write(inodes, *id, &path.join(name)))
        }
        None => Ok(()),
    }
}
