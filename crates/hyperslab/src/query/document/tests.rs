//! Documents that are rejected, and the messages.

use super::*;

fn refusal(text: &str) -> String {
    match Document::parse(text, false) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn error_messages_name_the_key() {
    for (text, words) in [
        (r#"{"dataset": "t", "mean": [], "more": 1}"#, "unknown field"),
        (r#"{"dataset": "t", "operation": {"sum": []}}"#, "nested `operation`"),
        (r#"{"dataset": "t", "output": {}}"#, "nested `output`"),
        (r#"{"dataset": "t", "mean": [], "filter": {"in": [1, 2]}}"#, "unknown"),
        (r#"{"dataset": "", "mean": []}"#, "non-empty string"),
        (r#"{"dataset": "t", "min": [], "max": []}"#, "at most one reduction key"),
        (r#"{"dataset": "t", "sum": "2nd"}"#, "invalid axis label"),
        (r#"{"dataset": "t", "transform": {"method": "l1"}, "write": {"to": 1}}"#, "unknown field `write"),
        (
            r#"{"dataset": "t", "window": {"axis": 0, "size": 2, "mode": "bins", "x": 1}, "sum": []}"#,
            "unknown field `window",
        ),
        (r#"{"dataset": "t", "window": {"axis": 0, "size": 0, "mode": "bins"}, "sum": []}"#, "window.size"),
        (r#"{"dataset": "t", "window": {"axis": 0, "size": 2, "mode": "bins"}}"#, "requires a reduction"),
        (
            r#"{"dataset": "t", "window": {"axis": 0, "size": 2, "mode": "bins"}, "group_by": [1], "sum": []}"#,
            "cannot be combined",
        ),
        (r#"{"dataset": "t", "window": {"axis": 0, "size": 2, "mode": "hop"}, "sum": []}"#, "bins"),
        (r#"{"dataset": "t", "align": {"with": "u", "axes": [0], "how": 1}}"#, "unknown field `align"),
        (r#"{"dataset": "t", "align": {"with": "u", "axes": [0]}, "sum": []}"#, "cannot be combined"),
        (r#"{"dataset": "t", "align": {"with": "u", "axes": []}}"#, "at least one axis"),
        (
            r#"{"dataset": "t", "group_by": {"by": "labels", "axes": [0], "x": 1}, "sum": []}"#,
            "unknown field `group_by",
        ),
        (r#"{"dataset": "t", "group_by": {"by": "size", "axes": [0]}, "sum": []}"#, "group_by.by"),
        (
            r#"{"dataset": "t", "window": {"axis": 0, "size": 2, "mode": "bins", "pad": "wrap"}, "sum": []}"#,
            "window pad",
        ),
        (
            r#"{"dataset": "t", "window": {"axis": 0, "size": 2, "mode": "bins", "step": 2}, "sum": []}"#,
            "window.step",
        ),
        (
            r#"{"dataset": "t", "window": {"axis": 0, "size": 2, "mode": "bins", "align": "left"}, "sum": []}"#,
            "window align",
        ),
        (r#"{"dataset": "t", "selection": [{"start": 3, "stop": 3}], "sum": []}"#, "start must be < stop"),
        (r#"{"dataset": "t", "selection": [{"step": 0}], "sum": []}"#, "step must be >= 1"),
        (r#"{"dataset": "t", "sum": [0, 0]}"#, "more than once"),
        (r#"{"dataset": "t", "filter": {"gt": 3, "lt": 3}, "sum": []}"#, "range is empty"),
        (r#"{"dataset": "t", "quantile": {"q": 1.5}}"#, "between 0 and 1"),
        (r#"{"dataset": "t", "histogram": {"bins": 5000}}"#, "histogram.bins"),
        (r#"{"dataset": "t", "write": "ram", "sum": []}"#, "requires a transform"),
        (r#"{"dataset": "t", "pipeline": [{"sum": []}, {"filter": {"gt": 1}}]}"#, "out of order"),
        (r#"{"dataset": "t", "pipeline": [{"sum": []}], "filter": {"gt": 1}}"#, "cannot be combined"),
    ] {
        assert!(refusal(text).contains(words), "{text}: {:?} has no {words:?}", refusal(text));
    }
    let deep = format!(r#"{{"dataset": "t", "selection": {}1{}}}"#, "[".repeat(100), "]".repeat(100));
    assert!(!refusal(&deep).is_empty());
}

#[test]
fn json_and_toml_documents_are_equivalent() -> Result<()> {
    let json = Document::parse(
        r#"{"dataset": "t", "filter": {"gt": 5}, "quantile": {"q": 0.5, "axis": "time"}, "selection": [{"start": 1, "stop": null}]}"#,
        false,
    )?;
    let toml = Document::parse(
        "dataset = 't'\nselection = [{ start = 1 }]\n[filter]\ngt = 5\n[quantile]\nq = 0.5\naxis = 'time'\n",
        true,
    )?;
    assert_eq!(Document { source: Map::new(), ..json.clone() }, Document { source: Map::new(), ..toml });
    let steps = Document::parse(
        r#"{"dataset": "t", "pipeline": [{"select": [{"start": 1}]}, {"filter": {"gt": 5}}, {"quantile": {"q": 0.5, "axis": "time"}}]}"#,
        false,
    )?;
    assert_eq!(Document { source: Map::new(), ..json }, Document { source: Map::new(), ..steps });
    Ok(())
}
