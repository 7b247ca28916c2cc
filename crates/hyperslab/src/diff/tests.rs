use std::sync::Arc;

use hyperslab_core::{DType, Elements, Values};

use super::*;
use crate::table::testing::{OneNode, sample};

fn store(folder: &tempfile::TempDir, name: &str, numbers: &[f32], shape: &[u64]) -> OpenStore {
    let elements = Elements::fixed(bytemuck::cast_slice(numbers).to_vec());
    let path = folder.path().join(name);
    crate::export::write(&Values::new(DType::Float32, shape, elements).unwrap(), &path, false).unwrap();
    crate::open(&path).unwrap()
}

fn compared(a: &OpenStore, b: &OpenStore, options: &DiffOptions) -> DiffReport {
    diff((a, "/"), (b, "/"), options).unwrap()
}

#[test]
fn the_first_difference_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let numbers: Vec<f32> = (0..400 * 300).map(|cell| cell as f32).collect();
    let mut others = numbers.clone();
    others[300 * 10 + 299] += 0.5;
    others[300 * 350 + 1] -= 2.0;
    let (a, b) =
        (store(&folder, "a.npy", &numbers, &[400, 300]), store(&folder, "b.npy", &others, &[400, 300]));
    // A low memory limit, so that there are several boxes.
    let options = DiffOptions { memory: 1 << 17, ..DiffOptions::default() };
    let report = compared(&a, &b, &options);
    let values = report.differences[0].values.as_ref().unwrap();
    assert_eq!((values.count, values.of, &values.first[..]), (2, 120_000, &[10, 299][..]));
    assert_eq!(values.values, [json!(3299.0), json!(3299.5)]);
    assert_eq!(values.largest, Some(2.0));
    assert_eq!(report.to_json()["differences"][0]["first"], json!([10, 299]));
    assert!(compared(&a, &a, &options).same());
    let near = |absolute, relative| {
        let tolerance = Tolerance { absolute, relative };
        compared(&a, &b, &DiffOptions { tolerance, ..options.clone() })
    };
    assert!(near(2.0, 0.0).same());
    assert_eq!(near(0.5, 0.0).differences[0].values.as_ref().unwrap().count, 1);
    assert!(near(0.0, 1e-3).same());
}

#[test]
fn shapes_types_and_kinds_differ() {
    let folder = tempfile::tempdir().unwrap();
    let a = store(&folder, "a.npy", &[1.0, f32::NAN, 0.0, 3.0], &[4]);
    let b = store(&folder, "b.npy", &[1.0, f32::NAN, -0.0, 3.0], &[4]);
    assert!(compared(&a, &b, &DiffOptions::default()).same());
    let turned = store(&folder, "c.npy", &[1.0, f32::NAN, 0.0, 3.0], &[2, 2]);
    assert_eq!(compared(&a, &turned, &DiffOptions::default()).differences[0].code, "shape");
    let path = folder.path().join("d.npy");
    let bytes = Values::new(DType::UInt32, &[4], Elements::fixed(vec![0; 16])).unwrap();
    crate::export::write(&bytes, &path, false).unwrap();
    let report = compared(&a, &crate::open(&path).unwrap(), &DiffOptions::default());
    assert_eq!(
        (report.differences[0].code, report.differences[0].detail.as_str()),
        ("type", "float32 ≠ uint32")
    );
    let table = OneNode::open(Node::Table(Arc::new(sample())));
    assert_eq!(compared(&a, &table, &DiffOptions::default()).differences[0].code, "kind");
}

#[test]
fn tables_compare_by_their_rows() {
    let open = |table| OneNode::open(Node::Table(Arc::new(table)));
    let mut other = sample();
    other.each = 3;
    assert!(compared(&open(sample()), &open(other), &DiffOptions::default()).same());
    let mut other = sample();
    other.each = 3;
    other.batch.columns[5] = Elements::variable(["", "one, two", "\"q\"", "other", "z"]);
    let report = compared(&open(sample()), &open(other), &DiffOptions::default());
    assert_eq!(report.differences.len(), 1);
    assert_eq!(report.differences[0].path, "/t");
    assert_eq!(report.differences[0].values.as_ref().unwrap().first, [3]);
    let mut fewer = sample();
    fewer.batch.rows = 4;
    let report = compared(&open(sample()), &open(fewer), &DiffOptions::default());
    assert_eq!((report.differences[0].code, report.differences[0].detail.as_str()), ("rows", "5 ≠ 4"));
}

#[test]
fn numbers_in_attributes_compare_as_numbers() {
    assert!(alike(&json!({"a": [1, 2.0]}), &json!({"a": [1.0, 2]})));
    assert!(!alike(&json!([1]), &json!([1, 2])) && !alike(&json!("1"), &json!(1)));
    let mut report = DiffReport::default();
    let of = |pairs: &[(&str, i32)]| -> Attributes {
        pairs.iter().map(|(name, value)| (*name, json!(value))).collect()
    };
    let shared = |format| Shared { format, links: false, fill: false, growth: false };
    let sides = [of(&[("x", 1), ("y", 2)]), of(&[("y", 3), ("z", 4)])];
    attributes(&mut report, "/", &sides[0], &sides[1], shared(false));
    assert_eq!(report.differences.len(), 3);
    // Formats without structured attributes store the text.
    let sides = [json!({"a": [1, null]}), json!(r#"{"a": [1,null]}"#)];
    let sides = sides.map(|value| [("x", value)].into_iter().collect::<Attributes>());
    for format in [false, true] {
        let mut report = DiffReport::default();
        attributes(&mut report, "/", &sides[0], &sides[1], shared(format));
        attributes(&mut report, "/", &sides[1], &sides[0], shared(format));
        assert_eq!(report.differences.len(), if format { 2 } else { 0 });
    }
}
