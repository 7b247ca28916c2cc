//! Forged files with impossible claims lead to an error, never to a panic, a hang or excessive memory use.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "common/drive.rs"]
mod drive;
#[path = "common/forge.rs"]
mod forge;

use std::sync::Arc;

use drive::drive;
use forge::{Forge, NONE, attribute, dtype, link_info, space, summed, text, unsigned};
use hyperslab_codec::checksum::lookup3;
use hyperslab_core::{Attribute, MemoryBlob, Node, Positions, Store, child_path, read_serial};
use hyperslab_hdf5::{Hdf5Store, NoExternals, open};

fn store(bytes: Vec<u8>) -> Hdf5Store {
    open(Arc::new(MemoryBlob::new("forged", bytes)), Arc::new(NoExternals)).unwrap()
}

/// A valid forged file can be read, so that the other tests fail for the intended reason.
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
    let heap = forge.put(&heap_header(width, rows, root));
    let leaf = [&b"BTLF\0\x05"[..], &[1, 2, 3, 4], &id].concat();
    let leaf = forge.put(&summed(leaf));
    let tree = btree2_header(5, 512, 11, 0, leaf, 1);
    let names = forge.put(&tree);
    forge.header(&[(2, link_info(heap, names))])
}

fn heap_header(width: u16, rows: u16, root: u64) -> Vec<u8> {
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
    summed(heap)
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

fn is_out_of_proportion<T: std::fmt::Debug>(result: hyperslab_core::Result<T>) {
    let error = result.unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("justify"), "{error}");
}

/// A tree of names with the same few nodes everywhere: all children of a node are one node, and all records have the wanted
/// hash, so that a search must look at every child.
#[test]
fn a_search_among_repeated_nodes_ends() {
    let mut forge = Forge::new();
    let (heap, block) = (forge.reserve(146), forge.reserve(512));
    let mut bytes = b"FHDB\0".to_vec();
    bytes.extend(heap.to_le_bytes());
    bytes.extend([0; 4]);
    // A link of another name.
    let link = forge::link("other", 48);
    let id = [0, bytes.len() as u8, 0, 0, 0, link.len() as u8, 0];
    bytes.extend(&link);
    forge.write(block, &bytes);
    forge.write(heap, &heap_header(4, 0, block));
    let record = [&lookup3(b"x", 0).to_le_bytes()[..], &id].concat();
    let leaf = [&b"BTLF\0\x05"[..], &record.repeat(10)].concat();
    let mut child = forge.put(&summed(leaf));
    // Records in a leaf, in a subtree, and bytes of that count; by depth.
    let (leaf_most, depth) = (502 / 11_u64, 9);
    let mut below = leaf_most;
    for level in 1..=depth {
        let width = if level > 1 { (64 - below.leading_zeros() as usize).div_ceil(8) } else { 0 };
        let mut node = [&b"BTIN\0\x05"[..], &record.repeat(10)].concat();
        for _ in 0..=10 {
            node.extend(child.to_le_bytes());
            node.push(10);
            node.resize(node.len() + width, 0);
        }
        child = forge.put(&summed(node));
        let pointer = 9 + width as u64;
        let most = (502 - pointer) / (11 + pointer);
        below = (most + 1) * below + most;
    }
    let names = forge.put(&btree2_header(5, 512, 11, depth, child, 10));
    let root = forge.header(&[(2, link_info(heap, names))]);
    let store = store(forge.finish(root));
    is_out_of_proportion(store.node("/x"));
    assert!(store.children("/").is_err());
}

/// Overlapping names: 65,535 of them in one megabyte claim 32 GiB in total.
#[test]
fn overlapping_names_end() {
    let mut forge = Forge::new();
    let (count, length) = (65_535_u64, 1_u64 << 20);
    let mut names = vec![b'a'; length as usize];
    names.push(0);
    let data = forge.put(&names);
    let mut heap = b"HEAP\0\0\0\0".to_vec();
    for value in [names.len() as u64, 1, data] {
        heap.extend(value.to_le_bytes());
    }
    let heap = forge.put(&heap);
    let mut node = b"SNOD\x01\0".to_vec();
    node.extend((count as u16).to_le_bytes());
    for number in 0..count {
        node.extend((number * 8).to_le_bytes());
        node.extend(48_u64.to_le_bytes());
        node.extend([0; 24]);
    }
    let node = forge.put(&node);
    let mut tree = b"TREE\0\0\x01\0".to_vec();
    tree.extend([0xff; 16]);
    for value in [0, node, 0] {
        tree.extend(value.to_le_bytes());
    }
    let tree = forge.put(&tree);
    let root = forge.header(&[(17, [tree.to_le_bytes(), heap.to_le_bytes()].concat())]);
    is_out_of_proportion(store(forge.finish(root)).children("/"));
}

/// Overlapping header blocks, each with a valid checksum: 2000 of them in a megabyte.
#[test]
fn overlapping_header_blocks_end() {
    let (blocks, messages) = (2000_usize, 16_usize);
    let length = 4 + messages * 65_539 + 4;
    let mut area = vec![0; length + 16 * blocks];
    for block in 0..blocks {
        area[16 * block..][..4].copy_from_slice(b"OCHK");
        for message in 0..messages {
            area[16 * block + 4 + message * 65_539..][..4].copy_from_slice(&[0, 0xff, 0xff, 0]);
        }
    }
    for block in 0..blocks {
        let end = 16 * block + length;
        let sum = lookup3(&area[16 * block..end - 4], 0);
        area[end - 4..end].copy_from_slice(&sum.to_le_bytes());
    }
    let mut forge = Forge::new();
    let area = forge.put(&area);
    let mut body = vec![2, 18, 0, 0];
    body.extend(link_info(NONE, NONE));
    for block in 0..blocks as u64 {
        body.extend([16, 16, 0, 0]);
        body.extend((area + 16 * block).to_le_bytes());
        body.extend((length as u64).to_le_bytes());
    }
    let mut header = b"OHDR\x02\x02".to_vec();
    header.extend((body.len() as u32).to_le_bytes());
    header.extend(body);
    let root = forge.put(&summed(header));
    is_out_of_proportion(store(forge.finish(root)).children("/"));
}

/// Nested virtual datasets, each eight times as large as the one below.
#[test]
fn nested_virtual_datasets_end() {
    let levels = 10;
    let mut forge = Forge::new();
    let layout = [&[3, 0, 8, 0][..], &[1; 8]].concat();
    let mut objects = vec![forge.header(&[(1, space(&[8])), (3, unsigned(1)), (8, layout)])];
    for level in 0..levels {
        let all = [&[3, 0, 0, 0, 1, 0, 0, 0][..], &[0; 8]].concat();
        let mut mappings = [&[0][..], &8_u64.to_le_bytes()].concat();
        for _ in 0..8 {
            mappings.extend(format!(".\0/{level}\0").bytes());
            mappings.extend([&all[..], &all].concat());
        }
        let mappings = summed(mappings);
        let mut heap = b"GCOL\x01\0\0\0".to_vec();
        heap.extend(4096_u64.to_le_bytes());
        heap.extend([1, 0, 1, 0, 0, 0, 0, 0]);
        heap.extend((mappings.len() as u64).to_le_bytes());
        heap.extend(mappings);
        heap.resize(4096, 0);
        let heap = forge.put(&heap);
        let layout = [&[4, 3][..], &heap.to_le_bytes(), &[1, 0, 0, 0]].concat();
        objects.push(forge.header(&[(1, space(&[8])), (3, unsigned(1)), (8, layout)]));
    }
    let names: Vec<String> = (0..objects.len()).map(|number| number.to_string()).collect();
    let links: Vec<(&str, u64)> = names.iter().map(String::as_str).zip(objects).collect();
    let root = forge.group(&links);
    let store = store(forge.finish(root));
    let read = |level: usize| {
        let Ok(Node::Array(array)) = store.node(&format!("/{level}")) else { panic!("no dataset") };
        read_serial(&*array, Positions::whole(&[8]))
    };
    assert_eq!(read(3).unwrap().as_slice::<u8>().unwrap(), [1; 8]);
    is_out_of_proportion(read(levels));
    // Less costly ones can still be read.
    assert_eq!(read(3).unwrap().as_slice::<u8>().unwrap(), [1; 8]);
}

/// A dataset of one dimension in chunks of one byte, with a chunk index of this kind.
fn chunked(forge: &mut Forge, layout: Vec<u8>, shape: u64) -> u64 {
    let mut unlimited = vec![1, 1, 1, 0, 0, 0, 0, 0];
    unlimited.extend(shape.to_le_bytes());
    unlimited.extend(NONE.to_le_bytes());
    let data = forge.header(&[(1, unlimited), (3, unsigned(1)), (8, layout)]);
    forge.group(&[("data", data)])
}

fn visit(bytes: Vec<u8>) -> hyperslab_core::Result<()> {
    let store = store(bytes);
    let Ok(Node::Array(array)) = store.node("/data") else { panic!("no dataset") };
    array.visit_chunks(&mut |_, _| Ok(std::ops::ControlFlow::Continue(())))
}

/// A B-tree v1 of few nodes and four billion entries: all children of the root are one leaf.
#[test]
fn repeated_leaves_of_a_chunk_tree_end() {
    let mut forge = Forge::new();
    let mut node = |level: u8, child: u64| {
        let mut node = b"TREE\x01".to_vec();
        node.push(level);
        node.extend([0xff, 0xff]);
        node.extend([0xff; 16]);
        // Outside the array, so that the chunks are not reported.
        let key = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &1000_u64.to_le_bytes(), &[0; 8]].concat();
        node.extend([&key[..], &child.to_le_bytes()].concat().repeat(65_535));
        node.extend(key);
        forge.put(&node)
    };
    let leaf = node(0, 48);
    let tree = node(1, leaf);
    let layout = [&[3, 2, 2][..], &tree.to_le_bytes(), &[1, 0, 0, 0, 1, 0, 0, 0]].concat();
    let root = chunked(&mut forge, layout, 10);
    is_out_of_proportion(visit(forge.finish(root)));
}

/// An extensible array whose data blocks are all the same: four billion elements in three megabytes.
#[test]
fn repeated_blocks_of_an_extensible_array_end() {
    let mut forge = Forge::new();
    let header = forge.reserve(72);
    let client = [&[0, 0][..], &header.to_le_bytes()].concat();
    // The last super block has 2^14 data blocks of 2^18 elements in 256 pages.
    let (blocks, pages) = (1_usize << 14, 256);
    let mut data = [b"EADB", &client[..], &[0; 4]].concat();
    data = summed(data);
    let page = summed(vec![0xff; 1024 * 8]);
    data.extend(page.repeat(pages));
    let data = forge.put(&data);
    let mut block = [b"EASB", &client[..], &[0; 4]].concat();
    block.extend(vec![0xff; blocks * pages / 8]);
    block.extend(data.to_le_bytes().repeat(blocks));
    let block = forge.put(&summed(block));
    let mut index = [b"EAIB", &client[..]].concat();
    index.extend([0xff; 8 * (4 + 6 + 24)]);
    index.extend(block.to_le_bytes());
    let index = forge.put(&summed(index));
    let mut bytes = [&b"EAHD\0\0\x08"[..], &[32, 4, 16, 4, 10]].concat();
    for value in [0, 0, 0, 0, 1 << 33, 0, index] {
        bytes.extend(u64::to_le_bytes(value));
    }
    forge.write(header, &summed(bytes));
    let layout = [&[4, 2, 0, 2, 1, 1, 1, 4, 32, 4, 4, 16, 10][..], &header.to_le_bytes()].concat();
    let root = chunked(&mut forge, layout, 10);
    is_out_of_proportion(visit(forge.finish(root)));
}

/// Forty groups with two links each to the next have 2^40 paths.
#[test]
fn a_walk_over_all_paths_ends() {
    let levels = 40;
    let mut forge = Forge::new();
    let mut group = forge.group(&[]);
    for _ in 0..levels {
        group = forge.group(&[("a", group), ("b", group)]);
    }
    let store = store(forge.finish(group));
    let (mut pending, mut groups, mut links, mut deepest) = (vec!["/".to_owned()], 0, 0, 0);
    while let Some(path) = pending.pop() {
        match store.node(&path).unwrap() {
            Node::Group(_) => {
                groups += 1;
                deepest = deepest.max(path.matches('/').count());
                pending.extend(store.children(&path).unwrap().iter().map(|name| child_path(&path, name)));
            }
            Node::Link(_) => links += 1,
            other => panic!("a {}", other.kind()),
        }
    }
    assert_eq!(deepest, levels);
    assert!(groups < 200_000 && links > 0, "{groups} groups, {links} links");
    // Paths to groups that were seen before still lead to groups.
    assert!(matches!(store.node("/b/b").unwrap(), Node::Group(_)));
}
