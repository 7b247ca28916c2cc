//! `tet info`: lists the contents of a file.

mod more;

use std::io::{self, Write};
use std::ops::ControlFlow;

use hyperslab::driver::{Array, ChunkRef, element_to_text};
use hyperslab::{ArraySchema, Attribute, Catalog, CatalogNode, ChunkCoord, Error, Node, OpenStore, Result};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use crate::args::InfoArgs;
use crate::{Answer, output, paint, pretty};

/// Longer attributes are truncated in the listing; JSON has them complete.
const LONGEST_ATTRIBUTE: usize = 72;

/// Enough for `days since 2000-01-01 00:00:00`.
const LONGEST_UNITS: usize = 34;

pub(crate) fn run(args: &InfoArgs) -> Result<Answer> {
    let store = match super::open(&args.open) {
        // A folder of stores is not a store.
        Err(Error::Invalid(why)) if args.open.path.is_dir() && args.node.is_none() => {
            return more::folder(&args.open.path, args.json, Error::Invalid(why));
        }
        store => store?,
    };
    let mut catalog = store.catalog()?;
    if let Some(node) = &args.node {
        catalog.restrict(node)?;
    }
    // NetCDF-4 files are HDF5 files, which is not what their users call them.
    let form = match store.inner().variant() {
        Some("netcdf4") => format!("netcdf4 ({})", catalog.format),
        _ => catalog.format.to_owned(),
    };
    if args.totals {
        if args.json {
            let groups = more::totals_json(&catalog);
            output::print_json(&json!({ "path": catalog.path, "format": catalog.format, "groups": groups }))?;
        } else {
            output::print(|out| head(&catalog, &form, out).and_then(|()| more::totals(&catalog, out)))?;
        }
        return Ok(Answer::Yes);
    }
    if let Some(levels) = args.depth {
        catalog.limit_depth(levels);
    }
    if args.cdl {
        let text = catalog.to_cdl()?;
        output::print(|out| out.write_all(text.as_bytes()))?;
        return Ok(Answer::Yes);
    }
    if args.tree {
        output::print(|out| head(&catalog, &form, out).and_then(|()| writeln!(out, "{}", catalog.tree())))?;
        return Ok(Answer::Yes);
    }
    if let Some(order) = &args.sort {
        catalog.sort(order.parse()?);
    }
    let chunks = (args.chunks || args.all).then_some(if args.n == 0 { u64::MAX } else { args.n });
    if args.json {
        output::print_json(&Document::new(&store, &catalog, chunks, args.all)?)?;
    } else {
        let details = if args.all { store.inner().details()? } else { serde_json::Map::new() };
        output::print(|out| {
            head(&catalog, &form, out)?;
            for (title, detail) in details.iter().filter(|(title, _)| *title != "history") {
                section(title, detail, out)?;
            }
            more::dimensions(&catalog, out)?;
            more::coordinates(&catalog, out)?;
            nodes(&catalog, args.all, out)?;
            more::parts(&catalog, out)?;
            attributes(&catalog, args.all, out)?;
            Ok(())
        })?;
        if let Some(most) = chunks {
            chunk_tables(&catalog, most)?;
        }
        if let Some(history) = details.get("history") {
            output::print(|out| section("history", history, out))?;
        }
    }
    Ok(Answer::Yes)
}

/// The document of `--json`. Its nodes are created one at a time while they are written, because together they need several times
/// the memory of the catalog.
struct Document<'a> {
    catalog: &'a Catalog,
    /// The maximum number of chunks shown of each array; `None` for no list of chunks.
    chunks: Option<u64>,
    details: Map<String, Value>,
}

impl<'a> Document<'a> {
    fn new(store: &OpenStore, catalog: &'a Catalog, chunks: Option<u64>, all: bool) -> Result<Self> {
        // A bare fragment index has only fragments to show.
        let all = all
            || !catalog
                .nodes
                .iter()
                .any(|node| matches!(node.node, Ok(Node::Array(_) | Node::Table(_) | Node::Geometry(_))));
        let details = if all { store.inner().details()? } else { Map::new() };
        Ok(Self { catalog, chunks, details })
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_map(None)?;
        document.serialize_entry("path", &self.catalog.path)?;
        document.serialize_entry("format", &self.catalog.format)?;
        document.serialize_entry("nodes", &Nodes(self))?;
        for (title, detail) in &self.details {
            document.serialize_entry(title, detail)?;
        }
        document.end()
    }
}

/// The nodes of a document.
struct Nodes<'a>(&'a Document<'a>);

impl Serialize for Nodes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let Document { catalog, chunks, .. } = self.0;
        serializer.collect_seq(catalog.nodes.iter().map(|node| node_json(node, *chunks)))
    }
}

fn node_json(node: &CatalogNode, chunks: Option<u64>) -> Value {
    let mut shown = node.to_json();
    if let (Some(most), Ok(Node::Array(array))) = (chunks, &node.node) {
        let mut rows = Vec::new();
        let walked = first_chunks(&**array, most, &mut |coord, reference| {
            rows.push(chunk_json(&coord, &reference));
            Ok(())
        });
        shown["chunks"] = rows.into();
        if let Err(error) = walked {
            shown["error"] = error.to_string().into();
        }
    }
    shown
}

fn chunk_json(coord: &ChunkCoord, reference: &ChunkRef) -> Value {
    let spans: Vec<_> = reference
        .spans()
        .map(|span| match &span.blob {
            hyperslab::driver::BlobKey::Main => json!({ "offset": span.offset, "length": span.length }),
            hyperslab::driver::BlobKey::Named(name) => {
                json!({ "blob": &**name, "offset": span.offset, "length": span.length })
            }
        })
        .collect();
    let mut row = json!({ "coord": coord.as_slice(), "stored_bytes": reference.stored_bytes() });
    let mask = reference.layers.first().map_or(0, |layer| layer.filter_mask);
    row["filter_mask"] = mask.into();
    if let ([span], 1) = (spans.as_slice(), reference.layers.len()) {
        row["offset"] = span["offset"].clone();
        if let Some(blob) = span.get("blob") {
            row["blob"] = blob.clone();
        }
    } else {
        row["layers"] = reference
            .layers
            .iter()
            .map(|layer| {
                let spans: Vec<_> = layer
                    .spans
                    .iter()
                    .map(|span| json!({ "blob": span.blob.to_string(), "offset": span.offset, "length": span.length }))
                    .collect();
                let region = layer.region.as_ref();
                json!({
                    "spans": spans,
                    "start": region.map(|region| region.start.to_vec()),
                    "shape": region.map(|region| region.shape.to_vec()),
                })
            })
            .collect();
    }
    row
}

/// Visits at most `most` chunks.
fn first_chunks(
    array: &dyn Array,
    most: u64,
    visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<()>,
) -> Result<()> {
    let mut left = most;
    if left == 0 {
        return Ok(());
    }
    array.visit_chunks(&mut |coord, reference| {
        visit(coord, reference)?;
        left -= 1;
        Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })
}

fn head(catalog: &Catalog, form: &str, out: &mut dyn Write) -> io::Result<()> {
    let count = |kind: &dyn Fn(&Node) -> bool| {
        let is_own = |node: &&CatalogNode| node.alias.is_none() && node.node.as_ref().is_ok_and(kind);
        catalog.nodes.iter().filter(is_own).count()
    };
    let mut facts = vec![form.to_owned()];
    let mut add_count = |count: usize, one: &str, many: &str| match count {
        0 => {}
        1 => facts.push(format!("1 {one}")),
        several => facts.push(format!("{several} {many}")),
    };
    // A dimension without an array of its name is no array, although some formats store it as one.
    let is_array = |node: &Node| matches!(node, Node::Array(array) if !array.schema().is_dimension);
    add_count(count(&is_array), "array", "arrays");
    add_count(count(&|node| matches!(node, Node::Table(_))), "table", "tables");
    add_count(count(&|node| matches!(node, Node::Geometry(_))), "geometry", "geometries");
    let links =
        catalog.nodes.iter().filter(|node| node.alias.is_some() || matches!(node.node, Ok(Node::Link(_))));
    add_count(links.count(), "link", "links");
    let failed = |unsupported: bool| {
        let of_kind = |node: &&CatalogNode| {
            node.node.as_ref().is_err_and(|error| error.is_unsupported() == unsupported)
        };
        catalog.nodes.iter().filter(of_kind).count()
    };
    add_count(failed(true), "unsupported node", "unsupported nodes");
    add_count(failed(false), "damaged node", "damaged nodes");
    let (mut whole, mut stored) = (0_u64, 0_u64);
    for node in catalog.nodes.iter().filter(|node| node.alias.is_none()) {
        if let (Ok(Node::Array(array)), Some(Ok(usage))) = (&node.node, &node.usage) {
            whole = whole.saturating_add(array.schema().bytes().unwrap_or(0));
            stored = stored.saturating_add(usage.bytes);
        }
    }
    if whole > 0 {
        facts.push(format!("{} in {} stored", pretty::bytes(whole), pretty::bytes(stored)));
    }
    writeln!(out, "{}  {}\n", paint::strong(&catalog.path), paint::dim(facts.join(" · ")))
}

fn nodes(catalog: &Catalog, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut table =
        pretty::Table::new(&["node", "type", "shape", "chunks", "filters", ">stored", ">ratio", "units"]);
    // Arrays that only declare a dimension are the format's bookkeeping.
    for node in catalog.nodes.iter().filter(|node| all || !node.is_dimension()) {
        table.row(node_row(node));
    }
    table.write(out)
}

fn node_row(node: &CatalogNode) -> Vec<String> {
    let facts = node.facts();
    let (stored, ratio) = match (&node.node, &node.usage) {
        // Its bytes are listed at the object's own path.
        _ if node.alias.is_some() => (String::new(), String::new()),
        (Ok(Node::Array(array)), Some(Ok(usage))) => {
            (pretty::bytes(usage.bytes), ratio(array.schema(), usage.bytes))
        }
        (_, Some(Err(error))) if error.is_unsupported() => ("unknown".into(), String::new()),
        (_, Some(Err(_))) => ("damaged".into(), String::new()),
        _ => (String::new(), String::new()),
    };
    vec![node.title(), facts.kind, facts.shape, facts.chunks, facts.filters, stored, ratio, units(node)]
}

/// The units of an array; empty if it has none.
fn units(node: &CatalogNode) -> String {
    let Ok(Node::Array(array)) = &node.node else { return String::new() };
    let units = array.schema().attributes.get("units").and_then(Attribute::as_text).unwrap_or_default();
    shortened(&units, LONGEST_UNITS)
}

/// A text in one line of at most this many characters.
fn shortened(text: &str, most: usize) -> String {
    let mut short: String = text.replace('\n', " ").chars().take(most).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn ratio(schema: &ArraySchema, stored: u64) -> String {
    match schema.bytes() {
        Some(bytes) if stored > 0 && bytes > 0 && !schema.filters.is_empty() => {
            format!("{:.1}×", bytes as f64 / stored as f64)
        }
        _ => String::new(),
    }
}

fn attributes(catalog: &Catalog, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let own = catalog.nodes.iter().filter(|node| node.alias.is_none());
    for node in own.filter(|node| all || !node.is_dimension()) {
        let attributes = match node.attributes() {
            Some(attributes) if all => attributes.iter().collect(),
            _ => node.user_attributes(),
        };
        if attributes.is_empty() {
            continue;
        }
        writeln!(out, "\n  {}", paint::strong(&node.path))?;
        for (name, value) in attributes {
            let short = shortened(&attribute_text(value), LONGEST_ATTRIBUTE);
            writeln!(out, "    {} {short}", paint::dim(format!("{name}:")))?;
        }
    }
    Ok(())
}

/// An attribute in readable form: `-9e33`, not the nearest `float64` of a `float32`; a single value without brackets.
pub(super) fn attribute_text(attribute: &Attribute) -> String {
    match attribute {
        Attribute::Values(values) if values.len() == 1 => element_to_text(&values.dtype, &values.elements, 0),
        Attribute::Values(values) if values.shape.len() == 1 && values.dtype.size().is_some() => {
            let count = values.len().min(LONGEST_ATTRIBUTE);
            let items = (0..count).map(|index| element_to_text(&values.dtype, &values.elements, index));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        other => match other.to_json() {
            Value::String(text) => text,
            other => other.to_string(),
        },
    }
}

fn chunk_tables(catalog: &Catalog, most: u64) -> Result<()> {
    for node in &catalog.nodes {
        let Ok(Node::Array(array)) = &node.node else { continue };
        let mut table =
            pretty::Table::new(&["chunk", "blob", ">offset", ">stored", ">raw", "mask", ">layers"]);
        let walked = first_chunks(&**array, most, &mut |coord, reference| {
            table.row(chunk_row(array.schema(), &coord, &reference));
            Ok(())
        });
        let stored =
            node.usage.as_ref().and_then(|usage| usage.as_ref().ok()).map_or(0, |usage| usage.chunks);
        output::print(|out| {
            let index = &array.schema().chunk_index;
            writeln!(
                out,
                "\n  {}  {}",
                paint::strong(&node.path),
                paint::dim(format!("{index}, {}", pretty::counted(stored, "chunk")))
            )?;
            table.write(out)?;
            if stored > most {
                writeln!(out, "  {}", paint::dim(format!("… {} more; -n 0 shows all", stored - most)))?;
            }
            Ok(())
        })?;
        walked?;
    }
    Ok(())
}

fn chunk_row(schema: &ArraySchema, coord: &ChunkCoord, reference: &ChunkRef) -> Vec<String> {
    let place = coord.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let first = reference.spans().next();
    let blob = first.map(|span| span.blob.to_string()).filter(|blob| blob != "-").unwrap_or_default();
    let mask = reference.layers.first().map_or(0, |layer| layer.filter_mask);
    vec![
        format!("({place})"),
        blob,
        first.map(|span| span.offset.to_string()).unwrap_or_default(),
        reference.stored_bytes().to_string(),
        schema.decoded_bytes(coord).map(|bytes| bytes.to_string()).unwrap_or_default(),
        if mask == 0 { String::new() } else { format!("{mask:#x}") },
        if reference.layers.len() > 1 { reference.layers.len().to_string() } else { String::new() },
    ]
}

/// A detail of the format: an object as lines, a list as rows.
fn section(title: &str, detail: &Value, out: &mut dyn Write) -> io::Result<()> {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    writeln!(out, "  {}", paint::strong(title))?;
    match detail {
        Value::Object(entries) => {
            for (name, value) in entries {
                writeln!(out, "    {} {}", paint::dim(format!("{name}:")), plain(value))?;
            }
        }
        Value::Array(rows) => {
            for row in rows {
                match row {
                    Value::Object(entries) => {
                        let entries: Vec<_> =
                            entries.iter().map(|(name, value)| format!("{name} {}", plain(value))).collect();
                        writeln!(out, "    {}", entries.join(" · "))?;
                    }
                    other => writeln!(out, "    {}", plain(other))?,
                }
            }
        }
        other => writeln!(out, "    {}", plain(other))?,
    }
    writeln!(out)
}
