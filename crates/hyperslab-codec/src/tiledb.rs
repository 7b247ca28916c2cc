//! Transforms that only TileDB has: bit-width reduction and deltas in windows, packed double deltas, runs and dictionaries of
//! strings, scaled floats.
//!
//! All work on parts of a chunk, whose framing the format crate handles. Numbers are little-endian, except for the lengths and
//! ids inside runs and dictionaries, which are big-endian.

mod delta;
mod double_delta;
mod numbers;
#[cfg(test)]
mod reference;
mod runs;
mod strings;
#[cfg(test)]
mod tests;
mod windows;

pub use delta::{decode_delta, decode_float_scale, decode_xor, encode_delta, encode_float_scale, encode_xor};
pub use double_delta::{decode_double_delta, encode_double_delta};
pub use numbers::Integer;
pub use runs::{decode_runs, encode_runs};
pub use strings::{
    StringDictionary, StringRuns, decode_string_dictionary, decode_string_runs, encode_string_dictionary,
    encode_string_runs,
};
pub use windows::{decode_bit_width, decode_positive_delta, encode_bit_width, encode_positive_delta};
