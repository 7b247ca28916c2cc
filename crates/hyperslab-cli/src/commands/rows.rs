//! Prints rows: to a file, as JSON, or as a readable table.

use std::collections::VecDeque;
use std::path::Path;

use hyperslab::driver::element_to_text;
use hyperslab::rows::{self, Rows};
use hyperslab::{Batch, Column, DType, Result, RowCondition};

use crate::args::OpenOptionsArgs;
use crate::{output, paint, pretty};

/// Rows shown at each end of a long table.
const EDGE: usize = 10;
/// Cells are truncated at this width.
const WIDTH: usize = 40;

/// The destination of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) output: Option<&'a Path>,
    pub(super) force: bool,
    /// The options for an output at a URL.
    pub(super) open: &'a OpenOptionsArgs,
    pub(super) json: bool,
    pub(super) full: bool,
}

/// Conditions on rows, all of which must hold.
pub(super) fn condition(texts: &[String]) -> Result<Option<RowCondition>> {
    let mut all: Option<RowCondition> = None;
    for text in texts {
        let one: RowCondition = text.parse()?;
        all = Some(match all {
            Some(own) => own.and(one),
            None => one,
        });
    }
    Ok(all)
}

/// Writes rows to their destination.
pub(super) fn put(rows: Rows<'_>, target: Target<'_>) -> Result<()> {
    match target.output {
        Some(path) => {
            super::write_at(path, target.force, target.open, |path, force| rows::write(rows, path, force))
        }
        None if target.json => output::print_through(|out| rows::write_json(rows, out)),
        None => show(rows, target.full),
    }
}

/// Shows the first and last rows, or all of them. Other rows are not kept in memory.
pub(super) fn show(rows: Rows<'_>, full: bool) -> Result<()> {
    let Rows { columns, batches } = rows;
    let (mut head, mut tail, mut count, mut kept) = (Vec::new(), VecDeque::new(), 0, 0);
    for batch in batches {
        let batch = batch?;
        for row in 0..batch.rows {
            if !full && head.len() > 2 * EDGE {
                break;
            }
            head.push(cells(&columns, &batch, row));
        }
        count += batch.rows;
        kept += batch.rows;
        tail.push_back(batch);
        while tail.front().is_some_and(|first: &Batch| kept - first.rows >= EDGE) {
            kept -= tail.pop_front().map_or(0, |first| first.rows);
        }
    }
    if !full && count > 2 * EDGE + 1 {
        head.truncate(EDGE);
        head.push(columns.iter().map(|_| "…".to_owned()).collect());
        let last = tail.iter().flat_map(|batch| (0..batch.rows).map(move |row| (batch, row)));
        head.extend(last.skip(kept - EDGE).map(|(batch, row)| cells(&columns, batch, row)));
    }
    let headings: Vec<String> = columns.iter().map(heading).collect();
    let mut table =
        pretty::Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>()).with_empty_columns();
    head.into_iter().for_each(|row| table.row(row));
    output::print(|out| {
        table.write(out)?;
        let rows = pretty::counted(count as u64, "row");
        let columns = pretty::counted(columns.len() as u64, "column");
        writeln!(out, "{}", paint::dim(format!("{rows} × {columns}")))
    })
}

fn heading(column: &Column) -> String {
    let right = column.dtype.is_numeric() || matches!(column.dtype, DType::Bool);
    format!("{}{}", if right { ">" } else { "" }, column.name)
}

fn cells(columns: &[Column], batch: &Batch, row: usize) -> Vec<String> {
    let cell = |(column, elements): (&Column, &hyperslab::Elements)| {
        let text = element_to_text(&column.dtype, elements, row).replace(['\n', '\r', '\t'], " ");
        match text.char_indices().nth(WIDTH) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    };
    columns.iter().zip(&batch.columns).map(cell).collect()
}
