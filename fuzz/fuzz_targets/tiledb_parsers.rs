//! Every parser and filter of TileDB, without the files around them, selected by the first byte.
#![no_main]

use hyperslab_tiledb::fuzz::PARSERS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let [first, rest @ ..] = bytes {
        let (_, parse) = PARSERS[usize::from(*first) % PARSERS.len()];
        parse(rest);
    }
});
