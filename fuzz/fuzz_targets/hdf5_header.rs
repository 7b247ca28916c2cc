//! Object headers: a file built around messages of any type and content, so that every message parser is reached
//! directly.
//!
//! Each message consists of its type, its flags, two bytes of its length and its body. The header is that of a
//! dataset that the root group links to. Addresses in messages may point anywhere into the file.
#![no_main]

use std::sync::Arc;

use hyperslab_core::MemoryBlob;
use hyperslab_hdf5::NoExternals;
use libfuzzer_sys::fuzz_target;

/// The position of the second header. Free bytes follow it.
const DATASET: u64 = 256;

/// A header of version 2 with these messages. Checksums are not compared in fuzzing builds.
fn header(messages: &[u8]) -> Vec<u8> {
    let mut bytes = b"OHDR\x02\x02".to_vec();
    bytes.extend((messages.len() as u32).to_le_bytes());
    bytes.extend(messages);
    bytes.extend([0; 4]);
    bytes
}

fn message(kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as u16).to_le_bytes());
    bytes.push(flags);
    bytes.extend(body);
    bytes
}

fuzz_target!(|input: &[u8]| {
    let (mut messages, mut rest) = (Vec::new(), input);
    while let [kind, flags, low, high, more @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high]) % 2048).min(more.len());
        let (body, after) = more.split_at(length);
        messages.extend(message(*kind % 26, *flags, body));
        rest = after;
    }
    // A superblock of version 3, a root group with one hard link, and the header.
    let mut bytes = b"\x89HDF\r\n\x1a\n\x03\x08\x08\x00".to_vec();
    let length = DATASET + messages.len() as u64 + 14;
    for address in [0, u64::MAX, length, 48] {
        bytes.extend(address.to_le_bytes());
    }
    bytes.extend([0; 4]);
    let mut link = vec![1, 0, 1, b'd'];
    link.extend(DATASET.to_le_bytes());
    bytes.extend(header(&message(6, 0, &link)));
    bytes.resize(DATASET as usize, 0);
    bytes.extend(header(&messages));
    let blob = Arc::new(MemoryBlob::new("fuzz.h5", bytes));
    if let Ok(store) = hyperslab_hdf5::open(blob, Arc::new(NoExternals)) {
        hyperslab_fuzz::drive(&store);
    }
});
