//! Measures the speed of the hot kernels on one thread, relative to `memcpy` in the same run.
//!
//! `cargo run --release -p hyperslab-codec --example speed`

use std::hint::black_box;
use std::time::Instant;

use hyperslab_codec::{
    bitshuffle, blosc, checksum, deflate, lz4, lzf, nbit, scale_offset, shuffle, szip, tiledb, zstd,
};

/// The best of several runs, in gigabytes of decoded bytes per second.
fn measure(name: &str, bytes: usize, mut work: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..9 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:<28} {:8.2} GB/s", bytes as f64 / best / 1e9);
}

fn main() -> Result<(), hyperslab_codec::CodecError> {
    const LEN: usize = 1 << 20;
    // A smooth field with some noise, rounded to 64ths.
    let mut state = 1u32;
    let field: Vec<u8> = (0..LEN / 4)
        .flat_map(|i| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = (i as f32 / 900.0).sin() * 100.0 + (state >> 28) as f32 / 64.0;
            ((value * 64.0).round() / 64.0).to_le_bytes()
        })
        .collect();
    let mut out = vec![0; LEN];
    measure("memcpy", LEN, || black_box(&mut out).copy_from_slice(black_box(&field)));

    for size in [2, 4, 8, 16, 12] {
        let mut shuffled = vec![0; LEN];
        let whole = LEN / size * size;
        measure(&format!("shuffle {size}"), whole, || {
            let _ = shuffle::encode(size, black_box(&field[..whole]), black_box(&mut shuffled[..whole]));
        });
        measure(&format!("unshuffle {size}"), whole, || {
            let _ = shuffle::decode(size, black_box(&shuffled[..whole]), black_box(&mut out[..whole]));
        });
    }
    for size in [1, 2, 4, 8] {
        let mut shuffled = vec![0; LEN];
        measure(&format!("bitshuffle {size}"), LEN, || {
            let _ = bitshuffle::encode(size, 0, black_box(&field), black_box(&mut shuffled));
        });
        measure(&format!("bitunshuffle {size}"), LEN, || {
            let _ = bitshuffle::decode(size, 0, black_box(&shuffled), black_box(&mut out));
        });
    }

    let mut planes = vec![0; LEN];
    shuffle::encode(4, &field, &mut planes)?;
    let mut stored = Vec::new();
    zstd::encode(&planes, zstd::Options::level(3), &mut stored)?;
    println!("zstd ratio {:.2}", LEN as f64 / stored.len() as f64);
    measure("zstd decode", LEN, || {
        let _ = zstd::decode(black_box(&stored), black_box(&mut out));
    });
    measure("zstd encode 3", LEN, || {
        stored.clear();
        let _ = zstd::encode(black_box(&planes), zstd::Options::level(3), &mut stored);
    });
    stored.clear();
    deflate::encode(deflate::Wrapper::Zlib, &planes, 6, &mut stored)?;
    println!("zlib ratio {:.2}", LEN as f64 / stored.len() as f64);
    measure("zlib decode", LEN, || {
        let _ = deflate::decode(deflate::Wrapper::Zlib, black_box(&stored), black_box(&mut out));
    });
    measure("zlib encode 6", LEN, || {
        stored.clear();
        let _ = deflate::encode(deflate::Wrapper::Zlib, black_box(&planes), 6, &mut stored);
    });
    stored.clear();
    lz4::encode(&planes, &mut stored)?;
    println!("lz4 ratio {:.2}", LEN as f64 / stored.len() as f64);
    measure("lz4 decode", LEN, || {
        let _ = lz4::decode(black_box(&stored), black_box(&mut out));
    });
    measure("lz4 encode", LEN, || {
        stored.clear();
        let _ = lz4::encode(black_box(&planes), &mut stored);
    });
    stored.clear();
    lzf::encode(&planes, &mut stored);
    measure("lzf decode", LEN, || {
        let _ = lzf::decode(black_box(&stored), black_box(&mut out));
    });
    measure("lzf encode", LEN, || {
        stored.clear();
        lzf::encode(black_box(&planes), &mut stored);
    });
    for (name, codec, filter) in [
        ("blosc lz4 shuffle", blosc::Codec::Lz4, blosc::Filter::Shuffle { size: 4 }),
        ("blosc zstd shuffle", blosc::Codec::Zstd, blosc::Filter::Shuffle { size: 4 }),
        ("blosc lz4 bitshuffle", blosc::Codec::Lz4, blosc::Filter::Bitshuffle),
    ] {
        stored.clear();
        let options = blosc::Options::new(codec, 3, 4).with_filter(Some(filter));
        blosc::encode(&field, options, &mut stored)?;
        measure(&format!("{name} decode"), LEN, || {
            let _ = blosc::decode(black_box(&stored), black_box(&mut out));
        });
    }
    stored.clear();
    bitshuffle::encode_stream(bitshuffle::Inner::Lz4, 4, 0, &field, &mut stored)?;
    measure("bitshuffle-lz4 stream decode", LEN, || {
        let _ = bitshuffle::decode_stream(bitshuffle::Inner::Lz4, 4, black_box(&stored), black_box(&mut out));
    });
    stored.clear();
    let filter = szip::Szip::parse(&[169, 16, 32, 2048])?;
    filter.encode(&field, &mut stored)?;
    measure("szip decode", LEN, || {
        let _ = filter.decode(black_box(&stored), black_box(&mut out));
    });
    stored.clear();
    let filter = nbit::NBit::parse(&[8, 0, (LEN / 4) as u32, 1, 4, 0, 17, 3])?;
    filter.encode(&field, &mut stored)?;
    measure("nbit decode", LEN, || {
        let _ = filter.decode(black_box(&stored), black_box(&mut out));
    });
    stored.clear();
    let mut client = [0; 20];
    client[..8].copy_from_slice(&[0, 2, (LEN / 4) as u32, 1, 4, 0, 0, 1]);
    let filter = scale_offset::ScaleOffset::parse(&client)?;
    filter.encode(&field, &mut stored)?;
    measure("scale-offset decode", LEN, || {
        let _ = filter.decode(black_box(&stored), black_box(&mut out));
    });
    let steps: Vec<u8> = (0..LEN as i64 / 8).flat_map(|i| (i * 1000 + i % 7).to_le_bytes()).collect();
    stored.clear();
    tiledb::encode_double_delta(tiledb::Integer { size: 8, signed: true }, &steps, &mut stored)?;
    measure("double delta decode", LEN, || {
        let _ = tiledb::decode_double_delta(8, black_box(&stored), black_box(&mut out));
    });
    measure("fletcher32", LEN, || {
        black_box(checksum::fletcher32(black_box(&field)));
    });
    measure("crc32c", LEN, || {
        black_box(checksum::crc32c(black_box(&field)));
    });
    measure("lookup3", LEN, || {
        black_box(checksum::lookup3(black_box(&field), 0));
    });
    Ok(())
}
