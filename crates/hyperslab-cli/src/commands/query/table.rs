//! Queries of tables: aggregations of columns, by group.

use hyperslab::table::{Aggregation, TableQuery};
use hyperslab::{ArraySchema, DType, Error, Result, Scan, Selection, TableReader};

use crate::args::QueryArgs;
use crate::commands::rows::{self, Target};
use crate::{output, paint, pretty};

pub(super) fn run(args: &QueryArgs, table: &TableReader, selection: Selection) -> Result<()> {
    refuse_array_options(args)?;
    let mut aggregations = Vec::new();
    for (operation, columns) in super::operations(&args.operations)? {
        let columns = if columns.is_empty() { args.over.clone() } else { columns };
        if columns.is_empty() {
            aggregations.push(Aggregation { operation, column: None });
        }
        aggregations.extend(columns.into_iter().map(|column| Aggregation::of(operation, column)));
    }
    let query = TableQuery {
        selection,
        condition: rows::condition(&args.conditions)?,
        by: args.by.clone(),
        aggregations,
        memory: args.memory.as_deref().map(pretty::parse_bytes).transpose()?,
    };
    let target = Target {
        output: args.output.as_deref(),
        force: args.force,
        open: &args.open,
        json: args.json,
        full: args.full,
    };
    let (found, missing) = query.run_counted(table, &Scan::default())?;
    rows::put(found, target)?;
    let missing = missing.iter().filter(|column| column.missing > 0);
    let parts: Vec<String> = missing
        .map(|column| {
            let (missing, rows) = (pretty::count(column.missing), pretty::count(column.rows));
            format!("{}: {missing} of {rows} rows missing", column.column)
        })
        .collect();
    if parts.is_empty() || args.json {
        return Ok(());
    }
    output::report(|err| writeln!(err, "{}", paint::dim(parts.join("; "))))
}

/// Whether a query of an array of structs is about its members, as columns of a table.
pub(super) fn is_of_columns(args: &QueryArgs, schema: &ArraySchema) -> bool {
    let names_columns = args.operations.reductions.0.iter().any(|(_, names)| !names.is_empty());
    matches!(schema.dtype, DType::Struct(_))
        && (names_columns || !args.over.is_empty() || !args.by.is_empty() || !args.conditions.is_empty())
}

fn refuse_array_options(args: &QueryArgs) -> Result<()> {
    let given = [
        ("--label", !args.label.is_empty()),
        ("--group-by", !args.group_by.is_empty()),
        ("--group-by-label", !args.group_by_label.is_empty()),
        ("--bins", args.bins.is_some()),
        ("--rolling", args.rolling.is_some()),
        ("--covariance", args.operations.covariance.is_some()),
        ("--correlation", args.operations.correlation.is_some()),
        ("--histogram", args.operations.histogram.is_some()),
        ("--explain", args.explain),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Error::invalid(format!(
            "{option} only applies to arrays; for a table, use --where, --by and columns"
        ))),
        None => Ok(()),
    }
}
