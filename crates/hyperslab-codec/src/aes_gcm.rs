//! AES-256-GCM, in place and with the tag apart (TileDB filter 11).
//!
//! A key encrypts at most 2³² messages with random nonces of 12 bytes; where nonces come from is the caller's business.

use ::aes_gcm::aead::{AeadInOut, KeyInit};
use ::aes_gcm::{Aes256Gcm, Key, Nonce, Tag};

use crate::error::{Result, corrupt, invalid};

const CODEC: &str = "aes-256-gcm";

/// Encrypts `data` in place; answers with the tag.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) where `data` is longer than the cipher allows (about 64 GiB).
pub fn encrypt(key: &[u8; 32], nonce: &[u8; 12], data: &mut [u8]) -> Result<[u8; 16]> {
    let tag = Aes256Gcm::new(&Key::<Aes256Gcm>::from(*key))
        .encrypt_inout_detached(&Nonce::from(*nonce), &[], data.into())
        .map_err(|_| invalid(CODEC, "too many bytes"))?;
    Ok(tag.into())
}

/// Decrypts `data` in place, if the tag is right.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) where the tag is not that of `data` under this key: the key is wrong or the bytes
/// are. `data` is then still encrypted.
pub fn decrypt(key: &[u8; 32], nonce: &[u8; 12], tag: &[u8; 16], data: &mut [u8]) -> Result<()> {
    Aes256Gcm::new(&Key::<Aes256Gcm>::from(*key))
        .decrypt_inout_detached(&Nonce::from(*nonce), &[], data.into(), &Tag::from(*tag))
        .map_err(|_| corrupt(CODEC, "the tag does not match: wrong key or damaged bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::hex;

    #[test]
    fn the_vectors_of_the_gcm_paper_are_met() {
        // Test case 15 of "The Galois/Counter Mode of Operation".
        let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308").try_into().unwrap();
        let nonce = hex("cafebabefacedbaddecaf888").try_into().unwrap();
        let plain = hex(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
        );
        let cipher = hex(
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad",
        );
        let mut data = plain.clone();
        let tag = encrypt(&key, &nonce, &mut data).unwrap();
        assert_eq!(data, cipher);
        assert_eq!(tag[..], hex("b094dac5d93471bdec1a502270e3cc6c"));
        decrypt(&key, &nonce, &tag, &mut data).unwrap();
        assert_eq!(data, plain);
    }

    proptest! {
        #[test]
        fn any_change_is_noticed(data: Vec<u8>, key: [u8; 32], nonce: [u8; 12], at: prop::sample::Index) {
            let mut sealed = data.clone();
            let mut tag = encrypt(&key, &nonce, &mut sealed).unwrap();
            let at = at.index(sealed.len() + 16);
            match at.checked_sub(sealed.len()) {
                Some(i) => tag[i] ^= 1,
                None => sealed[at] ^= 1,
            }
            prop_assert!(decrypt(&key, &nonce, &tag, &mut sealed).is_err());
        }
    }
}
