//! Whatever the bytes, decoders neither panic nor allocate out of proportion.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use hyperslab_codec::fuzz::DECODERS;
use proptest::prelude::*;

/// Counts the bytes that this thread has allocated, and their maximum.
struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

fn count(more: usize, less: usize) {
    // A thread that ends may free memory after its counters are gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get().wrapping_add(more).wrapping_sub(less));
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get() & (usize::MAX >> 1))));
    });
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The allowance for a decoder itself: tables, scratch buffers of earlier calls, the text of an error.
const SPARE: usize = 6 << 20;

fn check(src: &[u8], limit: usize) {
    for (name, decode) in DECODERS {
        let before = HELD.get();
        MOST.set(before);
        decode(src, limit);
        let held = MOST.get() - before;
        assert!(held <= SPARE + 16 * (limit + src.len()), "{name}: {held} bytes for a limit of {limit}");
    }
}

/// Headers that claim the maximum that their fields allow.
#[test]
fn large_claims_cost_nothing() {
    let heads: &[&[u8]] = &[
        // Blosc: 2 GiB of zeros in one block, and the same in blocks of one byte.
        b"\x05\x01\x25\x04\xff\xff\xff\x7f\xff\xff\xff\x7f\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10",
        b"\x02\x01\x21\x04\xff\xff\xff\x7f\x01\0\0\0\xff\xff\xff\x7f",
        // Streams of 64-bit sizes.
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xf8\0\0\0\x01",
        b"\x04\0\0\0\0\0\0\x10\0\xff\xff\xff\xe0\xff\xff\xff\xff",
        // zstd: a content size of 2⁶³, a window of 2 GiB.
        b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x80\x01\0\0",
        b"\x28\xb5\x2f\xfd\x00\xa8\x01\0\0",
        // Parameters: n-bit of 2³² elements, scale-offset, szip of 4 GiB.
        b"\x08\x08\0\0\0\0\0\0\0\xff\xff\xff\xff\x01\0\0\0\x08\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0",
        b"\x04\xa9\0\0\0\x10\0\0\0\x08\0\0\0\0\x10\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\0",
        // TileDB: the maximum number of windows, strings and values.
        b"\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        // Snappy, gzip and bzip2 heads.
        b"\xff\xff\xff\xff\x0f\0\0",
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0",
        b"BZh91AY&SY\0\0\0\0",
    ];
    for head in heads {
        for limit in [0, 1, 4096, 1 << 20] {
            check(head, limit);
            check(&[head, &[0; 200][..]].concat(), limit);
        }
    }
}

/// A Blosc2 frame with arbitrary sizes, which holds an array of arbitrary shape.
fn frame(fields: [u32; 5], shape: [u32; 6], index: &[u8]) -> Vec<u8> {
    let [decoded, stored, element, block, chunk] = fields;
    let mut array = vec![0x97, 0, 2];
    array.push(0x92);
    for length in &shape[..2] {
        array.push(0xd3);
        array.extend(u64::from(*length).to_be_bytes());
    }
    for pair in [&shape[2..4], &shape[4..]] {
        array.push(0x92);
        for length in pair {
            array.push(0xd2);
            array.extend(length.to_be_bytes());
        }
    }
    let header = 0x6b + 5 + array.len();
    let mut frame = b"\x9e\xa8b2frame\0\xd2".to_vec();
    frame.extend((header as u32).to_be_bytes());
    frame.push(0xcf);
    frame.extend(((header + index.len()) as u64).to_be_bytes());
    frame.extend(b"\xa4\x12\x00\x51\x03\xd3");
    frame.extend(u64::from(decoded).to_be_bytes());
    frame.push(0xd3);
    frame.extend(u64::from(stored).to_be_bytes());
    for field in [element, block, chunk] {
        frame.push(0xd2);
        frame.extend(field.to_be_bytes());
    }
    frame.extend(b"\xd1\0\x01\xd1\0\x01\xc2\xd8\x06\0\0\0\0\0\x01\x01\0\0\0\0\0\0\0\0\0");
    frame.extend(b"\x93\xcd\0\x11\xde\0\x01\xa4b2nd\xd2\0\0\0\x6b\xdc\0\x01");
    frame.resize(0x6b, 0);
    frame.push(0xc6);
    frame.extend((array.len() as u32).to_be_bytes());
    frame.extend(array);
    frame.extend(index);
    frame
}

/// An index of special chunks, so that any number of them costs a few bytes.
fn index(len: u32, kind: u8) -> Vec<u8> {
    let mut chunk = vec![5, 1, 0x27, 8];
    for field in [len, len, 40] {
        chunk.extend(field.to_le_bytes());
    }
    chunk.extend([0; 15]);
    chunk.push(0x30);
    chunk.extend([0, 0, 0, 0, 0, 0, 0, kind]);
    chunk
}

/// The functions above also create valid frames.
#[test]
fn a_frame_of_special_chunks_decodes() {
    let frame = frame([16, 0, 1, 4, 4], [4, 3, 2, 2, 2, 2], &index(32, 0x81));
    let mut out = [1; 12];
    hyperslab_codec::blosc2::decode(&frame, &mut out).unwrap();
    assert_eq!(out, [0; 12]);
}

fn small_or_any() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0..9u32, 1 => any::<u32>(), 1 => Just(0x7fff_ffff)]
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(src: Vec<u8>, limit in 0..4096usize) {
        check(&src, limit);
    }

    #[test]
    fn small_numbers_never_panic(src in prop::collection::vec(prop_oneof![6 => 0..5u8, 1 => any::<u8>()], 0..300), limit in 0..1024usize) {
        check(&src, limit);
    }

    #[test]
    fn frames_of_any_shape_never_panic(
        fields in prop::array::uniform5(small_or_any()),
        shape in prop::array::uniform6(small_or_any()),
        len in small_or_any(),
        kind: u8,
        limit in 0..4096usize,
    ) {
        for stored in [0, fields[1]] {
            let [decoded, _, element, block, chunk] = fields;
            let fields = [decoded, stored, element, block, chunk];
            check(&frame(fields, shape, &index(len.wrapping_mul(8), kind)), limit);
        }
    }
}
