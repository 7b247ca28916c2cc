use proptest::prelude::*;

use super::*;
use crate::testing::hex;

/// The bytes that the reference values below are of: the first `len` of `(7 i² + i) mod 256`.
fn sample(len: u32) -> Vec<u8> {
    (0..len).map(|i| (i * i * 7 + i) as u8).collect()
}

/// HDF5's definition, word by word.
fn fletcher32_slow(bytes: &[u8]) -> u32 {
    let fold = |x: u32| (x & 0xffff) + (x >> 16);
    let (mut sum1, mut sum2) = (0u32, 0u32);
    for block in bytes.chunks(720) {
        for pair in block.chunks(2) {
            sum1 += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum2 += sum1;
        }
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    fold(sum2) << 16 | fold(sum1)
}

#[test]
fn checksums_match_numcodecs_and_hdf5() {
    // numcodecs 0.16.6: CRC32, Adler32, JenkinsLookup3, Fletcher32; the last also by libhdf5 2.0.0.
    for (len, crc, adler, jenkins, fletcher) in [
        (2, "cd9a024f", "09000a00", "16b8fe16", "08000800"),
        (7, "5a2eada2", "93019b04", "b93447a8", "fe944f46"),
        (12, "831aa3eb", "19041614", "6ec3c38a", "f82342c8"),
        (13, "3a205312", "15052b19", "265bc42b", "f91f3be8"),
        (24, "ef3becfc", "510ac471", "76605d40", "78e1c10a"),
        (25, "b9a6436a", "290bed7c", "78e6dcfe", "79b93ac4"),
        (999, "3106cf31", "42eebaaf", "0e507979", "a57c368c"),
        (1000, "aaffe8d9", "40ef099f", "e17d9857", "a37d348d"),
        (1001, "5e66d53c", "e8ef008f", "70b700d4", "a425d8b2"),
    ] {
        let bytes = sample(len);
        assert_eq!(crc32(&bytes).to_le_bytes()[..], hex(crc), "crc32 of {len}");
        assert_eq!(adler32(&bytes).to_le_bytes()[..], hex(adler), "adler32 of {len}");
        assert_eq!(lookup3(&bytes, 0).to_le_bytes()[..], hex(jenkins), "lookup3 of {len}");
        assert_eq!(fletcher32(&bytes).to_le_bytes()[..], hex(fletcher), "fletcher32 of {len}");
    }
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(lookup3(b"", 0), 0xdead_beef);
}

#[test]
fn digests_match_python() {
    assert_eq!(md5(&sample(1001))[..], hex("bc4440f1dbd2cac08b16895cfcebe920"));
    assert_eq!(
        sha256(&sample(1001))[..],
        hex("aabcff6cbd6f94778d5d1685051fc1773fb22b54ced71ba59e73ba46644ae563")
    );
}

#[test]
fn fletcher32_is_accepted_in_both_byte_orders_only() {
    let bytes = sample(7);
    verify_fletcher32(&bytes, 0x464f_94fe).unwrap();
    verify_fletcher32(&bytes, 0x4f46_fe94).unwrap();
    let error = verify_fletcher32(&bytes, 0xfe94_4f46).unwrap_err();
    assert_eq!(error.to_string(), "fletcher32: checksum 0x464f94fe, stored 0xfe944f46");
}

#[test]
fn fletcher32_of_ones_and_zeros_does_not_overflow() {
    for len in [0, 1, 719, 720, 721, 2881, 100_000] {
        assert_eq!(fletcher32(&vec![0xff; len]), fletcher32_slow(&vec![0xff; len]), "{len}");
        assert_eq!(fletcher32(&vec![0; len]), 0);
    }
}

proptest! {
    #[test]
    fn fletcher32_agrees_with_the_definition(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        prop_assert_eq!(fletcher32(&bytes), fletcher32_slow(&bytes));
    }
}
