//! Files put together by hand that claim what cannot be: an error, never a panic, a hang, or memory out of proportion.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "common/drive.rs"]
mod drive;
#[path = "common/forge.rs"]
mod forge;

use std::sync::Arc;

use drive::drive;
use forge::{Forge, NONE, attribute, dtype, link_info, space, summed, text, unsigned};
use hyperslab_core::{Attribute, MemoryBlob, Node, Positions, Store, read_serial};
use hyperslab_hdf5::{Hdf5Store, NoExternals, open};

fn store(bytes: Vec<u8>) -> Hdf5Store {
    open(Arc::new(MemoryBlob::new("forged", bytes)), Arc::new(NoExternals)).unwrap()
}

/// A forged file is read as it should be, so that the other tests fail for the reason that they name.
#[test]
fn a_forged_file_is_read() {
    let mut forge = Forge::new();
    let values = attribute("numbers", &unsigned(2), &space(&[3]), &[1, 0, 2, 0, 3, 0]);
    let below = forge.header(&[(2, link_info(NONE, NONE)), (12, values)]);
    let root = forge.group(&[("below", below)]);
    let store = store(forge.finish(root));
    assert_eq!(store.children("/").unwrap(), ["below"]);
    let Ok(Node::Group(attributes)) = store.node("/below") else { panic!("no group") };
    assert_eq!(attributes.to_json()["numbers"], serde_json::json!([1, 2, 3]));
}

#[test]
fn elements_of_no_bytes_are_refused() {
    let opaque = dtype(0x15, 0, 0, &[]);
    // A version 1 compound whose member is an array of no elements.
    let mut member = b"member\0\0".to_vec();
    member.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    member.extend([0; 8 + 16]);
    member.extend(unsigned(1));
    let compound = dtype(0x16, 1, 4, &member);
    // The same opaque bytes inside a compound and inside a list.
    let inner = [&b"m\0\0\0\0\0\0\0"[..], &[0; 4], &opaque].concat();
    let outer = dtype(0x26, 1, 4, &inner);
    let list = dtype(0x19, 0, 16, &opaque);
    for kind in [opaque, compound, outer, list] {
        let mut forge = Forge::new();
        let body = attribute("a", &kind, &space(&[2]), &[0; 64]);
        let group = forge.header(&[(2, link_info(NONE, NONE)), (12, body)]);
        // Compact data of 32 bytes.
        let layout = [&[3, 0, 32, 0][..], &[0; 32]].concat();
        let data = forge.header(&[(1, space(&[2])), (3, kind), (8, layout)]);
        let root = forge.group(&[("group", group), ("data", data)]);
        let bytes = forge.finish(root);
        let store = store(bytes.clone());
        let Ok(Node::Group(attributes)) = store.node("/group") else { panic!("no group") };
        assert!(attributes.to_json()["a"].to_string().contains("unreadable"), "{:?}", attributes.to_json());
        assert!(store.node("/data").unwrap_err().is_corrupt());
        drive(bytes);
    }
}

/// A fractal heap with one link of this heap id: rows of `width` blocks, indirect blocks from the third row on.
fn heap_group(forge: &mut Forge, width: u16, rows: u16, root: u64, id: [u8; 7]) -> u64 {
    let mut heap = b"FRHP\0".to_vec();
    heap.extend([7, 0, 0, 0, 0, 0, 16, 0, 0]);
    for value in [0, NONE, 0, NONE, 0, 0, 0, 1, 0, 0, 0, 0] {
        heap.extend(value.to_le_bytes());
    }
    heap.extend(width.to_le_bytes());
    heap.extend(512_u64.to_le_bytes());
    heap.extend(512_u64.to_le_bytes());
    heap.extend([32, 0, 1, 0]);
    heap.extend(root.to_le_bytes());
    heap.extend(rows.to_le_bytes());
    let heap = forge.put(&summed(heap));
    let leaf = [&b"BTLF\0\x05"[..], &[1, 2, 3, 4], &id].concat();
    let leaf = forge.put(&summed(leaf));
    let tree = btree2_header(5, 512, 11, 0, leaf, 1);
    let names = forge.put(&tree);
    forge.header(&[(2, link_info(heap, names))])
}

fn btree2_header(kind: u8, node: u32, record: u16, depth: u16, root: u64, count: u16) -> Vec<u8> {
    let mut tree = b"BTHD\0".to_vec();
    tree.push(kind);
    tree.extend(node.to_le_bytes());
    tree.extend(record.to_le_bytes());
    tree.extend(depth.to_le_bytes());
    tree.extend([100, 40]);
    tree.extend(root.to_le_bytes());
    tree.extend(count.to_le_bytes());
    tree.extend(u64::from(count).to_le_bytes());
    summed(tree)
}

/// An indirect block that is smaller than the first row of the doubling table has no rows.
#[test]
fn heap_blocks_smaller_than_a_row_are_refused() {
    for (width, offset) in [(8_u16, 8192_u32), (1024, 1 << 20)] {
        let mut forge = Forge::new();
        let mut block = b"FHIB\0".to_vec();
        block.extend([0; 8 + 4]);
        for _ in 0..3 * u64::from(width) {
            block.extend(48_u64.to_le_bytes());
        }
        let block = forge.put(&summed(block));
        let mut id = [0; 7];
        id[1..5].copy_from_slice(&offset.to_le_bytes());
        let root = heap_group(&mut forge, width, 3, block, id);
        let bytes = forge.finish(root);
        let error = store(bytes.clone()).children("/").unwrap_err();
        assert!(error.to_string().contains("indirect block"), "{error}");
        drive(bytes);
    }
}

/// A chunk of variable-length elements that claims 64 GiB in a file of a few kilobytes.
#[test]
fn a_chunk_out_of_proportion_is_refused() {
    let mut forge = Forge::new();
    let stored = forge.put(&[0x78, 0x9c, 3, 0, 0, 0, 0, 1]);
    let extent = u32::MAX;
    // A B-tree v1 of one chunk: stored size, mask, place; its address; an upper bound.
    let mut tree = b"TREE\x01\0\x01\0".to_vec();
    tree.extend([0xff; 16]);
    tree.extend([8, 0, 0, 0, 0, 0, 0, 0]);
    tree.extend([0; 16]);
    tree.extend(stored.to_le_bytes());
    tree.extend([0; 24]);
    let tree = forge.put(&tree);
    let mut layout = vec![3, 2, 2];
    layout.extend(tree.to_le_bytes());
    layout.extend(extent.to_le_bytes());
    layout.extend(16_u32.to_le_bytes());
    let gzip = vec![1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0];
    let data = forge.header(&[(1, space(&[u64::from(extent)])), (3, text()), (8, layout), (11, gzip)]);
    let root = forge.group(&[("data", data)]);
    let store = store(forge.finish(root));
    let Ok(Node::Array(array)) = store.node("/data") else { panic!("no dataset") };
    let mut positions = Positions::whole(array.schema().shape());
    positions.axes[0].count = 1;
    let error = read_serial(&*array, positions).unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("memory"), "{error}");
}

/// A group with attributes of variable-length text, all of whose `elements` are the same 4 MiB.
fn repeated_text(attributes: usize, elements: usize) -> Vec<u8> {
    let length = 4_u32 << 20;
    let mut forge = Forge::new();
    let mut heap = b"GCOL\x01\0\0\0".to_vec();
    heap.extend((u64::from(length) + 32).to_le_bytes());
    heap.extend([1, 0, 1, 0, 0, 0, 0, 0]);
    heap.extend(u64::from(length).to_le_bytes());
    heap.resize(heap.len() + length as usize, b'x');
    let heap = forge.put(&heap);
    let element = [&length.to_le_bytes()[..], &heap.to_le_bytes(), &[1, 0, 0, 0]].concat();
    let mut messages = vec![(2, link_info(NONE, NONE))];
    for number in 0..attributes {
        let data = element.repeat(elements);
        messages.push((12, attribute(&number.to_string(), &text(), &space(&[elements as u64]), &data)));
    }
    let root = forge.header(&messages);
    forge.finish(root)
}

/// The attributes of a node share one budget, and every call has a new one.
#[test]
fn heaps_are_budgeted_per_call_and_not_per_attribute() {
    let unreadable = |bytes: Vec<u8>, calls: usize| -> Vec<usize> {
        let store = store(bytes);
        let count = |()| {
            let Ok(Node::Group(attributes)) = store.node("/") else { panic!("no root") };
            let lost = |(_, value): &(&str, &Attribute)| matches!(value, Attribute::Unreadable(_));
            attributes.iter().filter(lost).count()
        };
        std::iter::repeat_n((), calls).map(count).collect()
    };
    // 3 times 256 MiB: two fit.
    assert_eq!(unreadable(repeated_text(3, 64), 1), [1]);
    // 64 MiB, ten times, by the same reader.
    assert_eq!(unreadable(repeated_text(1, 16), 10), [0; 10]);
}
