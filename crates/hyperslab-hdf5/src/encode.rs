//! Writes little-endian fields, as read by [`FileFields`](crate::file::FileFields).

use hyperslab_codec::checksum::lookup3;
use hyperslab_core::{Error, Result};

use crate::file::{Sizes, ones};

/// Builds the bytes of one structure.
///
/// Every length and count is checked against the width of its field. The first error is stored and returned by
/// [`finish`](Self::finish) and [`summed`](Self::summed), which are the only ways to get the bytes. A structure with a
/// truncated field therefore cannot be written.
#[derive(Debug, Clone)]
pub(crate) struct Encoder {
    bytes: Vec<u8>,
    sizes: Sizes,
    problem: Option<String>,
}

impl Encoder {
    pub(crate) const fn new(sizes: Sizes) -> Self {
        Self { bytes: Vec::new(), sizes, problem: None }
    }

    /// A structure that starts with a four-byte magic and a version.
    pub(crate) fn magic(sizes: Sizes, magic: &[u8; 4], version: u8) -> Self {
        let mut encoder = Self::new(sizes);
        encoder.put(magic).u8(version);
        encoder
    }

    /// The number of bytes so far.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.put(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    /// Appends a length or count in a field of `width` (at most 8) bytes. `what` names it in the error if it does not fit.
    pub(crate) fn count(&mut self, count: impl TryInto<u64>, width: usize, what: &str) -> &mut Self {
        let value = count.try_into().unwrap_or(u64::MAX);
        self.limit(value, ones(width), what);
        self.put(&value.to_le_bytes()[..width.min(8)])
    }

    /// Records an error if `count` is above `most`.
    pub(crate) fn limit(&mut self, count: impl TryInto<u64>, most: u64, what: &str) -> &mut Self {
        let value = count.try_into().unwrap_or(u64::MAX);
        if value > most && self.problem.is_none() {
            self.problem = Some(format!("{what}: {value}, but HDF5 allows at most {most}"));
        }
        self
    }

    /// Records an error.
    pub(crate) fn refuse(&mut self, problem: &str) -> &mut Self {
        self.problem.get_or_insert_with(|| problem.to_owned());
        self
    }

    /// Appends a number of `width` (at most 8) bytes.
    pub(crate) fn uint(&mut self, value: u64, width: usize) -> &mut Self {
        self.count(value, width, "a number in a narrow field")
    }

    /// Appends an address; `None` is the undefined address, with all bits one.
    pub(crate) fn address(&mut self, address: Option<u64>) -> &mut Self {
        let (width, nowhere) = (self.sizes.address, ones(self.sizes.address));
        if let Some(address) = address {
            self.limit(address, nowhere - 1, "an address in the file");
        }
        self.put(&address.unwrap_or(nowhere).to_le_bytes()[..width.min(8)])
    }

    /// Appends a length or count of the superblock's width.
    pub(crate) fn length(&mut self, length: u64) -> &mut Self {
        self.count(length, self.sizes.length, "a length in the file")
    }

    /// Appends zeros up to the next multiple of `unit` bytes, counted from `from`.
    pub(crate) fn pad(&mut self, from: usize, unit: usize) -> &mut Self {
        let length = (self.bytes.len() - from).next_multiple_of(unit);
        self.bytes.resize(from + length, 0);
        self
    }

    /// Appends zeros.
    pub(crate) fn zeros(&mut self, count: usize) -> &mut Self {
        self.bytes.resize(self.bytes.len() + count, 0);
        self
    }

    /// Appends zeros up to a total of `length` bytes.
    pub(crate) fn fill(&mut self, length: usize) -> &mut Self {
        self.limit(self.bytes.len(), length as u64, "the bytes of a structure of fixed size");
        self.bytes.resize(length, 0);
        self
    }

    /// Returns the bytes.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if something does not fit in its field.
    pub(crate) fn finish(self) -> Result<Vec<u8>> {
        match self.problem {
            None => Ok(self.bytes),
            Some(problem) => Err(Error::invalid(problem)),
        }
    }

    /// Returns the bytes, followed by their checksum.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish).
    pub(crate) fn summed(mut self) -> Result<Vec<u8>> {
        let sum = lookup3(&self.bytes, 0);
        self.u32(sum);
        self.finish()
    }
}

/// Updates the checksum at the end of these bytes.
pub(crate) fn renew_sum(bytes: &mut [u8]) {
    if let Some((body, sum)) = bytes.split_last_chunk_mut::<4>() {
        *sum = lookup3(body, 0).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Sizes = Sizes { address: 4, length: 2 };

    #[test]
    fn values_that_do_not_fit_are_refused_by_name() {
        let mut out = Encoder::new(NARROW);
        out.count(65_535_usize, 2, "the name").u8(1);
        assert_eq!(out.clone().finish().unwrap(), [0xff, 0xff, 1]);
        out.count(65_536_usize, 2, "the name").u8(1);
        let error = out.clone().finish().unwrap_err().to_string();
        assert!(error.contains("the name") && error.contains("65536") && error.contains("65535"), "{error}");
        assert!(out.summed().is_err());
        for write in [
            |out: &mut Encoder| out.address(Some(0xffff_ffff)).len(),
            |out: &mut Encoder| out.length(0x1_0000).len(),
            |out: &mut Encoder| out.limit(33_usize, 32, "dimensions").len(),
        ] {
            let mut out = Encoder::new(NARROW);
            write(&mut out);
            assert!(out.finish().is_err());
        }
        let mut out = Encoder::new(NARROW);
        out.address(None).address(Some(0xffff_fffe));
        assert_eq!(out.finish().unwrap(), [0xff, 0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff]);
    }

    /// Casting to a narrower type truncates silently, so the writer must use [`Encoder::count`] instead.
    #[test]
    fn the_writer_never_casts_to_a_narrower_type() {
        fn scan(path: &std::path::Path, found: &mut Vec<String>) {
            if path.is_dir() {
                for entry in std::fs::read_dir(path).unwrap() {
                    scan(&entry.unwrap().path(), found);
                }
                return;
            }
            let text = std::fs::read_to_string(path).unwrap();
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                if [" as u8", " as u16", " as u32"].iter().any(|cast| code.contains(cast)) {
                    found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
                }
            }
        }
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        for part in [
            "write",
            "write.rs",
            "message",
            "btree2.rs",
            "superblock.rs",
            "symbol_table.rs",
            "filters/choose.rs",
        ] {
            scan(&source.join(part), &mut found);
        }
        assert!(found.is_empty(), "{found:#?}");
    }
}
