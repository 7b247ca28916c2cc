//! Checks that the formats' own implementations can read what is written here.
//!
//! `HYPERSLAB_PEERS` names a Python with h5py, hdf5plugin and numcodecs; `cargo xtask test` sets it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use hyperslab_codec::{bitshuffle, blosc, bzip2, checksum, deflate, hdf5_lz4, lz4, lzf, shuffle, szip, zstd};

type Anything = Result<(), Box<dyn std::error::Error>>;

/// Cases, one per line: the reader to use, the element size, then the files' number.
struct Cases<'a> {
    folder: &'a Path,
    manifest: String,
    count: usize,
}

impl Cases<'_> {
    fn add(&mut self, reader: &str, size: usize, raw: &[u8], stored: &[u8]) -> Anything {
        std::fs::write(self.folder.join(format!("{}.raw", self.count)), raw)?;
        std::fs::write(self.folder.join(format!("{}.stored", self.count)), stored)?;
        writeln!(self.manifest, "{} {size} {reader}", self.count)?;
        self.count += 1;
        Ok(())
    }
}

/// Smooth, constant and random chunks of elements of `size` bytes.
fn chunks(size: usize) -> Vec<Vec<u8>> {
    let smooth =
        (0..20_011u64).flat_map(|i| (i * 3 + i * i % 17).to_le_bytes().into_iter().take(size)).collect();
    let mut state = 1u64;
    let random = (0..4096 * size)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    vec![smooth, vec![7; 10_000 * size], random]
}

#[test]
fn reference_libraries_read_our_output() -> Anything {
    let python =
        std::env::var_os("HYPERSLAB_PEERS").ok_or("HYPERSLAB_PEERS names no Python; run cargo xtask test")?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("codec-peers");
    std::fs::create_dir_all(&folder)?;
    let mut cases = Cases { folder: &folder, manifest: String::new(), count: 0 };
    for size in [1, 2, 4, 8] {
        for raw in chunks(size) {
            encode_all(size, &raw, &mut cases)?;
        }
    }
    std::fs::write(folder.join("manifest"), &cases.manifest)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/check.py");
    let done = Command::new(python).arg(script).arg(&folder).output()?;
    assert!(
        done.status.success(),
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn encode_all(size: usize, raw: &[u8], cases: &mut Cases<'_>) -> Anything {
    let mut out = Vec::new();
    let mut add = |reader: &str, out: &mut Vec<u8>| {
        let done = cases.add(reader, size, raw, out);
        out.clear();
        done
    };
    zstd::encode(raw, zstd::Options::level(3).with_checksum(true), &mut out)?;
    add("numcodecs Zstd", &mut out)?;
    deflate::encode(deflate::Wrapper::Zlib, raw, 6, &mut out)?;
    add("numcodecs Zlib", &mut out)?;
    deflate::encode(deflate::Wrapper::Gzip, raw, 6, &mut out)?;
    add("numcodecs GZip", &mut out)?;
    bzip2::encode(raw, 9, &mut out)?;
    add("numcodecs BZ2", &mut out)?;
    out.extend((raw.len() as u32).to_le_bytes());
    lz4::encode(raw, &mut out)?;
    add("numcodecs LZ4", &mut out)?;
    for codec in [blosc::Codec::Lz4, blosc::Codec::Zlib, blosc::Codec::Zstd] {
        for filter in [None, Some(blosc::Filter::Shuffle { size }), Some(blosc::Filter::Bitshuffle)] {
            for block in [0, 4000] {
                let options = blosc::Options::new(codec, 5, size).with_filter(filter).with_block_len(block);
                blosc::encode(raw, options, &mut out)?;
                add("numcodecs Blosc", &mut out)?;
            }
        }
    }
    lzf::encode(raw, &mut out);
    add("hdf5 32000", &mut out)?;
    for block in [0, 1000] {
        hdf5_lz4::encode(raw, block, &mut out)?;
        add("hdf5 32004 0", &mut out)?;
    }
    for block in [0, 64] {
        bitshuffle::encode_stream(bitshuffle::Inner::Lz4, size, block, raw, &mut out)?;
        add(&format!("hdf5 32008 {block} 2"), &mut out)?;
        bitshuffle::encode_stream(bitshuffle::Inner::Zstd { level: 3 }, size, block, raw, &mut out)?;
        add(&format!("hdf5 32008 {block} 3"), &mut out)?;
    }
    out.resize(raw.len(), 0);
    shuffle::encode(size, raw, &mut out)?;
    add("hdf5 2", &mut out)?;
    out.extend_from_slice(raw);
    out.extend(checksum::fletcher32(raw).to_le_bytes());
    add("hdf5 3", &mut out)?;
    for (mask, pixels) in [(141, 16), (169, 8), (169, 32)] {
        let bits = size as u32 * 8;
        szip::Szip::parse(&[mask, pixels, bits, pixels * 128])?.encode(raw, &mut out)?;
        add(&format!("hdf5 4 {mask} {pixels}"), &mut out)?;
    }
    Ok(())
}
