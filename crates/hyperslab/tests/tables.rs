//! Tables through the public API: narrowing selections.

use hyperslab::rows::cell_to_json;
use hyperslab::table::{Aggregation, TableQuery};
use hyperslab::{RowCondition, Scan, Selection};

#[test]
fn scans_are_narrowed_by_further_conditions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cells.csv");
    std::fs::write(&path, "x,count,type\n1,60,NK\n2,70,B\n3,80,NK\n4,10,NK\n").unwrap();
    let table = hyperslab::open(&path).unwrap().table("/").unwrap();
    let condition = |text: &str| -> RowCondition { text.parse().unwrap() };
    let narrowed = |within: &Scan, text: &str| {
        table.narrow(within, &Selection::all(), None, Some(&condition(text))).unwrap()
    };
    let many = narrowed(&Scan::default(), "count > 50");
    let few = narrowed(&many, "type == 'NK'");
    assert_eq!(table.count(&Scan::default()).unwrap(), 4);
    assert_eq!((table.count(&many).unwrap(), table.count(&few).unwrap()), (3, 2));
    let (_, rows) = table.rows_of(&few).unwrap().collect().unwrap();
    assert_eq!(rows.rows, 2);
    let sum = TableQuery::new([Aggregation::of(hyperslab::query::Operation::Sum, "x")]);
    let (columns, answer) = sum.run_within(&table, &few).unwrap().collect().unwrap();
    assert_eq!(cell_to_json(&columns[0].dtype, &answer.columns[0], 0), 4);
    // Columns that were left out stay out.
    let names = |name: &str| vec![name.to_owned()];
    let one = table.narrow(&few, &Selection::all(), Some(&names("x")), None).unwrap();
    let error = table.narrow(&one, &Selection::all(), Some(&names("count")), None).unwrap_err();
    assert!(error.to_string().contains("no column count"), "{error}");
}
