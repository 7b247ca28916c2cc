//! Keys of encrypted arrays. They come from the environment, never from the command line, and are never printed.

use std::fmt;
use std::path::PathBuf;

use crate::{Error, Result, SecretKey, wipe};

/// A 256-bit key. It is wiped from memory on drop.
#[derive(Clone)]
pub struct EncryptionKey(SecretKey);

impl EncryptionKey {
    /// A key with these bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(SecretKey::new(bytes))
    }

    /// Reads the key from the environment. `HYPERSLAB_KEY` holds the key, as 32 characters or 64 hexadecimal digits;
    /// `HYPERSLAB_KEY_FILE` names a file that holds it.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the key has another length, [`Io`](Error::Io) if the file cannot be read. Messages never
    /// contain the key.
    pub fn from_environment() -> Result<Option<Self>> {
        if let Some(text) = std::env::var_os("HYPERSLAB_KEY") {
            return Self::parse_and_wipe(text.into_encoded_bytes()).map(Some);
        }
        let Some(path) = std::env::var_os("HYPERSLAB_KEY_FILE") else { return Ok(None) };
        let path = PathBuf::from(path);
        let bytes = std::fs::read(&path).map_err(|source| Error::io(path.display().to_string(), source))?;
        Self::parse_and_wipe(bytes).map(Some)
    }

    fn parse_and_wipe(mut bytes: Vec<u8>) -> Result<Self> {
        let key = Self::parse(&bytes);
        wipe(&mut bytes);
        key
    }

    /// Parses 32 bytes or 64 hexadecimal digits, ignoring trailing white space.
    fn parse(bytes: &[u8]) -> Result<Self> {
        let trimmed = bytes.trim_ascii_end();
        let exact = [bytes, trimmed].into_iter().find_map(|text| <[u8; 32]>::try_from(text).ok());
        exact.or_else(|| from_digits(trimmed)).map(Self::new).ok_or_else(|| {
            Error::invalid(
                "the key must be 32 bytes or 64 hexadecimal digits (HYPERSLAB_KEY, HYPERSLAB_KEY_FILE)",
            )
        })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        self.0.bytes()
    }

    /// The key, in memory that is wiped on drop.
    #[must_use]
    pub const fn secret(&self) -> &SecretKey {
        &self.0
    }
}

fn from_digits(digits: &[u8]) -> Option<[u8; 32]> {
    if digits.len() != 64 {
        return None;
    }
    let mut key = [0; 32];
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(key)
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_never_shown() {
        let text = b"0123456789abcdeF0123456789abcdeF";
        let key = EncryptionKey::parse(text).unwrap();
        assert_eq!(key.bytes(), text);
        assert_eq!(EncryptionKey::parse(&[&text[..], b"\n"].concat()).unwrap().bytes(), text);
        let digits: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(EncryptionKey::parse(digits.as_bytes()).unwrap().bytes(), text);
        let error = EncryptionKey::parse(b"secret").unwrap_err().to_string();
        assert!(!error.contains("secret") && !format!("{key:?}").contains("0123"));
    }
}
