//! Files written by the NetCDF library and scipy, compared with the values that these read.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use hyperslab_core::{AxisPositions, Depth, Node, Positions, Report, Store, read_serial};

#[test]
fn golden_files_read_as_their_writers_read_them() {
    assert!(common::compare_all(&common::golden()) >= 15);
}

#[test]
fn golden_files_pass_the_check() {
    for name in ["classic", "offset64", "data64", "single_short", "scipy_2_2", "nothing"] {
        let store = common::open(&common::golden().join(format!("{name}.nc")), true);
        let mut report = Report::default();
        store.verify(Depth::Deep, &mut report).unwrap();
        assert!(report.ok() && report.findings.iter().all(|finding| finding.ok), "{name}: {report:?}");
    }
}

#[test]
fn strided_and_backward_selections_match_whole_reads() {
    for (name, mapped) in [("classic", true), ("classic", false), ("single_short", true), ("data64", true)] {
        let store = common::open(&common::golden().join(format!("{name}.nc")), mapped);
        for child in store.children("/").unwrap() {
            let Node::Array(array) = store.node(&format!("/{child}")).unwrap() else { panic!("an array") };
            let (shape, item) = (array.schema().shape(), array.schema().dtype.size().unwrap());
            let &[rows, columns] = shape else { continue };
            let whole = read_serial(&*array, Positions::whole(shape)).unwrap();
            let whole = whole.elements.as_fixed().unwrap();
            let axis = |start: u64, count: u64, step: i64| AxisPositions { start, count, step, keep: true };
            for (first, second) in [
                (axis(0, rows.div_ceil(2), 2), axis(1, columns - 1, 1)),
                (axis(rows - 1, rows, -1), axis(columns - 1, columns.div_ceil(2), -2)),
                (axis(1, (rows - 2) / 3 + 1, 3), axis(0, columns, 1)),
            ] {
                let picked =
                    read_serial(&*array, Positions { axes: [first, second].into_iter().collect() }).unwrap();
                let mut expected = Vec::new();
                for row in 0..first.count as i64 {
                    for column in 0..second.count as i64 {
                        let cell = (first.start as i64 + row * first.step) * columns as i64
                            + second.start as i64
                            + column * second.step;
                        expected.extend_from_slice(&whole[cell as usize * item..][..item]);
                    }
                }
                assert_eq!(picked.elements.as_fixed().unwrap()[..], expected, "{name} {child}");
            }
        }
    }
}
