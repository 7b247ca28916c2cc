//! Every codec that encodes: decodes valid streams, and the same streams with a few bytes changed.
//!
//! The first byte selects the codec, and the second is the number of patches of three bytes that follow. The rest is
//! encoded.
#![no_main]

use hyperslab_codec::fuzz::ROUND_TRIPS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [first, patches, rest @ ..] = bytes else { return };
    let codec = &ROUND_TRIPS[usize::from(*first) % ROUND_TRIPS.len()];
    let (patches, src) = rest.split_at((usize::from(*patches % 5) * 3).min(rest.len()));
    codec.check(src, patches.as_chunks::<3>().0);
});
