//! Keys, which are wiped from memory and never printed, and URLs without secrets.

use std::fmt;

/// A 256-bit key. It lives on the heap, so that moving it leaves no copies behind, and is wiped on drop.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(Box<[u8; 32]>);

impl SecretKey {
    /// Takes these bytes and wipes the copy that was passed in.
    #[must_use]
    pub fn new(mut bytes: [u8; 32]) -> Self {
        let key = Self(Box::new(bytes));
        wipe(&mut bytes);
        key
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        wipe(self.0.as_mut_slice());
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

/// A URL for messages: without its user and, of a web server, without its query, both of which may be secret.
///
/// ```
/// assert_eq!(hyperslab_core::url_name("https://me:secret@host/a b.h5?signature=abc"), "https://host/a b.h5");
/// // In the key of an object in a bucket, a question mark is an ordinary character.
/// assert_eq!(hyperslab_core::url_name("s3://bucket/what?.h5"), "s3://bucket/what?.h5");
/// ```
#[must_use]
pub fn url_name(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = if scheme.starts_with("http") { rest.split('?').next().unwrap_or(rest) } else { rest };
    let authority = rest.find('/').unwrap_or(rest.len());
    let rest = rest[..authority].rfind('@').map_or(rest, |user| &rest[user + 1..]);
    format!("{scheme}://{rest}")
}

/// Overwrites secret bytes in memory.
pub fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    // `black_box` keeps the compiler from optimising the zeroing away.
    std::hint::black_box(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let key = SecretKey::new([0x41; 32]);
        assert_eq!(format!("{:?}", Some(key.clone())), "Some(SecretKey(…))");
        assert_eq!(key.bytes(), &[0x41; 32]);
    }

    #[test]
    fn bytes_are_wiped() {
        let mut bytes = vec![7; 100];
        wipe(&mut bytes);
        assert_eq!(bytes, [0; 100]);
    }
}
