//! Inputs with which the real library crashes, loses rows or writes files that it cannot read. None of that happens
//! here.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "common/sparse.rs"]
mod sparse;

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    ArraySpec, DType, Data, Depth, Elements, Filter, Grid, Node, Positions, Report, Scan, Sink, Store,
    read_serial,
};
use hyperslab_tiledb::{OpenOptions, WriteOptions, create, create_sparse, open_path, write_sparse};

/// Writes one tile per array into one store, then checks all values and statistics.
fn round_trip(path: &Path, arrays: &[(&str, DType, &[&str], Elements)]) {
    let mut sink = create(path, WriteOptions::default()).unwrap();
    for (name, dtype, filters, elements) in arrays {
        let cells = elements.len(dtype) as u64;
        let mut spec = ArraySpec::new(dtype.clone(), Grid::new(&[cells], &[cells]).unwrap());
        spec.filters = filters.iter().map(|name| Filter::new(*name)).collect();
        let array = sink.array(&format!("/{name}"), &spec).unwrap();
        let chunk = [0].as_slice().into();
        let encoded = array.encode(&chunk, elements).unwrap();
        array.write(&chunk, encoded).unwrap();
    }
    Box::new(sink).commit().unwrap();
    let store = open_path(path, OpenOptions::default()).unwrap();
    let mut report = Report::default();
    store.verify(Depth::Deep, &mut report).unwrap();
    assert!(report.ok(), "{:?}", report.findings);
    for (name, dtype, filters, elements) in arrays {
        let Node::Array(array) = store.node(&format!("/{name}")).unwrap() else { panic!("{name}: an array") };
        let found = read_serial(&*array, Positions::whole(array.schema().shape())).unwrap();
        let shape = [elements.len(dtype) as u64];
        let expected = hyperslab_core::Values::new(dtype.clone(), &shape, elements.clone()).unwrap();
        assert!(found.to_json() == expected.to_json(), "{name} through {filters:?}");
    }
}

fn words(values: impl IntoIterator<Item = i32>) -> Elements {
    Elements::fixed(values.into_iter().flat_map(i32::to_le_bytes).collect::<Vec<u8>>())
}

fn list(lengths: &[usize]) -> Elements {
    let total: usize = lengths.iter().sum();
    let mut offsets = vec![0];
    for length in lengths {
        offsets.push(offsets[offsets.len() - 1] + *length as u64);
    }
    Elements { data: Data::List { offsets, items: Box::new(words(0..total as i32)) }, validity: None }
}

/// The last distinct string of a tile is the first with more than 255 bytes. Its length must not be truncated.
#[test]
fn a_long_last_string_through_runs() {
    let folder = tempfile::tempdir().unwrap();
    let texts = ["a".to_owned(), "a".to_owned(), "bb".to_owned(), "x".repeat(300)];
    for filter in ["rle", "dictionary"] {
        let arrays = [("s", DType::String, &[filter][..], Elements::variable(texts.clone()))];
        round_trip(&folder.path().join(filter), &arrays);
    }
}

/// Two cells of 40,000 bytes: the last cell ends a chunk, and no empty chunk may follow.
#[test]
fn cells_that_end_a_chunk() {
    let folder = tempfile::tempdir().unwrap();
    for filters in [
        &["bit_width_reduction"][..],
        &["positive_delta"],
        &["double_delta"],
        &["delta"],
        &["bit_width_reduction", "zstd"],
    ] {
        let name = filters.join("-");
        let dtype = DType::List(Arc::new(DType::Int32));
        let arrays = [("v", dtype, filters, list(&[10_000, 10_000]))];
        round_trip(&folder.path().join(name), &arrays);
    }
}

/// RLE after a filter with metadata also compresses the metadata, in whole cells. If the metadata is not a multiple
/// of the cell size, writing must fail.
#[test]
fn runs_behind_a_shuffle() {
    let folder = tempfile::tempdir().unwrap();
    let cells = words((0..30).map(|number| number / 9));
    let filters = ["byteshuffle", "rle"];
    round_trip(&folder.path().join("narrow"), &[("w", DType::Int32, &filters, cells.clone())]);
    let mut sink = create(&folder.path().join("wide"), WriteOptions::default()).unwrap();
    let dtype = DType::Array(Arc::new(DType::Int32), vec![3]);
    let spec = ArraySpec::new(dtype, Grid::new(&[10], &[10]).unwrap()).with_filters(filters.map(Filter::new));
    let array = sink.array("/w", &spec).unwrap();
    let refused = array.encode(&[0].as_slice().into(), &cells).unwrap_err().to_string();
    assert!(refused.contains("rle: 8 bytes are not a multiple of the cell size 12"), "{refused}");
}

/// A window with the full range of its type has no offset. The stored bytes must not depend on uninitialised memory.
#[test]
fn full_range_windows_are_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut stored = Vec::new();
    for name in ["one", "two"] {
        let path = folder.path().join(name);
        let cells = words([i32::MIN, i32::MAX, 0, 7].repeat(40));
        round_trip(&path, &[("w", DType::Int32, &["bit_width_reduction"], cells)]);
        let fragment = std::fs::read_dir(path.join("__fragments")).unwrap().next().unwrap().unwrap().path();
        stored.push(std::fs::read(fragment.join("a0.tdb")).unwrap());
    }
    assert_eq!(stored[0], stored[1]);
    // After the chunk's header: its length, then one window per 256 bytes, each with offset zero.
    let window = &stored[0][8 + 12 + 8..];
    assert_eq!(window[..5], [0, 0, 0, 0, 32]);
}

/// Three text attributes: each tile stores its own extremes. Checked by `verify`.
#[test]
fn extremes_of_text_in_several_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let texts =
        |shift: usize| Elements::variable((0..40).map(move |i| "abcdefg"[(i * 3 + shift) % 7..].to_owned()));
    let arrays =
        ["s", "t", "u"].map(|name| (name, DType::Bytes, &["zstd"][..], texts(name.as_bytes()[0] as usize)));
    round_trip(&folder.path().join("texts"), &arrays);
}

/// Consecutive writes never have the same time, so the later one wins.
#[test]
fn the_later_of_two_writes_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array");
    let schema = sparse::schema(10, 9);
    create_sparse(&path, &schema, &WriteOptions::default()).unwrap();
    for number in 0..12 {
        write_sparse(&path, &[words([3]), words([number])], &WriteOptions::default()).unwrap();
        let store = open_path(&path, OpenOptions::default()).unwrap();
        let Node::Table(table) = store.node("/").unwrap() else { panic!("a table") };
        let batch = table.scan(&Scan::default()).unwrap().next().unwrap().unwrap();
        assert_eq!((batch.rows, batch.columns[1].as_fixed().unwrap()[0]), (1, number as u8));
    }
}

/// Writes one small array at a path of the store.
fn write_at(target: &Path, path: &str) -> hyperslab_core::Result<()> {
    let mut sink = create(target, WriteOptions::default())?;
    let array = sink.array(path, &ArraySpec::new(DType::Int32, Grid::new(&[2], &[2])?))?;
    let chunk = [0].as_slice().into();
    array.write(&chunk, array.encode(&chunk, &words([1, 2]))?)?;
    Box::new(sink).commit()
}

/// A node's name becomes a folder name. It must not lead outside the store or into TileDB's own folders.
#[test]
fn unsafe_names_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("store");
    let (timed, long) = ("__1_1_0123456789abcdef0123456789abcdef_22", "x".repeat(256));
    for name in ["..", ".", "", "a\\b", "a\0b", "__schema", "__meta", "__tiledb_group.tdb", timed, &long] {
        for path in [format!("/{name}/a"), format!("/g/{name}")] {
            let refused = write_at(&target, &path).unwrap_err().to_string();
            assert!(refused.contains("cannot write the node"), "{path}: {refused}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{name}");
    }
    write_at(&target, "/g/__xarray_dataarray_variable__").unwrap();
}

/// Lines of a vacuum list are untrusted text. Only fragments of this array may be removed.
#[test]
fn a_vacuum_list_removes_only_fragments() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("store");
    write_at(&target, "/a").unwrap();
    let commits = target.join("__commits");
    let own = std::fs::read_dir(&commits).unwrap().next().unwrap().unwrap().file_name();
    let own = own.to_str().unwrap().trim_end_matches(".wrt").to_owned();
    for (file, name) in
        [(&commits, "kept.wrt"), (&target, "kept.ok"), (&folder.path().to_owned(), "kept.wrt")]
    {
        std::fs::write(file.join(name), "kept").unwrap();
    }
    let lines = ["kept", "../kept", "..", ".", "/etc/passwd", "..\\..\\kept", "a\0b", ""].join("\n");
    std::fs::write(commits.join(format!("{own}.vac")), lines).unwrap();
    hyperslab_tiledb::vacuum(&target, &WriteOptions::default()).unwrap();
    for kept in [commits.join("kept.wrt"), target.join("kept.ok"), folder.path().join("kept.wrt")] {
        assert!(kept.exists(), "{}", kept.display());
    }
    open_path(&target, OpenOptions::default()).unwrap().node("/a").unwrap();
}

/// A folder of the array is a symbolic link to another place. Nothing may be removed there.
#[test]
#[cfg(unix)]
fn symbolic_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("store");
    write_at(&target, "/a").unwrap();
    let (fragments, outside) = (target.join("__fragments"), folder.path().join("outside"));
    std::fs::rename(&fragments, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &fragments).unwrap();
    let orphan = outside.join("__1_1_0123456789abcdef0123456789abcdef_22");
    std::fs::create_dir(&orphan).unwrap();
    let refused = hyperslab_tiledb::repair(&target, &WriteOptions::default(), false).unwrap_err().to_string();
    assert!(refused.contains("leads out"), "{refused}");
    assert!(orphan.exists());
}

/// Many keys on an array and on its attribute, whose name contains a dot.
#[test]
fn metadata_keys_return_to_their_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("store");
    let mut sink = create(&target, WriteOptions::default()).unwrap();
    let keys = |from: usize| (0..20_000).map(move |key| (format!("k{:05}", key + from), "text"));
    let own: hyperslab_core::Attributes = keys(0).collect();
    sink.group("/", &own).unwrap();
    let mut spec = ArraySpec::new(DType::Int32, Grid::new(&[2], &[2]).unwrap());
    spec.attributes = keys(50_000).collect();
    let array = sink.array("/a.b", &spec).unwrap();
    let chunk = [0].as_slice().into();
    array.write(&chunk, array.encode(&chunk, &words([1, 2])).unwrap()).unwrap();
    Box::new(sink).commit().unwrap();
    let store = open_path(&target, OpenOptions::default()).unwrap();
    let Node::Group(found) = store.node("/").unwrap() else { panic!("a group") };
    assert_eq!(found, own);
    let Node::Array(array) = store.node("/a.b").unwrap() else { panic!("an array") };
    assert_eq!(array.schema().attributes, spec.attributes);
}

/// An array is a folder of its own, so no node may be below it, whichever is created first.
#[test]
fn nodes_below_an_array_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let spec = ArraySpec::new(DType::Int32, Grid::new(&[2], &[2]).unwrap());
    let mut sink = create(&folder.path().join("store"), WriteOptions::default()).unwrap();
    sink.array("/a", &spec).unwrap();
    sink.array("/ab", &spec).unwrap();
    sink.group("/g/h", &Default::default()).unwrap();
    for path in ["/a", "/a/b", "/a/b/c", "/g", "/g/h"] {
        assert!(sink.array(path, &spec).is_err(), "{path}");
    }
    for path in ["/a", "/a/b", "/ab/c/d"] {
        assert!(sink.group(path, &Default::default()).is_err(), "{path}");
    }
    sink.array("/g/i", &spec).unwrap();
    sink.group("/g", &Default::default()).unwrap();
    Box::new(sink).commit().unwrap();
    let store = open_path(&folder.path().join("store"), OpenOptions::default()).unwrap();
    assert_eq!(store.children("/").unwrap(), ["a", "ab", "g"]);
    assert_eq!(store.children("/g").unwrap(), ["h", "i"]);
}

/// A group file, as a generic tile without filters.
fn group_file(members: &[(String, String)]) -> Vec<u8> {
    let mut payload = 2_u32.to_le_bytes().to_vec();
    payload.extend((members.len() as u64).to_le_bytes());
    for (name, uri) in members {
        payload.extend(2_u32.to_le_bytes());
        // An array by its claim, at a relative address.
        payload.extend([2, 1]);
        payload.extend((uri.len() as u64).to_le_bytes());
        payload.extend(uri.as_bytes());
        payload.push(1);
        payload.extend((name.len() as u64).to_le_bytes());
        payload.extend(name.as_bytes());
        payload.push(0);
    }
    let mut tile = 1_u64.to_le_bytes().to_vec();
    for number in [payload.len() as u32, payload.len() as u32, 0] {
        tile.extend(number.to_le_bytes());
    }
    tile.extend(&payload);
    let mut file = 22_u32.to_le_bytes().to_vec();
    file.extend((tile.len() as u64).to_le_bytes());
    file.extend((payload.len() as u64).to_le_bytes());
    file.push(4);
    file.extend(1_u64.to_le_bytes());
    file.push(0);
    file.extend(8_u32.to_le_bytes());
    file.extend(65_536_u32.to_le_bytes());
    file.extend(0_u32.to_le_bytes());
    file.extend(tile);
    file
}

/// Twenty groups, each with four members that lead to the next: 4^20 paths.
#[test]
fn groups_with_many_paths_are_visited_a_few_times() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("dag.tiledb");
    let mut place = root.clone();
    for _ in 0..20 {
        std::fs::create_dir_all(place.join("__group")).unwrap();
        std::fs::write(place.join("__tiledb_group.tdb"), "").unwrap();
        let member = |(name, uri): (&str, &str)| (name.to_owned(), uri.to_owned());
        let members: Vec<_> = [("a", "c"), ("b", "./c"), ("d", "c/."), ("e", "c//")].map(member).into();
        let name = "__1795126739884_1795126739884_555fbba5717dde3cb99ae019d60b0977_2";
        std::fs::write(place.join("__group").join(name), group_file(&members)).unwrap();
        place = place.join("c");
    }
    let store = open_path(&root, OpenOptions::default()).unwrap();
    let (mut pending, mut groups, mut others) = (vec!["/".to_owned()], 0, 0);
    while let Some(path) = pending.pop() {
        match store.node(&path) {
            Ok(Node::Group(_)) => {
                groups += 1;
                let names = store.children(&path).unwrap();
                pending.extend(names.iter().map(|name| hyperslab_core::child_path(&path, name)));
            }
            _ => others += 1,
        }
        assert!(groups + others < 5000);
    }
    // Every group is reached, by no more than 16 paths.
    assert!((20..=20 * 16).contains(&groups), "{groups}");
    // A path that was followed once is followed again.
    assert!(matches!(store.node("/e/e/e").unwrap(), Node::Group(_)));
    let mut report = Report::default();
    store.verify(Depth::Deep, &mut report).unwrap();
}
