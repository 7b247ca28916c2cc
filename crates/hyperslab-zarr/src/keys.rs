//! Object names of chunks, and back.

use std::fmt::Write;

use hyperslab_core::{ChunkCoord, Extents, Result, Storage, StorageEntry};

/// How a chunk's coordinate becomes an object name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyEncoding {
    /// Whether names start with `c` (v3's "default") or not (v2's).
    pub(crate) prefixed: bool,
    /// `/` or `.`.
    pub(crate) separator: char,
}

impl KeyEncoding {
    /// The name of a chunk's object, below the array's own name.
    ///
    /// An array without dimensions has one chunk, `c` in v3 and `0` in v2.
    pub(crate) fn key(self, array: &str, coord: &[u64]) -> String {
        let mut key = String::with_capacity(array.len() + 4 * coord.len() + 4);
        key.push_str(array);
        if !array.is_empty() {
            key.push('/');
        }
        if self.prefixed {
            key.push('c');
        } else if coord.is_empty() {
            key.push('0');
        }
        for (axis, at) in coord.iter().enumerate() {
            if axis > 0 || self.prefixed {
                key.push(self.separator);
            }
            // Writing to a String cannot fail.
            let _ = write!(key, "{at}");
        }
        key
    }

    /// Parses the coordinate from a name listed below the array.
    pub(crate) fn coord(self, name: &str, rank: usize) -> Option<ChunkCoord> {
        let numbers = if self.prefixed {
            let rest = name.strip_prefix('c')?;
            if rank == 0 {
                return rest.is_empty().then(ChunkCoord::new);
            }
            rest.strip_prefix(self.separator)?
        } else if rank == 0 {
            return (name == "0").then(ChunkCoord::new);
        } else {
            name
        };
        let coord: Option<Extents> = numbers.split(self.separator).map(number).collect();
        coord.filter(|coord| coord.len() == rank)
    }

    /// Visits every object of an array that is named like a chunk, in coordinate order. The grid is not used, because a document
    /// can make it endless.
    pub(crate) fn visit(
        self,
        directory: &dyn Storage,
        array: &str,
        rank: usize,
        visit: &mut dyn FnMut(ChunkCoord) -> Result<bool>,
    ) -> Result<()> {
        let depth = if self.separator == '/' { rank + usize::from(self.prefixed) } else { 1 };
        self.walk(directory, array, "", depth.max(1), rank, visit).map(|_| ())
    }

    fn walk(
        self,
        directory: &dyn Storage,
        array: &str,
        below: &str,
        depth: usize,
        rank: usize,
        visit: &mut dyn FnMut(ChunkCoord) -> Result<bool>,
    ) -> Result<bool> {
        let folder = match (array.is_empty(), below.is_empty()) {
            (_, true) => array.to_owned(),
            (true, false) => below.to_owned(),
            (false, false) => format!("{array}/{below}"),
        };
        let mut entries = directory.list(&folder)?;
        entries.sort_by_cached_key(numeric_order);
        for entry in entries {
            let name = if below.is_empty() { entry.name } else { format!("{below}/{}", entry.name) };
            if depth > 1 {
                let last = name.rsplit('/').next().unwrap_or(&name);
                let plausible =
                    if self.prefixed && below.is_empty() { last == "c" } else { number(last).is_some() };
                if entry.is_directory
                    && plausible
                    && !self.walk(directory, array, &name, depth - 1, rank, visit)?
                {
                    return Ok(false);
                }
            } else if !entry.is_directory
                && let Some(coord) = self.coord(&name, rank)
                && !visit(coord)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Sorts numbers by value, and dotted names by the values of their parts.
fn numeric_order(entry: &StorageEntry) -> Vec<u64> {
    entry.name.split('.').filter_map(number).collect()
}

/// A number in its canonical spelling: no sign, no leading zeros.
fn number(text: &str) -> Option<u64> {
    let canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_core::MemoryStorage;

    const ALL: [KeyEncoding; 4] = [
        KeyEncoding { prefixed: true, separator: '/' },
        KeyEncoding { prefixed: true, separator: '.' },
        KeyEncoding { prefixed: false, separator: '/' },
        KeyEncoding { prefixed: false, separator: '.' },
    ];

    #[test]
    fn names_match_the_specification() {
        let names: Vec<_> = ALL.iter().map(|keys| keys.key("g/a", &[1, 23])).collect();
        assert_eq!(names, ["g/a/c/1/23", "g/a/c.1.23", "g/a/1/23", "g/a/1.23"]);
        let scalars: Vec<_> = ALL.iter().map(|keys| keys.key("", &[])).collect();
        assert_eq!(scalars, ["c", "c", "0", "0"]);
    }

    #[test]
    fn listed_objects_are_the_named_ones_in_numeric_order() -> Result<()> {
        let coords: [&[u64]; 4] = [&[0, 2], &[0, 10], &[2, 0], &[10, 1]];
        for keys in ALL {
            let stray = ["a/zarr.json", "a/.zarray", "a/c/x/1", "a/0.1.2", "a/c.01.2", "a/7/junk/3"];
            let names = coords.iter().map(|coord| keys.key("a", coord)).chain(stray.map(str::to_owned));
            let directory = MemoryStorage::new("m", names.map(|name| (name, vec![0_u8])));
            let mut seen = Vec::new();
            keys.visit(&directory, "a", 2, &mut |coord| {
                seen.push(coord.to_vec());
                Ok(true)
            })?;
            assert_eq!(seen, coords, "{keys:?}");
        }
        Ok(())
    }
}
