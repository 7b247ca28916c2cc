//! Joins, extends and edits stores.

use std::path::PathBuf;

use hyperslab::combine::{AppendOptions, CombineOptions};
use hyperslab::convert::ConvertOptions;
use hyperslab::edit::{Edit, EditOptions};
use hyperslab::fragments::{FieldChange, FieldSpec, change_fields, field_fill, parse_field};
use hyperslab::{Filter, OpenOptions, combine, edit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::errors::raised;
use crate::write::{attributes_of, format_of};
use crate::{threads, values};

/// Joins stores along a dimension.
#[pyfunction]
#[pyo3(signature = (sources, target, dim, *, format=None, chunks=None, overwrite=false, attributes="first"))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn concat<'py>(
    py: Python<'py>,
    sources: Vec<PathBuf>,
    target: PathBuf,
    dim: String,
    format: Option<&str>,
    chunks: Option<Vec<(String, u64)>>,
    overwrite: bool,
    attributes: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let (format, variant) = format_of(py, &target, format)?;
    let attributes = attributes.parse().map_err(|error| raised(py, &error))?;
    let combining = CombineOptions::default().with_open(OpenOptions::default()).with_attributes(attributes);
    let options = ConvertOptions::default()
        .with_chunk_extents(chunks.unwrap_or_default())
        .with_replace(overwrite)
        .with_variant(variant);
    let report = threads::within_stoppable(py, None, |progress| {
        let sources = combine::expand(&sources)?;
        combine::concat(&sources, &dim, (&target, format), &combining, &options, progress)
    })?;
    values::from_json(
        py,
        &json!({ "arrays": report.arrays, "bytes": report.bytes, "notes": report.notes(), "losses": report.losses }),
    )
}

/// Appends stores to another along a dimension.
#[pyfunction]
#[pyo3(signature = (sources, target, dim, *, dry_run=false))]
pub(crate) fn append_along<'py>(
    py: Python<'py>,
    sources: Vec<PathBuf>,
    target: PathBuf,
    dim: String,
    dry_run: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let options = AppendOptions::default().with_dry_run(dry_run);
    let report = threads::within_stoppable(py, None, |progress| {
        let sources = combine::expand(&sources)?;
        combine::append_along(&target, &sources, &dim, &options, progress)
    })?;
    let notes: Vec<String> = report.notes.iter().map(|(node, note)| format!("{node}: {note}")).collect();
    values::from_json(
        py,
        &json!({
            "arrays": report.arrays, "bytes": report.bytes, "before": report.before, "after": report.after,
            "notes": notes,
        }),
    )
}

/// Applies changes to a store: sets and deletes attributes, renames and removes nodes.
#[pyfunction]
#[pyo3(signature = (path, *, node="/", set=None, delete=None, rename=None, remove=None, dry_run=false))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn edit_store<'py>(
    py: Python<'py>,
    path: PathBuf,
    node: &str,
    set: Option<&Bound<'py, PyDict>>,
    delete: Option<Vec<String>>,
    rename: Option<Vec<(String, String)>>,
    remove: Option<Vec<String>>,
    dry_run: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut edits = Vec::new();
    for (name, value) in attributes_of(py, set)?.iter() {
        edits.push(Edit::SetAttribute { node: node.to_owned(), name: name.to_owned(), value: value.clone() });
    }
    let delete = delete.unwrap_or_default().into_iter();
    edits.extend(delete.map(|name| Edit::DeleteAttribute { node: node.to_owned(), name }));
    edits.extend(rename.unwrap_or_default().into_iter().map(|(from, to)| Edit::Rename { from, to }));
    edits.extend(remove.unwrap_or_default().into_iter().map(|node| Edit::Remove { node }));
    let options = EditOptions::default().with_dry_run(dry_run);
    let report =
        threads::within_stoppable(py, None, |progress| edit::edit(&path, &edits, &options, progress))?;
    let changes: Vec<_> =
        report.changes.iter().map(|(node, what)| json!({ "node": node, "change": what })).collect();
    values::from_json(
        py,
        &json!({ "changes": changes, "in_place": report.in_place, "applied": report.applied }),
    )
}

/// Adds fields to an array or a table, and drops others.
#[pyfunction]
#[pyo3(signature = (path, node="/", *, add=None, drop=None, fill=None, filters="zstd:3", dry_run=false))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn evolve(
    py: Python<'_>,
    path: PathBuf,
    node: &str,
    add: Option<Vec<(String, String)>>,
    drop: Option<Vec<String>>,
    fill: Option<Vec<(String, String)>>,
    filters: &str,
    dry_run: bool,
) -> PyResult<()> {
    let fills = fill.unwrap_or_default();
    let change = || -> hyperslab::Result<()> {
        let filters = Filter::parse_list(filters)?;
        let mut changes: Vec<FieldChange> =
            drop.unwrap_or_default().into_iter().map(FieldChange::Drop).collect();
        for (name, kind) in add.unwrap_or_default() {
            let field = parse_field(&format!("{name}:{kind}"))?;
            let given = fills.iter().find(|(own, _)| *own == name);
            let fill = given.map(|(_, text)| field_fill(text, &field.dtype)).transpose()?;
            let fill = fill.or(field.fill);
            changes.push(FieldChange::Add(FieldSpec { name, filters: filters.clone(), fill, ..field }));
        }
        change_fields(&path, node, &changes, &OpenOptions::default(), dry_run)
    };
    threads::within(py, None, change)
}
