//! Chooses the columns of a table, or the vertex attributes of a geometry, and their names.

use std::sync::Arc;

use hyperslab_core::{
    Batches, Depth, Error, Geometry, GeometryData, GeometryLevel, GeometryQuery, GeometrySchema, Node,
    Report, Result, RowFilter, Scan, Store, Table, TableSchema, Values, did_you_mean, normal_path,
};

use super::super::ConvertOptions;
use crate::OpenStore;
use crate::rows::no_column;

/// The source with the columns of its only or chosen node renamed and left out, and the options for its other nodes. `None` if
/// the node has no columns, or the options name none of them.
pub(super) fn view(
    source: &OpenStore,
    options: &ConvertOptions,
) -> Result<Option<(OpenStore, ConvertOptions)>> {
    // Without an only node, the names are those of nodes.
    let node = options.node.clone().or_else(|| source.only_node().ok());
    let Some(path) = node.map(|node| normal_path(&node)) else { return Ok(None) };
    // The root is no candidate for another name, so that all names are those of columns.
    let is_node = |name: &str| path != "/" && source.node(name).is_ok();
    let (choice, left) = Choice::taken(options, is_node);
    if choice.is_empty() {
        return Ok(None);
    }
    let node = match source.find(&path)? {
        Node::Table(table) => Chosen::Table(Arc::new(ChosenTable::new(table, &choice)?)),
        Node::Geometry(inner) => Chosen::Geometry(Arc::new(ChosenGeometry { inner, choice })),
        _ => return Ok(None),
    };
    let view = ChosenStore { inner: Arc::clone(source.inner()), path, node };
    Ok(Some((OpenStore::from_store(Arc::new(view), source.path()), left)))
}

/// Columns to keep, to leave out and to rename.
#[derive(Debug, Clone)]
struct Choice {
    keep: Vec<String>,
    drop: Vec<String>,
    rename: Vec<(String, String)>,
}

impl Choice {
    /// Splits the options into those for columns and those for nodes.
    fn taken(options: &ConvertOptions, is_node: impl Fn(&str) -> bool) -> (Self, ConvertOptions) {
        let split = |names: &[String]| names.iter().cloned().partition(|name| is_node(name));
        let (keep_nodes, keep) = split(&options.keep);
        let (drop_nodes, drop) = split(&options.drop);
        let (rename_nodes, rename) = options.rename.iter().cloned().partition(|(from, _)| is_node(from));
        let left = ConvertOptions {
            keep: keep_nodes,
            drop: drop_nodes,
            rename: rename_nodes,
            keep_bookkeeping: false,
            ..options.clone()
        };
        (Self { keep, drop, rename }, left)
    }

    fn is_empty(&self) -> bool {
        self.keep.is_empty() && self.drop.is_empty() && self.rename.is_empty()
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.keep.iter().chain(&self.drop).chain(self.rename.iter().map(|(from, _)| from))
    }

    fn has(&self, name: &str) -> bool {
        let is_kept = self.keep.is_empty() || self.keep.iter().any(|own| own == name);
        is_kept && !self.drop.iter().any(|own| own == name)
    }

    fn name_of<'a>(&'a self, name: &'a str) -> &'a str {
        self.rename.iter().find(|(from, _)| from == name).map_or(name, |(_, to)| to)
    }

    /// Checks that no two of these names are equal.
    fn check_unique<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
        for (at, name) in names.clone().enumerate() {
            if names.clone().take(at).any(|before| before == name) {
                return Err(Error::invalid(format!("two columns would have the name {name}")));
            }
        }
        Ok(())
    }
}

/// A store with one table or geometry changed.
#[derive(Debug)]
struct ChosenStore {
    inner: Arc<dyn Store>,
    path: String,
    node: Chosen,
}

#[derive(Debug)]
enum Chosen {
    Table(Arc<ChosenTable>),
    Geometry(Arc<ChosenGeometry>),
}

impl Store for ChosenStore {
    fn format(&self) -> &'static str {
        self.inner.format()
    }

    fn variant(&self) -> Option<&'static str> {
        self.inner.variant()
    }

    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        self.inner.children(path)
    }

    fn node(&self, path: &str) -> Result<Node> {
        Ok(match &self.node {
            _ if path != self.path => self.inner.node(path)?,
            Chosen::Table(table) => Node::Table(Arc::clone(table) as Arc<dyn Table>),
            Chosen::Geometry(geometry) => Node::Geometry(Arc::clone(geometry) as Arc<dyn Geometry>),
        })
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        self.inner.verify(depth, report)
    }
}

/// A table with some of its columns, under other names.
#[derive(Debug)]
struct ChosenTable {
    inner: Arc<dyn Table>,
    schema: TableSchema,
    /// The names of the columns in the inner table.
    names: Vec<String>,
}

impl ChosenTable {
    fn new(inner: Arc<dyn Table>, choice: &Choice) -> Result<Self> {
        let mut schema = inner.schema().clone();
        let all = std::mem::take(&mut schema.columns);
        if let Some(unknown) = choice.names().find(|name| all.iter().all(|column| column.name != **name)) {
            return Err(no_column(unknown, &all));
        }
        // Dimensions are the coordinates of a column, and are kept with it.
        let is_kept = |name: &str, dimension: bool| {
            choice.has(name) || dimension && !choice.drop.iter().any(|own| own == name)
        };
        let rank = all.iter().filter(|column| column.dimension).count();
        let (mut names, mut kept_rank) = (Vec::new(), 0);
        for mut column in all.into_iter().filter(|column| is_kept(&column.name, column.dimension)) {
            kept_rank += usize::from(column.dimension);
            names.push(column.name.clone());
            column.name = choice.name_of(&column.name).to_owned();
            schema.columns.push(column);
        }
        Choice::check_unique(schema.columns.iter().map(|column| column.name.as_str()))?;
        if schema.columns.is_empty() {
            return Err(Error::invalid("no column is left"));
        }
        schema.stored.encoded = None;
        if kept_rank < rank {
            (schema.stored.domains, schema.stored.extents) = (Vec::new(), Vec::new());
        }
        Ok(Self { inner, schema, names })
    }

    fn inner_name(&self, name: &str) -> Result<String> {
        let at = self.schema.columns.iter().position(|column| column.name == name);
        at.map(|at| self.names[at].clone()).ok_or_else(|| no_column(name, &self.schema.columns))
    }

    fn inner_filter(&self, filter: &RowFilter) -> Result<RowFilter> {
        let all = |parts: &[RowFilter]| {
            parts.iter().map(|part| self.inner_filter(part)).collect::<Result<Vec<_>>>()
        };
        Ok(match filter {
            RowFilter::All(parts) => RowFilter::All(all(parts)?),
            RowFilter::Any(parts) => RowFilter::Any(all(parts)?),
            RowFilter::Not(part) => RowFilter::Not(Box::new(self.inner_filter(part)?)),
            RowFilter::Test { column, test } => {
                RowFilter::Test { column: self.inner_name(column)?, test: test.clone() }
            }
        })
    }
}

impl Table for ChosenTable {
    fn schema(&self) -> &TableSchema {
        &self.schema
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn rows(&self) -> Result<u64> {
        self.inner.rows()
    }

    fn scan(&self, request: &Scan) -> Result<Batches<'_>> {
        let columns = match &request.columns {
            None => self.names.clone(),
            Some(names) => names.iter().map(|name| self.inner_name(name)).collect::<Result<_>>()?,
        };
        let region = request.region.iter().map(|(name, bounds)| Ok((self.inner_name(name)?, bounds.clone())));
        let filter = request.filter.as_ref().map(|filter| self.inner_filter(filter)).transpose()?;
        self.inner.scan(&Scan { columns: Some(columns), region: region.collect::<Result<_>>()?, filter })
    }
}

/// A geometry with some of its vertex attributes, under other names.
#[derive(Debug)]
struct ChosenGeometry {
    inner: Arc<dyn Geometry>,
    choice: Choice,
}

impl Geometry for ChosenGeometry {
    fn schema(&self) -> &GeometrySchema {
        self.inner.schema()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn levels(&self) -> Result<Vec<GeometryLevel>> {
        self.inner.levels()
    }

    fn query(&self, query: &GeometryQuery) -> Result<GeometryData> {
        let mut data = self.inner.query(&GeometryQuery { attributes: None, ..query.clone() })?;
        let all = std::mem::take(&mut data.attributes);
        let names = || all.iter().map(|(name, _)| name.as_str());
        if let Some(unknown) = self.choice.names().find(|name| names().all(|own| own != **name)) {
            let hint = did_you_mean(unknown, names());
            return Err(Error::invalid(format!("no attribute {unknown}{hint}")));
        }
        let renamed = |(name, values): (String, Values)| (self.choice.name_of(&name).to_owned(), values);
        data.attributes = all.into_iter().filter(|(name, _)| self.choice.has(name)).map(renamed).collect();
        Choice::check_unique(data.attributes.iter().map(|(name, _)| name.as_str()))?;
        if let Some(wanted) = &query.attributes {
            data.attributes.retain(|(name, _)| wanted.contains(name));
        }
        Ok(data)
    }
}
