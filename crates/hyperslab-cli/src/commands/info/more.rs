//! Further output of `tet info`: dimensions, columns, levels, totals, and the stores of a folder.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use hyperslab::{Catalog, Error, Node, Result, stores_in};
use serde_json::{Value, json};

use crate::{Answer, output, paint, pretty};

/// Lists the stores in a folder that is not a store itself. Fails with `why` if there are none.
pub(super) fn folder(path: &Path, as_json: bool, why: Error) -> Result<Answer> {
    let stores = stores_in(path)?;
    if stores.is_empty() {
        return Err(why);
    }
    if as_json {
        let stores: Vec<Value> = stores
            .iter()
            .map(|(path, format)| json!({ "path": path.display().to_string(), "format": format.name() }))
            .collect();
        output::print_json(&json!({ "path": path.display().to_string(), "stores": stores }))?;
        return Ok(Answer::Yes);
    }
    output::print(|out| {
        let count = if stores.len() == 1 { "1 store".to_owned() } else { format!("{} stores", stores.len()) };
        writeln!(out, "{}  {}\n", paint::strong(path.display()), paint::dim(format!("folder · {count}")))?;
        let mut table = pretty::Table::new(&["store", "format"]);
        for (path, format) in &stores {
            table.row(vec![path.display().to_string(), format.name().to_owned()]);
        }
        table.write(out)
    })?;
    Ok(Answer::Yes)
}

/// Dimensions in one line, as in NetCDF tools.
pub(super) fn dimensions(catalog: &Catalog, out: &mut dyn Write) -> io::Result<()> {
    let dimensions = catalog.dimensions();
    if dimensions.is_empty() {
        return Ok(());
    }
    let name = |own: &hyperslab::CatalogDimension| own.path.rsplit('/').next().unwrap_or_default().to_owned();
    // Of each name, the first dimension, and whether there are others and all are like it.
    let mut by_name: HashMap<String, ((u64, bool), bool)> = HashMap::new();
    for own in &dimensions {
        let like = (own.length, own.unlimited);
        match by_name.entry(name(own)) {
            Entry::Vacant(vacant) => {
                vacant.insert((like, false));
            }
            Entry::Occupied(mut first) => first.get_mut().1 = true,
        }
    }
    for own in &dimensions {
        if let Some((first, shared)) = by_name.get_mut(&name(own)) {
            *shared &= *first == (own.length, own.unlimited);
        }
    }
    let (mut all, mut seen) = (Vec::new(), HashSet::new());
    for own in &dimensions {
        // Arrays without shared dimensions often declare dimensions of the same name and length. Show those once.
        let shared = by_name.get(&name(own)).is_some_and(|(_, shared)| *shared);
        let is_of_root = own.path.strip_prefix('/').is_some_and(|name| !name.contains('/'));
        let shown = if shared || is_of_root { name(own) } else { own.path.clone() };
        let unlimited = if own.unlimited { " (unlimited)" } else { "" };
        let text = format!("{shown} {}{unlimited}", own.length);
        if seen.insert(text.clone()) {
            all.push(text);
        }
    }
    writeln!(out, "  {} {}\n", paint::dim("dimensions:"), all.join(", "))
}

/// The coordinate variables of the dimensions in one line.
pub(super) fn coordinates(catalog: &Catalog, out: &mut dyn Write) -> io::Result<()> {
    let is_coordinate = |node: &&hyperslab::CatalogNode| {
        let Ok(Node::Array(array)) = &node.node else { return false };
        let schema = array.schema();
        let name = node.path.rsplit('/').next();
        !node.is_dimension()
            && schema.shape().len() == 1
            && schema.dimensions.first().is_some_and(|own| own.as_deref() == name)
    };
    let all: Vec<&str> =
        catalog.nodes.iter().filter(is_coordinate).map(|node| node.path.trim_start_matches('/')).collect();
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "  {} {}\n", paint::dim("coordinates:"), all.join(", "))
}

/// The columns of tables, and the levels and bounds of geometries.
pub(super) fn parts(catalog: &Catalog, out: &mut dyn Write) -> io::Result<()> {
    for node in &catalog.nodes {
        match &node.node {
            Ok(Node::Table(table)) => {
                writeln!(out, "\n  {}", paint::strong(format!("{} columns", node.path)))?;
                let mut columns = pretty::Table::new(&["column", "type", "role", "filters"]);
                for column in &table.schema().columns {
                    let role = match (column.dimension, column.nullable) {
                        (true, _) => "dimension",
                        (_, true) => "nullable",
                        _ => "",
                    };
                    let filters: Vec<String> = column.filters.iter().map(hyperslab::Filter::short).collect();
                    columns.row(vec![
                        column.name.clone(),
                        column.dtype.to_string(),
                        role.to_owned(),
                        filters.join(" "),
                    ]);
                }
                columns.write(out)?;
            }
            Ok(Node::Geometry(geometry)) => {
                let schema = geometry.schema();
                if let Some([low, high]) = &schema.bounds {
                    let names = schema.axes.iter().map(String::as_str).chain(std::iter::repeat("axis"));
                    let bounds: Vec<String> = low
                        .iter()
                        .zip(high)
                        .zip(names)
                        .map(|((low, high), name)| format!("{name} {low}..{high}"))
                        .collect();
                    writeln!(out, "\n  {} {}", paint::dim("bounds:"), bounds.join(", "))?;
                }
                let Ok(levels) = geometry.levels() else { continue };
                let mut table = pretty::Table::new(&["level", ">vertices", ">links", ">objects"]);
                for level in levels {
                    let number =
                        |value: Value| if value.is_null() { String::new() } else { value.to_string() };
                    table.row(vec![
                        level.path.clone(),
                        number(json!(level.vertices)),
                        number(json!(level.links)),
                        number(json!(level.objects)),
                    ]);
                }
                writeln!(out)?;
                table.write(out)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Totals by group.
pub(super) fn totals(catalog: &Catalog, out: &mut dyn Write) -> io::Result<()> {
    let mut table = pretty::Table::new(&["group", ">arrays", ">size", ">stored"]);
    for (path, total) in catalog.totals() {
        table.row(vec![
            path,
            total.arrays.to_string(),
            pretty::bytes(total.size),
            pretty::bytes(total.stored.bytes),
        ]);
    }
    table.write(out)
}

/// Totals by group, as JSON.
pub(super) fn totals_json(catalog: &Catalog) -> Value {
    let one = |(path, total): (String, hyperslab::Total)| {
        json!({
            "path": path, "arrays": total.arrays, "bytes": total.size, "stored_bytes": total.stored.bytes,
            "chunks_stored": total.stored.chunks,
        })
    };
    catalog.totals().into_iter().map(one).collect()
}
