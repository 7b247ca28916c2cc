//! Content by other writers is preserved byte for byte when something is added.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "other tests need the rest")]
#[path = "common/forge.rs"]
mod forge;

use std::path::Path;

use forge::{Forge, NONE, link_info};
use hyperslab_core::{Attributes, Depth, Node, Report, Sink, Store};
use hyperslab_hdf5::{AppendOptions, Compatibility, Hdf5Append, Hdf5Options, Hdf5Sink, open_path};

/// Counts the occurrences of these bytes in the file.
fn count(path: &Path, wanted: &[u8]) -> usize {
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(wanted.len()).filter(|window| *window == wanted).count()
}

/// A link message of this kind, whose name may be invalid text.
fn link(kind: u8, name: &[u8], target: &[u8]) -> Vec<u8> {
    [&[1, 8 | 16, kind, 0, name.len() as u8][..], name, target].concat()
}

fn add_groups(path: &Path, names: impl Iterator<Item = String>) {
    let mut file = Hdf5Append::open(path, AppendOptions::default()).unwrap();
    for name in names {
        file.group(&name, &Attributes::new()).unwrap();
    }
    file.close().unwrap();
    let mut report = Report::default();
    open_path(path).unwrap().verify(Depth::Deep, &mut report).unwrap();
    assert!(report.ok(), "{report:?}");
}

/// Links of every kind move from the header into a heap, and from heap to heap.
#[test]
fn links_are_kept_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    let mut forge = Forge::new();
    let below = forge.group(&[]);
    let links = [
        link(0, b"latin caf\xe9", &below.to_le_bytes()),
        link(1, b"soft \xff", b"\x0a\0nowhere \xe9\xe8"),
        link(64, b"external", b"\x0d\0\x01file \xe9\0path\xe8\0"),
        link(65, b"user-defined", b"\x07\0\x01\x02\x03\0\xff\xfe\xfd"),
        link(200, b"another", b"\0\0"),
    ];
    let mut messages = vec![(2, link_info(NONE, NONE))];
    messages.extend(links.iter().map(|link| (6, link.clone())));
    let root = forge.header(&messages);
    std::fs::write(&path, forge.finish(root)).unwrap();
    let before = open_path(&path).unwrap().children("/").unwrap();
    assert_eq!(before.len(), 5);
    for (round, added) in [(1, 2), (2, 6), (3, 1), (4, 300)] {
        add_groups(&path, (0..added).map(|number| format!("/{round} {number}")));
        let store = open_path(&path).unwrap();
        let names = store.children("/").unwrap();
        assert!(before.iter().all(|name| names.contains(name)), "{names:?}");
        assert!(matches!(store.node("/latin caf\u{fffd}").unwrap(), Node::Group(_)));
        assert!(matches!(store.node("/user-defined").unwrap(), Node::Link(_)));
        for link in &links {
            // One copy in the header, and one in every heap that was written.
            let copies = if round == 1 { 1 } else { round };
            assert_eq!(count(&path, link), copies, "round {round}: {}", link.escape_ascii());
        }
    }
}

/// The names of an old-style group are sorted by bytes, whatever their encoding.
#[test]
fn old_style_names_stay_sorted_by_their_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    let mut options = Hdf5Options::default();
    options.compatibility = Compatibility::Earliest;
    let mut sink = Box::new(Hdf5Sink::create(&path, options).unwrap());
    for name in ["a", "b\u{10000}", "bzzzzzzzz", "c"] {
        sink.group(&format!("/{name}"), &Attributes::new()).unwrap();
    }
    sink.commit().unwrap();
    // Change the third name to invalid UTF-8. It still sorts after the second; a replacement character would not.
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(10).position(|window| window == b"bzzzzzzzz\0").unwrap();
    let below = bytes.windows(5).position(|window| window == "b\u{10000}".as_bytes()).unwrap();
    bytes[at..at + 10].copy_from_slice(b"b\xff\xfe\xfd\0\0\0\0\0\0");
    // The entries were sorted by the original name, so swap its entry with the one before.
    let node = bytes.windows(4).position(|window| window == b"SNOD").unwrap() + 8;
    let heap = at - u64::from_le_bytes(bytes[node + 80..node + 88].try_into().unwrap()) as usize;
    let entry = |bytes: &[u8], number: usize| bytes[node + 40 * number..][..40].to_vec();
    let offset = |entry: &[u8]| u64::from_le_bytes(entry[..8].try_into().unwrap()) as usize;
    if heap + offset(&entry(&bytes, 1)) != below {
        let (first, second) = (entry(&bytes, 1), entry(&bytes, 2));
        bytes[node + 40..node + 80].copy_from_slice(&second);
        bytes[node + 80..node + 120].copy_from_slice(&first);
    }
    std::fs::write(&path, bytes).unwrap();
    add_groups(&path, ["/bb".to_owned()].into_iter());
    let bytes = std::fs::read(&path).unwrap();
    let head = bytes.windows(4).position(|window| window == b"HEAP").unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let data = number(head + 24);
    let node = bytes.windows(8).position(|window| window == b"SNOD\x01\0\x05\0").unwrap() + 8;
    let names: Vec<&[u8]> = (0..5)
        .map(|entry| {
            let name = &bytes[data + number(node + 40 * entry)..];
            &name[..name.iter().position(|byte| *byte == 0).unwrap()]
        })
        .collect();
    assert_eq!(names, [&b"a"[..], b"bb", "b\u{10000}".as_bytes(), b"b\xff\xfe\xfd", b"c"]);
}

/// Attributes in a heap are found by the hash of their stored names.
#[test]
fn attribute_names_are_kept_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    let mut sink = Box::new(Hdf5Sink::create(&path, Hdf5Options::default()).unwrap());
    let names: Vec<String> = (0..20).map(|number| format!("attribute number {number:02}")).collect();
    sink.group("/g", &Attributes::from_iter(names.iter().map(|name| (name.clone(), "x")))).unwrap();
    sink.commit().unwrap();
    // Change one name to Latin-1, and update the checksums of the heap's block and the tree's node.
    let mut bytes = std::fs::read(&path).unwrap();
    let sum = |bytes: &[u8]| hyperslab_codec::checksum::lookup3(bytes, 0);
    let name = bytes.windows(19).position(|window| window == b"attribute number 07").unwrap();
    let (old, new) = (sum(&bytes[name..name + 19]), {
        bytes[name] = 0xe9;
        sum(&bytes[name..name + 19])
    });
    let block = bytes[..name].windows(4).rposition(|window| window == b"FHDB").unwrap();
    let size = 1024;
    bytes[block + 18..block + 22].fill(0);
    let value = sum(&bytes[block..block + size]);
    bytes[block + 18..block + 22].copy_from_slice(&value.to_le_bytes());
    let at = bytes.windows(4).position(|window| window == old.to_le_bytes()).unwrap();
    bytes[at..at + 4].copy_from_slice(&new.to_le_bytes());
    let leaf = bytes[..at].windows(4).rposition(|window| window == b"BTLF").unwrap();
    // The records are sorted by hash.
    let mut records: Vec<Vec<u8>> =
        bytes[leaf + 6..leaf + 6 + 20 * 17].chunks(17).map(<[u8]>::to_vec).collect();
    records.sort_by_key(|record| u32::from_le_bytes(record[13..17].try_into().unwrap()));
    bytes[leaf + 6..leaf + 6 + 20 * 17].copy_from_slice(&records.concat());
    let end = leaf + 6 + 20 * 17;
    let value = sum(&bytes[leaf..end]);
    bytes[end..end + 4].copy_from_slice(&value.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    let mut file = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
    file.attribute("/g", "one more", "y").unwrap();
    file.close().unwrap();
    let Ok(Node::Group(read)) = open_path(&path).unwrap().node("/g") else { panic!("no group") };
    assert_eq!(read.len(), 21);
    assert!(read.get("\u{fffd}ttribute number 07").is_some());
    // Both trees contain the hash of the stored name, and neither that of the decoded name.
    assert_eq!(count(&path, &new.to_le_bytes()), 2);
    assert_eq!(count(&path, &sum("\u{fffd}ttribute number 07".as_bytes()).to_le_bytes()), 0);
}
