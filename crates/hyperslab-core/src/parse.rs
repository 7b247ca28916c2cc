//! Reads little-endian fields from a slice, checking every access.

use crate::{Place, Result};

/// A cursor over the bytes of one structure. Each read is checked. An error names the structure and the file offset at which the
/// field was expected.
///
/// ```
/// use hyperslab_core::{Fields, Place};
/// let mut fields = Fields::new(&[1, 0, 0, 0, 9], Place::new("x.tet", "superblock", 0));
/// assert_eq!(fields.u32()?, 1);
/// assert_eq!(fields.u8()?, 9);
/// assert!(fields.u8().unwrap_err().to_string().contains("superblock at 0x5"));
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    position: usize,
    place: Place<'a>,
}

macro_rules! little_endian {
    ($($name:ident)*) => {$(
        #[doc = concat!("The next little-endian `", stringify!($name), "`.")]
        ///
        /// # Errors
        ///
        /// [`Corrupt`](crate::Error::Corrupt) if too few bytes are left.
        pub fn $name(&mut self) -> Result<$name> {
            Ok($name::from_le_bytes(self.array()?))
        }
    )*};
}

impl<'a> Fields<'a> {
    /// A cursor over `bytes`, which start at `place`.
    #[must_use]
    pub const fn new(bytes: &'a [u8], place: Place<'a>) -> Self {
        Self { bytes, position: 0, place }
    }

    /// The place of the next field.
    #[must_use]
    pub const fn place(&self) -> Place<'a> {
        self.place.plus(self.position as u64)
    }

    /// The number of bytes read so far.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The number of bytes left.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The bytes left, without consuming them.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if fewer are left.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.rest().get(..count) {
            Some(taken) => {
                self.position += count;
                Ok(taken)
            }
            None => Err(self.place().corrupt(format!("{count} bytes expected, {} left", self.remaining()))),
        }
    }

    /// The next `N` bytes as an array.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// Skips `count` bytes.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if fewer are left.
    pub fn skip(&mut self, count: usize) -> Result<()> {
        self.bytes(count).map(|_| ())
    }

    little_endian! { u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 }

    /// The next little-endian unsigned integer of `width` bytes, at most 8.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if too few bytes are left or `width` is above 8.
    pub fn uint(&mut self, width: usize) -> Result<u64> {
        if width > 8 {
            return Err(self
                .place()
                .corrupt(format!("an integer of {width} bytes, but at most 8 are possible")));
        }
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(self.bytes(width)?);
        Ok(u64::from_le_bytes(wide))
    }

    /// The next little-endian `u64`, as a count of items of at least `each` bytes that must follow. A count that exceeds the
    /// remaining bytes is refused before anything is allocated for it.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if the remaining bytes cannot hold that many.
    pub fn count_u64(&mut self, each: usize) -> Result<usize> {
        let place = self.place();
        let count = self.u64()?;
        self.checked_count(count, each, place)
    }

    /// Like [`count_u64`](Self::count_u64), for a `u32`.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if the remaining bytes cannot hold that many.
    pub fn count_u32(&mut self, each: usize) -> Result<usize> {
        let place = self.place();
        let count = u64::from(self.u32()?);
        self.checked_count(count, each, place)
    }

    fn checked_count(&self, count: u64, each: usize, place: Place<'_>) -> Result<usize> {
        let room = self.remaining() / each.max(1);
        match usize::try_from(count) {
            Ok(count) if count <= room => Ok(count),
            _ => Err(place.corrupt(format!("a count of {count}, with room for {room}"))),
        }
    }

    /// Consumes `magic`, and fails if the bytes differ.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if the bytes differ.
    pub fn magic(&mut self, magic: &[u8]) -> Result<()> {
        let place = self.place();
        let found = self.bytes(magic.len())?;
        if found == magic {
            return Ok(());
        }
        Err(place.corrupt(format!(
            "magic \"{}\", expected \"{}\"",
            found.escape_ascii(),
            magic.escape_ascii()
        )))
    }

    /// Fails if bytes are left over.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if there are any.
    pub fn end(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(self.place().corrupt(format!("{left} bytes left over"))),
        }
    }
}
