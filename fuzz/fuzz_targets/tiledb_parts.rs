//! The parts of TileDB arrays, as they stand inside generic tiles; the first byte chooses one.
#![no_main]

use hyperslab_tiledb::fuzz::PARSERS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let [first, rest @ ..] = bytes {
        let (_, parse) = PARSERS[usize::from(*first) % PARSERS.len()];
        parse(rest);
    }
});
