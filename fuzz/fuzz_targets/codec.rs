//! Every decoder of the codec crate, selected by the first byte.
#![no_main]

use hyperslab_codec::fuzz::DECODERS;
use libfuzzer_sys::fuzz_target;

/// The maximum size of the output. It is small, because output buffers are zeroed before they are filled.
const LIMIT: usize = 1 << 13;

fuzz_target!(|bytes: &[u8]| {
    if let [first, rest @ ..] = bytes {
        let (_, decode) = DECODERS[usize::from(*first) % DECODERS.len()];
        decode(rest, LIMIT);
    }
});
