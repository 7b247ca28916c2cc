//! Query documents over `.tet` files, in cases where other readers contradict themselves: NaN, missing values,
//! filters that some operations ignore, answers that depend on the chunking or on an index beside the data. Ours
//! depend on the values alone.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(feature = "tet")]

use std::path::Path;

use hyperslab::query::document::Document;
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Format, Grid, OpenStore, Result, create, open,
};
use serde_json::{Value, json};

/// A file with one dataset `x`, in these chunks, with a missing-value marker if one is given.
fn file(
    path: &Path,
    dtype: DType,
    bytes: &[u8],
    shape: &[u64],
    chunk: &[u64],
    fill: Option<&str>,
) -> Result<OpenStore> {
    let mut sink = create(path, Format::TET, &CreateOptions::default())?;
    sink.group("/", &Attributes::new())?;
    let mut spec = ArraySpec::new(dtype.clone(), Grid::new(shape, chunk)?);
    if let Some(fill) = fill {
        spec.attributes.set("_FillValue", fill);
    }
    let array = sink.array("/x", &spec)?;
    let grid = array.grid().clone();
    let item = dtype.size().unwrap();
    for number in 0..grid.chunks().unwrap() {
        let coord = grid.coord(number);
        let region = grid.region(&coord);
        let mut part = vec![0; region.cells().unwrap() as usize * item];
        let mut from = hyperslab::driver::Layout::packed(shape, item);
        for (start, stride) in region.start.iter().zip(&from.strides) {
            from.offset += *start as usize * stride.unsigned_abs();
        }
        let to = hyperslab::driver::Layout::packed(&region.shape, item);
        hyperslab::driver::copy_box(bytes, &from, &mut part, &to, &region.shape, item)?;
        array.write(&coord, array.encode(&coord, &Elements::fixed(part))?)?;
    }
    drop(array);
    sink.commit()?;
    open(path)
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// The answers of a document in one field, for every chunking.
fn answers(dtype: &DType, bytes: &[u8], shape: &[u64], fill: Option<&str>, document: &Value) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for (number, chunk) in [shape.to_vec(), vec![1; shape.len()], vec![2; shape.len()]].iter().enumerate() {
        let path = folder.path().join(format!("{number}.tet"));
        let store = file(&path, dtype.clone(), bytes, shape, chunk, fill).unwrap();
        let document = Document::parse(&document.to_string(), false).unwrap();
        all.push(document.run(&store, 100).unwrap()["execution"].clone());
    }
    all
}

#[track_caller]
fn everywhere(
    dtype: DType,
    bytes: &[u8],
    shape: &[u64],
    fill: Option<&str>,
    document: Value,
    expected: &[(&str, Value)],
) {
    for (number, answer) in answers(&dtype, bytes, shape, fill, &document).iter().enumerate() {
        for (field, value) in expected {
            assert_eq!(&answer[*field], value, "{document}: {field} in chunking {number}");
        }
    }
}

const HOLED: [f32; 6] = [1.0, f32::NAN, 3.0, f32::INFINITY, 5.0, f32::NAN];

#[test]
fn selections_with_nan_can_be_read() {
    let expected = json!([1.0, null, 3.0, null, 5.0, null]);
    everywhere(
        DType::Float32,
        &floats(&HOLED),
        &[2, 3],
        None,
        json!({"dataset": "x"}),
        &[("f32_preview", expected)],
    );
}

#[test]
fn counts_along_an_axis_do_not_depend_on_chunks() {
    let bytes = floats(&HOLED);
    let ask = |document, field, value| {
        everywhere(DType::Float32, &bytes, &[2, 3], Some("3"), document, &[(field, value)])
    };
    ask(json!({"dataset": "x", "nan_count": 1}), "operation_reduced_nan_count", json!([1, 1]));
    ask(json!({"dataset": "x", "inf_count": 1}), "operation_reduced_inf_count", json!([0, 1]));
    ask(json!({"dataset": "x", "null_count": {"axis": 1}}), "operation_reduced_null_count", json!([1, 0]));
    ask(json!({"dataset": "x", "nan_mean": 1}), "operation_reduced_nan_mean", json!([2.0, null]));
    ask(json!({"dataset": "x", "nan_std": 0}), "operation_reduced_nan_std", json!([null, 0.0, 0.0]));
    ask(json!({"dataset": "x", "mean": []}), "operation_mean", json!(null));
    ask(json!({"dataset": "x", "min": []}), "operation_min", json!(1.0));
}

#[test]
fn medians_quantiles_and_histograms_apply_the_filter() {
    let bytes = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 60.0]);
    let ask = |document, expected: &[(&str, Value)]| {
        everywhere(DType::Float32, &bytes, &[6], None, document, expected)
    };
    ask(json!({"dataset": "x", "filter": {"lt": 6}, "median": []}), &[("operation_median", json!(3.0))]);
    ask(
        json!({"dataset": "x", "filter": {"lt": 6}, "quantile": {"q": 1.0}}),
        &[("operation_quantile", json!(5.0)), ("operation_element_count", json!(5))],
    );
    ask(
        json!({"dataset": "x", "filter": {"lt": 6}, "histogram": {"bins": 2, "min": 0, "max": 6}}),
        &[
            ("operation_histogram_counts", json!([2, 3])),
            ("operation_histogram_edges", json!([0.0, 3.0, 6.0])),
        ],
    );
    // Without a filter, values outside count in the outer bins.
    ask(
        json!({"dataset": "x", "histogram": {"bins": 2, "min": 0, "max": 6}}),
        &[("operation_histogram_counts", json!([2, 4]))],
    );
}

#[test]
fn filters_compare_the_values_and_nothing_else() {
    let bytes = floats(&[-0.0, 0.0, 1.0, 2.0]);
    everywhere(
        DType::Float32,
        &bytes,
        &[4],
        None,
        json!({"dataset": "x", "filter": {"ne": 0}, "count": []}),
        // Compared by bits: the other zero is different.
        &[("operation_element_count", json!(3))],
    );
    let large: Vec<u8> =
        [(1_i64 << 53) + 1, 1 << 53, 7, -9].iter().flat_map(|value| value.to_ne_bytes()).collect();
    everywhere(
        DType::Int64,
        &large,
        &[4],
        None,
        json!({"dataset": "x", "filter": {"eq": (1_i64 << 53) + 1}, "sum": []}),
        &[("operation_sum", json!((1_i64 << 53) + 1)), ("operation_element_count", json!(1))],
    );
    everywhere(
        DType::Int64,
        &large,
        &[4],
        None,
        json!({"dataset": "x", "max": []}),
        &[("operation_max", json!((1_i64 << 53) + 1))],
    );
}

#[test]
fn a_missing_value_that_float32_rounds_is_still_missing() {
    let bytes = floats(&[1.0, 1e20, 9.96921e36, 4.0]);
    for (fill, others, sum) in
        [("1e20", 3, 1.0 + f64::from(9.96921e36_f32) + 4.0), ("9.96921e36", 3, 5.0 + f64::from(1e20_f32))]
    {
        let ask = |document, expected: &[(&str, Value)]| {
            everywhere(DType::Float32, &bytes, &[4], Some(fill), document, expected);
        };
        ask(json!({"dataset": "x", "null_count": []}), &[("operation_null_count", json!(1))]);
        ask(
            json!({"dataset": "x", "filter": {"is_not_null": true}, "sum": []}),
            &[("operation_sum", json!(sum)), ("operation_element_count", json!(others))],
        );
        ask(
            json!({"dataset": "x", "filter": {"gt": 1e19}, "count": []}),
            &[("operation_element_count", json!(1))],
        );
    }
}

#[test]
fn a_short_first_bin_is_padded_too() {
    let bytes = floats(&[1.0, 2.0, 3.0, 4.0, 5.0]);
    let window =
        |pad: &str, align: &str| json!({"axis": 0, "size": 2, "mode": "bins", "pad": pad, "align": align});
    let ask = |window, key: &str, expected| {
        everywhere(
            DType::Float32,
            &bytes,
            &[5],
            None,
            json!({"dataset": "x", "window": window, key: []}),
            &[(format!("operation_reduced_{key}").as_str(), expected), ("window_count", json!(3))],
        );
    };
    ask(window("0", "end"), "mean", json!([0.5, 2.5, 4.5]));
    ask(window("none", "end"), "mean", json!([1.0, 2.5, 4.5]));
    ask(window("0", "start"), "mean", json!([1.5, 3.5, 2.5]));
    ask(window("nan", "end"), "sum", json!([null, 5.0, 9.0]));
}

#[test]
fn rolling_windows_match_the_reference_values() {
    let bytes = floats(&[1.0, 2.0, 3.0, 4.0, 5.0]);
    for (more, sums) in [
        (json!({}), json!([6.0, 9.0, 12.0])),
        (json!({"pad": "0"}), json!([1.0, 3.0, 6.0, 9.0, 12.0])),
        (json!({"pad": "0", "align": "end"}), json!([6.0, 9.0, 12.0, 9.0, 5.0])),
        (json!({"pad": "0", "min_count": 2}), json!([null, 3.0, 6.0, 9.0, 12.0])),
    ] {
        let mut window = json!({"axis": 0, "size": 3, "mode": "rolling"});
        window.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        everywhere(
            DType::Float32,
            &bytes,
            &[5],
            None,
            json!({"dataset": "x", "window": window, "sum": []}),
            &[("operation_reduced_sum", sums)],
        );
    }
}

#[test]
fn empty_selections_have_no_answer() {
    let bytes = floats(&[1.0, 2.0]);
    let ask = |key: &str, field: &str, value| {
        everywhere(
            DType::Float32,
            &bytes,
            &[2],
            None,
            json!({"dataset": "x", "filter": {"gt": 5}, key: []}),
            &[(field, value)],
        );
    };
    ask("sum", "operation_sum", json!(0.0));
    ask("count", "operation_element_count", json!(0));
    ask("mean", "operation_mean", json!(null));
    ask("min", "operation_min", json!(null));
}

#[test]
fn transforms_and_covariances_match_the_textbook() {
    let bytes = floats(&[1.0, 2.0, 3.0, 6.0]);
    everywhere(
        DType::Float32,
        &bytes,
        &[2, 2],
        None,
        json!({"dataset": "x", "transform": {"method": "minmax", "axis": 0}}),
        &[("f32_preview", json!([0.0, 0.0, 1.0, 1.0])), ("transform_method", json!("minmax"))],
    );
    everywhere(
        DType::Float32,
        &bytes,
        &[2, 2],
        None,
        json!({"dataset": "x", "transform": {"method": "center"}}),
        &[("f32_preview", json!([-2.0, -1.0, 0.0, 3.0]))],
    );
    everywhere(
        DType::Float32,
        &bytes,
        &[2, 2],
        None,
        json!({"dataset": "x", "covariance": 0}),
        &[("operation_covariance", json!([1.0, 2.0, 2.0, 4.0])), ("operation_covariance_order", json!(2))],
    );
    everywhere(
        DType::Float32,
        &bytes,
        &[2, 2],
        None,
        json!({"dataset": "x", "correlation": {"axis": 0}}),
        &[("operation_correlation", json!([1.0, 1.0, 1.0, 1.0]))],
    );
}

#[test]
fn missing_axes_and_labels_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = floats(&[1.0, 2.0, 3.0, 4.0]);
    let store = file(&folder.path().join("x.tet"), DType::Float32, &bytes, &[2, 2], &[1, 2], None).unwrap();
    let refusal = |document: Value| {
        let document = Document::parse(&document.to_string(), false).unwrap();
        document.run(&store, 0).unwrap_err().to_string()
    };
    assert!(refusal(json!({"dataset": "y", "sum": []})).contains("not found"));
    assert!(refusal(json!({"dataset": "x", "sum": "lat"})).contains("no dimension lat"));
    assert!(refusal(json!({"dataset": "x", "sum": [0, 1]})).contains("write []"));
    assert!(refusal(json!({"dataset": "x", "sum": [], "selection": [{}]})).contains("2 axes"));
    assert!(refusal(json!({"dataset": "x", "sum": [], "selection": [{"stop": 3}, {}]})).contains("outside"));
    assert!(refusal(json!({"dataset": "x", "group_by": [0, 1], "sum": []})).contains("at least one axis"));
    assert!(
        refusal(json!({"dataset": "x", "label_filter": {"axis": 0, "eq": "a"}, "sum": []}))
            .contains("no labels")
    );
    assert!(refusal(json!({"dataset": "x", "null_count": []})).contains("fill"));
}

/// Zone maps rule out chunks for callers that trust them, and are not even read for others.
#[test]
fn zone_maps_are_hints() {
    use hyperslab::query::{Operation, Query};
    let folder = tempfile::tempdir().unwrap();
    let bytes = floats(&[1.0, 2.0, 3.0, 4.0, 50.0, 60.0]);
    let store = file(&folder.path().join("x.tet"), DType::Float32, &bytes, &[6], &[2], None).unwrap();
    let array = store.array("/x").unwrap();
    let query = Query::new(Operation::Max).filter("> 10".parse().unwrap());
    let skipped = |query: &Query| query.plan(&array).unwrap().explain(&array).unwrap().skipped;
    let trusting = Query { trust_hints: true, ..query.clone() };
    assert_eq!((skipped(&query), skipped(&trusting)), (0, 2));
    assert_eq!(query.run(&array).unwrap().scalar().unwrap(), Some(60.0));
    assert_eq!(trusting.run(&array).unwrap().scalar().unwrap(), Some(60.0));
}

/// Trusted zone maps answer counts without reading, and extremes by bounds. Without trust, values are read.
#[test]
fn trusted_zone_maps_count_and_bound_without_reading() {
    use hyperslab::query::{Operation, Query};
    use std::io::{Seek, SeekFrom, Write};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let bytes = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let store = file(&path, DType::Float32, &bytes, &[6], &[2], None).unwrap();
    let last = store.array("/x").unwrap().inner().locate(&[[2_u64][..].into()]).unwrap();
    let offset = last[0].as_ref().and_then(|chunk| chunk.as_plain()).unwrap().offset;
    drop(store);
    // Change the values without updating the zone maps, to show which queries read them.
    let mut payload = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    payload.seek(SeekFrom::Start(offset)).unwrap();
    payload.write_all(&floats(&[-5.0, -5.0])).unwrap();
    drop(payload);
    let store = open(&path).unwrap();
    let array = store.array("/x").unwrap();
    let ask = |operation, condition: &str, trust_hints| {
        let query = Query { trust_hints, ..Query::new(operation).filter(condition.parse().unwrap()) };
        query.run(&array).unwrap().scalar().unwrap()
    };
    assert_eq!(ask(Operation::Count, "> 0", false), Some(4.0));
    assert_eq!(ask(Operation::Count, "> 0", true), Some(6.0));
    assert_eq!(ask(Operation::Min, "< 9", false), Some(-5.0));
    assert_eq!(ask(Operation::Min, "< 9", true), Some(1.0));
    assert_eq!(ask(Operation::Max, "> 4.5", true), None);
    assert_eq!(ask(Operation::Sum, "> 0", true), Some(10.0));
}

/// The selection needs memory as stored, as float64 and as the result.
#[test]
fn transforms_beyond_the_memory_limit_are_rejected() {
    use hyperslab::query::{Method, Operation, Query, transform};
    let folder = tempfile::tempdir().unwrap();
    let bytes = floats(&[1.0, 2.0, 3.0, 4.0]);
    let store = file(&folder.path().join("x.tet"), DType::Float32, &bytes, &[4], &[2], None).unwrap();
    let array = store.array("/x").unwrap();
    let query = Query::new(Operation::Count).memory(63);
    let refused = transform(&array, &query, Method::Center).unwrap_err().to_string();
    assert!(refused.contains("needs 64 bytes, but the limit is 63"), "{refused}");
    assert!(transform(&array, &query.memory(64), Method::Center).is_ok());
}
