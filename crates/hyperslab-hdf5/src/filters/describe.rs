//! User-facing descriptions of filters.

use hyperslab_core::Filter;

use super::id;
use crate::message::pipeline::FilterSpec;

/// The usual name of a filter, or else the name in the file.
pub(crate) fn name_of(spec: &FilterSpec) -> String {
    let name = match spec.id {
        id::DEFLATE => "gzip",
        id::SHUFFLE => "shuffle",
        id::FLETCHER32 => "fletcher32",
        id::SZIP => "szip",
        id::NBIT => "nbit",
        id::SCALE_OFFSET => "scaleoffset",
        id::BZIP2 => "bzip2",
        id::LZF => "lzf",
        id::BLOSC => "blosc",
        id::LZ4 => "lz4",
        id::BITSHUFFLE => "bitshuffle",
        id::ZSTD => "zstd",
        id::BLOSC2 => "blosc2",
        id::ZFP => "zfp",
        32017 => "sz",
        32024 => "sz3",
        32018 => "fcidecomp",
        32019 => "jpeg-xr",
        32028 => "sperr",
        _ if spec.name.is_empty() => return format!("filter {}", spec.id),
        _ => return spec.name.clone(),
    };
    name.to_owned()
}

/// The filter with its parameters, as shown by `info`.
pub(crate) fn describe(spec: &FilterSpec) -> Filter {
    let filter = Filter::new(name_of(spec));
    let value = |index: usize| spec.values.get(index).copied();
    let with = |filter: Filter, name: &str, index: usize| match value(index) {
        Some(number) => filter.with(name, number),
        None => filter,
    };
    match spec.id {
        id::DEFLATE | id::BZIP2 => with(filter, "level", 0),
        // Levels of zstd may be negative.
        id::ZSTD => match value(0) {
            Some(level) => filter.with("level", level.cast_signed()),
            None => filter,
        },
        id::SHUFFLE => with(filter, "element_size", 0),
        id::FLETCHER32 | id::LZF | id::NBIT => filter,
        id::SZIP => {
            let mask = value(0).unwrap_or(0);
            let filter = filter.with("coding", if mask & 4 != 0 { "ec" } else { "nn" });
            with(filter, "pixels_per_block", 1)
        }
        id::SCALE_OFFSET => with(with(filter, "scale_type", 0), "scale_factor", 1),
        id::LZ4 => with(filter, "block_size", 0),
        id::BLOSC | id::BLOSC2 => {
            let codecs: &[&str] = match spec.id {
                id::BLOSC => &["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"],
                _ => &["blosclz", "lz4", "lz4hc", "", "zlib", "zstd"],
            };
            let codec = value(6).and_then(|codec| codecs.get(codec as usize).copied());
            let filter = with(with(filter, "level", 4), "shuffle", 5);
            codec.map_or(filter.clone(), |codec| filter.with("codec", codec))
        }
        id::BITSHUFFLE => {
            let filter = with(with(filter, "element_size", 2), "block_size", 3);
            match value(4) {
                Some(2) => filter.with("codec", "lz4"),
                Some(3) => with(filter.with("codec", "zstd"), "level", 5),
                _ => filter,
            }
        }
        _ => filter.with("id", spec.id).with("parameters", spec.values.clone()),
    }
}
