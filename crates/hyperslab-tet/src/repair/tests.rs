use hyperslab_core::{ArraySpec, DType, Grid, Sink};

use super::*;
use crate::index::IndexHeader;
use crate::verify::verify_path;
use crate::write::tests::{read_all, sample, write_all};
use crate::{TetOptions, TetSink, open_path};

fn whole(path: &Path) -> Vec<u8> {
    let mut options = TetOptions { overwrite: true, ..TetOptions::default() };
    options.tool = "test".to_owned();
    let mut sink: Box<dyn Sink> = Box::new(TetSink::create(path, options).unwrap());
    let mut spec = ArraySpec::new(DType::Int32, Grid::new(&[5, 4], &[2, 3]).unwrap());
    spec.attributes.set("units", "K");
    write_all(sink.as_mut(), "a", &spec, &sample(&spec.dtype, &[5, 4])).unwrap();
    sink.commit().unwrap();
    std::fs::read(path).unwrap()
}

/// Plans, repairs, and expects an intact file with these fixes. Returns the number of history rows and whether attributes were
/// saved.
fn repaired(path: &Path, damaged: &[u8], codes: &[&str]) -> (usize, bool) {
    std::fs::write(path, damaged).unwrap();
    let plan = plan_repair(path, Depth::Deep).unwrap();
    assert_eq!(plan.fixes.iter().map(|fix| fix.code).collect::<Vec<_>>(), codes, "{plan:?}");
    assert_eq!(std::fs::read(path).unwrap(), damaged, "a plan changes nothing");
    plan.apply().unwrap();
    let report = verify_path(path, Depth::Deep).unwrap();
    assert!(report.ok, "{:#?}", report.report.findings);
    assert!(plan_repair(path, Depth::Deep).unwrap().is_empty());
    let store = open_path(path).unwrap();
    let values = read_all(&store, "/a").unwrap();
    assert_eq!(values.elements.as_fixed().unwrap(), &sample(&DType::Int32, &[5, 4]));
    let saved = store.footer().is_some_and(|footer| footer.metadata.datasets.contains_key("a"));
    (store.history().len(), saved)
}

#[test]
fn repairable_damage_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let good = whole(&path);
    assert!(plan_repair(&path, Depth::Deep).unwrap().is_empty());
    let store = open_path(&path).unwrap();
    let footer_start = store.payload_end() as usize;
    let json = store.footer().unwrap().zone_maps.map(|zones| (zones.offset + zones.len) as usize).unwrap();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    // The JSON, its length, its end.
    let damaged = changed(&|bytes| bytes[json] = b'!');
    assert_eq!(repaired(&path, &damaged, &["footer_invalid"]), (1, false));
    let damaged = changed(&|bytes| {
        let at = bytes.len() - 16;
        bytes[at..at + 8].fill(0xff);
    });
    assert_eq!(repaired(&path, &damaged, &["footer_invalid"]), (1, false));
    assert_eq!(repaired(&path, &good[..good.len() - 3], &["footer_invalid"]), (1, false));
    let damaged = changed(&|bytes| bytes.extend_from_slice(b"junk"));
    assert_eq!(repaired(&path, &damaged, &["footer_invalid"]), (1, false));
    // A misplaced spill: the rest is saved.
    let damaged = changed(&|bytes| {
        bytes.splice(footer_start..footer_start, *b"12345678");
    });
    assert_eq!(repaired(&path, &damaged, &["footer_invalid"]), (2, true));
    // Flags.
    let damaged = changed(&|bytes| bytes[12] = 0);
    assert_eq!(repaired(&path, &damaged, &["footer_flag"]), (2, true));
    assert_eq!(repaired(&path, &good[..footer_start], &["footer_flag"]), (0, false));
    let damaged = changed(&|bytes| {
        bytes[12] = 0;
        bytes.truncate(footer_start + 5);
    });
    assert_eq!(repaired(&path, &damaged, &["trailing_bytes"]), (0, false));
    // Zone maps that do not cover all values.
    let text = String::from_utf8(good[footer_start..json].to_vec()).unwrap();
    let lie = text.find("max_le\": \"").unwrap() + 10 + footer_start;
    let damaged = changed(&|bytes| bytes[lie..lie + 8].copy_from_slice(b"00000080"));
    assert_eq!(repaired(&path, &damaged, &["zone_maps"]), (2, true));
}

#[test]
fn unreachable_rows_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let good = whole(&path);
    let store = open_path(&path).unwrap();
    let mut rows: Vec<Row> = store.rows().collect();
    rows.insert(2, Row { dataset: 9, ..rows[0] });
    rows.push(Row { coord: [7; 8], ..rows[0] });
    let header = IndexHeader::default();
    let head = encode_head(store.datasets(), rows.into_iter(), header, true).unwrap();
    // There is room after the index for two more rows.
    let mut damaged = good;
    damaged[..head.len()].copy_from_slice(&head);
    assert_eq!(repaired(&path, &damaged, &["unreachable_rows"]), (2, true));
    assert_eq!(open_path(&path).unwrap().index_header().rows, 6);
}

#[test]
fn unrepairable_damage_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let good = whole(&path);
    let offset = open_path(&path).unwrap().rows().next().unwrap().offset as usize;
    let mut damaged = good.clone();
    damaged[offset] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let plan = plan_repair(&path, Depth::Deep).unwrap();
    assert!(plan.left[0].contains("checksum"), "{plan:?}");
    std::fs::write(&path, &good[..60]).unwrap();
    assert!(plan_repair(&path, Depth::Deep).unwrap_err().is_corrupt());
}
