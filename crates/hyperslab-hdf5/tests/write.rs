//! What we write, we read: every layout, index, type and filter.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "common/written.rs"]
mod written;

use hyperslab_core::{Attribute, Depth, Node, Report, Store};

#[test]
fn everything_written_reads_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for (name, compatibility) in written::COMPATIBILITIES {
        let path = folder.path().join(format!("{name}.h5"));
        let datasets = written::datasets(compatibility);
        written::write(&path, compatibility, &datasets).unwrap();
        let problems = written::differences(&path, &datasets);
        assert!(problems.is_empty(), "{name}: {} problems\n{}", problems.len(), problems.join("\n"));
        let store = hyperslab_hdf5::open_path(&path).unwrap();
        let mut report = Report::default();
        store.verify(Depth::Deep, &mut report).unwrap();
        assert!(report.ok(), "{name}: {report:?}");
        let Ok(Node::Group(read)) = store.node("/") else { panic!("no root") };
        for (attribute, value) in written::attributes().iter() {
            let own = read.get(attribute).map(Attribute::to_json);
            let fits = name != "earliest" || attribute != "large";
            let expected = Some(value.to_json()).filter(|_| fits);
            let same =
                own == expected || matches!(value, Attribute::Json(_)) || attribute.starts_with("text3");
            assert!(same, "{name} {attribute}: {own:?} is not {expected:?}");
        }
        assert_eq!(store.children("/many").unwrap().len(), 1500);
    }
}
