//! AES-256 in Galois/counter mode. The key is used as is, without additional data.

use ::aes_gcm::aead::inout::InOutBuf;
use ::aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};

use crate::error::{Result, corrupt, size};

const CODEC: &str = "AES-256-GCM";

/// Decrypts `src` into `out`, which has the same length.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if the tag does not match: the key is wrong or the bytes were
/// altered. No plaintext is left in `out` then.
pub fn open(key: &[u8; 32], iv: &[u8; 12], tag: &[u8; 16], src: &[u8], out: &mut [u8]) -> Result<()> {
    let (found, expected) = (src.len(), out.len());
    let buffer = InOutBuf::new(src, out).map_err(|_| size(CODEC, expected, found))?;
    Aes256Gcm::new(key.into()).decrypt_inout_detached(iv.into(), &[], buffer, tag.into()).map_err(|_| {
        out.fill(0);
        corrupt(CODEC, "the key is wrong or the bytes were altered")
    })
}

/// Encrypts `src` into `out`, which has the same length, and returns the tag. Never use the same `iv` twice with
/// one key.
///
/// # Errors
///
/// [`Size`](crate::CodecError::Size) if the lengths differ.
pub fn seal(key: &[u8; 32], iv: &[u8; 12], src: &[u8], out: &mut [u8]) -> Result<[u8; 16]> {
    let (found, expected) = (src.len(), out.len());
    let buffer = InOutBuf::new(src, out).map_err(|_| size(CODEC, expected, found))?;
    let tag = Aes256Gcm::new(key.into())
        .encrypt_inout_detached(iv.into(), &[], buffer)
        .map_err(|_| corrupt(CODEC, "more bytes than the mode allows"))?;
    Ok(tag.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 14 of the GCM specification: zero key, zero IV, one block of zeros.
    #[test]
    fn specification_test_vector() {
        let (mut sealed, mut opened) = ([0; 16], [1; 16]);
        let tag = seal(&[0; 32], &[0; 12], &[0; 16], &mut sealed).unwrap();
        assert_eq!(sealed, 0xcea7_403d_4d60_6b6e_074e_c5d3_baf3_9d18_u128.to_be_bytes());
        assert_eq!(tag, 0xd0d1_c8a7_9999_6bf0_265b_98b5_d48a_b919_u128.to_be_bytes());
        open(&[0; 32], &[0; 12], &tag, &sealed, &mut opened).unwrap();
        assert_eq!(opened, [0; 16]);
    }

    #[test]
    fn altered_bytes_are_refused() {
        let (mut sealed, mut opened) = ([0; 5], [1; 5]);
        let tag = seal(&[7; 32], &[1; 12], b"hello", &mut sealed).unwrap();
        sealed[2] ^= 1;
        assert!(open(&[7; 32], &[1; 12], &tag, &sealed, &mut opened).is_err());
        assert_eq!(opened, [0; 5]);
    }
}
