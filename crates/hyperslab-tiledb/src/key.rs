//! The encryption key, which no message ever contains.

use hyperslab_core::SecretKey;

/// An AES-256 key, used as is: the format derives nothing from it. It is wiped from memory on drop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(SecretKey);

impl Key {
    /// Wraps the 32 bytes of a key.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(SecretKey::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        self.0.bytes()
    }
}

impl From<SecretKey> for Key {
    fn from(key: SecretKey) -> Self {
        Self(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let shown = format!("{:?}", Some(Key::new([0x41; 32])));
        assert!(shown.contains('…') && !shown.contains("41") && !shown.contains("65"), "{shown}");
    }
}
