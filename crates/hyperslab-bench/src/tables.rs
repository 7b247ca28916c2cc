//! Conditions on the rows of a sparse TileDB array, and aggregations by group, against TileDB itself on two cores.

use std::hint::black_box;
use std::path::Path;

use hyperslab::query::Operation;
use hyperslab::table::{Aggregation, TableQuery};
use hyperslab::{RowCondition, Selection, TableReader};

use crate::harness::{Bench, OURS, Outcome, timed};
use crate::peers::{make_in, timed_in};

/// The script of the peer.
const SCRIPT: &str = "tables.py";
/// Conditions in words that both understand: the second one excludes most tiles by their statistics.
const CONDITIONS: [&str; 2] = ["count > 90 and type == 'NK'", "step >= 1990000 and count > 50"];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    for condition in CONDITIONS {
        let line = format!("tables 2 million rows, {condition}");
        if bench.wants(&line) {
            let path = file(bench)?;
            rows(bench, &line, &path, condition)?;
        }
    }
    let line = "tables 2 million rows, mean by group where count > 50";
    if bench.wants(line) {
        let path = file(bench)?;
        means(bench, line, &path, "count > 50")?;
    }
    Ok(())
}

fn file(bench: &Bench) -> Outcome<std::path::PathBuf> {
    bench.file("tables.tiledb", |path| make_in(bench, SCRIPT, "make", [path]))
}

/// All columns of the rows that meet a condition; their number.
fn found(table: &TableReader, condition: &RowCondition) -> Outcome<usize> {
    let scan = table.scan_where(&Selection::all(), None, Some(condition))?;
    let mut rows = 0;
    for batch in table.rows_of(&scan)?.batches {
        rows += black_box(batch?).rows;
    }
    Ok(rows)
}

fn rows(bench: &mut Bench, line: &str, path: &Path, condition: &str) -> Outcome {
    let store = hyperslab::open(path)?;
    let table = store.table("/")?;
    let parsed = condition.parse()?;
    let mut count = 0;
    let ours = timed(OURS, || {
        count = found(&table, &parsed)?;
        Ok(())
    })?;
    let count = count.to_string();
    let arguments = [path.as_os_str(), condition.as_ref(), count.as_ref()];
    let theirs = timed_in(bench, SCRIPT, "tiledb-py", "rows", arguments)?;
    bench.line(line, [ours].into_iter().chain(theirs), &format!("{count} rows"));
    Ok(())
}

fn means(bench: &mut Bench, line: &str, path: &Path, condition: &str) -> Outcome {
    let store = hyperslab::open(path)?;
    let table = store.table("/")?;
    let parsed: RowCondition = condition.parse()?;
    let ours = timed(OURS, || {
        let query = TableQuery::new([Aggregation::of(Operation::Mean, "score")]).by(["type"]);
        black_box(query.filter(parsed.clone()).run(&table)?.collect()?);
        Ok(())
    })?;
    let theirs =
        timed_in(bench, SCRIPT, "tiledb-py and pandas", "means", [path.as_os_str(), condition.as_ref()])?;
    bench.line(line, [ours].into_iter().chain(theirs), "");
    Ok(())
}
