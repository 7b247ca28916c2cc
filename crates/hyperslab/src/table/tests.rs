use super::testing::{OneNode, sample};
use super::*;
use crate::rows;

fn reader() -> TableReader {
    OneNode::open(hyperslab_core::Node::Table(Arc::new(sample()))).table("/").unwrap()
}

fn chosen(selections: &[&str]) -> Result<Vec<String>> {
    let mut selection = Selection::all();
    for text in selections {
        selection = selection.and(text.parse()?);
    }
    let reader = reader();
    let (_, batch) = reader.rows(&selection, Some(&["s".to_owned()]))?.collect()?;
    Ok((0..batch.rows)
        .map(|row| String::from_utf8(batch.columns[0].variable_at(row).unwrap().to_vec()).unwrap())
        .collect())
}

#[test]
fn ranges_include_both_ends() -> Result<()> {
    assert_eq!(chosen(&[])?.len(), 5);
    assert_eq!(chosen(&["x=-5..5"])?, ["b", "bb", "c"]);
    assert_eq!(chosen(&["x=-5.5..4.9"])?, ["b", "bb"]);
    assert_eq!(chosen(&["x=5"])?, ["c"]);
    assert_eq!(chosen(&["d=2020-01-01..2020-02-01"])?, ["b", "bb"]);
    assert_eq!(chosen(&["d=2020-01..2020-02"])?, ["b", "bb", "c"]);
    assert_eq!(chosen(&["d=..2019"])?, ["a"]);
    assert_eq!(chosen(&["y=0..inf"])?, ["b", "bb", "c", "ü"]);
    assert_eq!(chosen(&["s=b..c"])?, ["b", "bb", "c"]);
    assert_eq!(chosen(&["s=ü"])?, ["ü"]);
    assert_eq!(chosen(&["x=-5..5", "d=2020-02..", "y=..0.5"])?, ["bb"]);
    Ok(())
}

#[test]
fn missing_names_are_rejected() {
    let error_of = |selections: &[&str]| chosen(selections).unwrap_err().to_string();
    assert_eq!(error_of(&["q=1"]), "no dimension q; there are x, d, y, s");
    assert_eq!(error_of(&["n=1"]), "no dimension n; there are x, d, y, s");
    assert_eq!(error_of(&["x=1", "x=2"]), "dimension x is selected twice");
    assert_eq!(error_of(&["x=one"]), "dimension x: one is not a whole number");
    assert_eq!(error_of(&["d=now"]), "dimension d: now is not a date such as 2020-01-31T12:00");
    assert!(error_of(&["[0:3]"]).contains("no positions"));
    let error = reader().rows(&Selection::all(), Some(&["q".to_owned()])).unwrap_err();
    assert_eq!(error.to_string(), "no column q; there are x, d, y, s, n, t");
}

#[test]
fn csv_distinguishes_missing_from_empty_text() -> Result<()> {
    let mut out = Vec::new();
    let reader = reader();
    rows::write_csv(reader.rows(&"x=-5..5".parse()?, None)?, &mut out)?;
    let expected = "x,d,y,s,n,t\n-5,2020-01-01,0.0,b,20,\"one, two\"\n0,2020-02-01,0.25,bb,,\"\"\"q\"\"\"\n\
                    5,2020-02-02,1e300,c,40,\"line\nbreak\"\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    Ok(())
}

#[test]
fn missing_elements_do_not_fit_numpy() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let reader = reader();
    let error = rows::write(reader.rows(&Selection::all(), None)?, &path, false).unwrap_err();
    assert!(error.to_string().contains("column n"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    rows::write(reader.rows(&"x=5..6".parse()?, None)?, &path, false)?;
    let values = crate::open(&path)?.array("/")?.read(&Selection::all())?;
    assert_eq!(values.to_json()[1]["t"], "z");
    Ok(())
}

#[test]
fn scans_are_narrowed_further() -> Result<()> {
    let reader = reader();
    let first = reader.scan_where(&"x=-5..5".parse()?, None, Some(&"y >= 0.25".parse()?))?;
    assert_eq!(reader.count(&first)?, 2);
    let second = reader.narrow(&first, &"x=1..9".parse()?, None, Some(&"n > 20".parse()?))?;
    assert_eq!(reader.count(&second)?, 1);
    assert_eq!(reader.count(&reader.narrow(&first, &"x=-9..-6".parse()?, None, None)?)?, 0);
    assert_eq!(reader.count(&Scan::default())?, 5);
    let few = reader.narrow(&first, &Selection::all(), Some(&["x".to_owned()]), None)?;
    assert!(reader.narrow(&few, &Selection::all(), Some(&["y".to_owned()]), None).is_err());
    let (columns, counted) = TableQuery::default().run_within(&reader, &second)?.collect()?;
    assert_eq!(rows::cell_to_json(&columns[0].dtype, &counted.columns[0], 0), 1);
    Ok(())
}
