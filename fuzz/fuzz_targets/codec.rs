//! Every decoder of the codec crate; the first byte chooses it.
#![no_main]

use hyperslab_codec::fuzz::DECODERS;
use libfuzzer_sys::fuzz_target;

/// The most bytes that may come out: small, because a result is zeroed before it is filled.
const LIMIT: usize = 1 << 13;

fuzz_target!(|bytes: &[u8]| {
    if let [first, rest @ ..] = bytes {
        let (_, decode) = DECODERS[usize::from(*first) % DECODERS.len()];
        decode(rest, LIMIT);
    }
});
