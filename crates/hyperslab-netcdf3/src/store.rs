//! An open file: one group of variables.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use hyperslab_core::{
    Array, Blob, ChunkCoord, ChunkRef, Depth, Error, Node, Report, Result, Store, check_chunk,
    check_chunks_in_order,
};
use serde_json::{Map, Value, json};

use crate::array::{BareDimension, VariableArray};
use crate::attributes;
use crate::header::Header;
use crate::layout::Layout;
use crate::types::NcType;

/// An open NetCDF classic file: a group of variables, and of dimensions without a variable.
#[derive(Debug)]
pub struct Netcdf3Store {
    blob: Arc<dyn Blob>,
    length: u64,
    header: Header,
    layout: Layout,
    /// Variable numbers by name.
    names: HashMap<String, usize>,
    /// The numbers of dimensions that no variable uses or is named like.
    bare: Vec<usize>,
    /// The same dimensions by name.
    bare_names: HashMap<String, usize>,
}

/// Paths of variables, and the records that each lacks.
pub type MissingRecords = Vec<(String, Range<u64>)>;

impl Netcdf3Store {
    /// Opens the file in `blob`. Reads only the header.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if the header is truncated or inconsistent, or variables overlap.
    pub fn open(blob: Arc<dyn Blob>) -> Result<Self> {
        let header = Header::read(&*blob)?;
        Self::with_header(blob, header)
    }

    /// Opens a truncated file with its complete records. Also returns the variables that lack records, and the missing records;
    /// `None` if all are there.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_truncated(blob: Arc<dyn Blob>) -> Result<Option<(Self, MissingRecords)>> {
        let mut header = Header::read(&*blob)?;
        let Some(claimed) = header.records.take() else { return Ok(None) };
        let store = Self::with_header(blob, header)?;
        let whole = store.layout.records;
        if whole >= claimed {
            return Ok(None);
        }
        let variables = store.header.variables.iter().zip(&store.layout.variables);
        let recorded = variables.filter(|(_, layout)| layout.stride.is_some());
        let cut = recorded.map(|(variable, _)| (format!("/{}", variable.name), whole..claimed)).collect();
        Ok(Some((store, cut)))
    }

    fn with_header(blob: Arc<dyn Blob>, header: Header) -> Result<Self> {
        let length = blob.len()?;
        let layout = Layout::new(&header, length, blob.name())?;
        let names: HashMap<String, usize> =
            header.variables.iter().enumerate().map(|(number, own)| (own.name.clone(), number)).collect();
        let mut is_used = vec![false; header.dimensions.len()];
        for number in header.variables.iter().flat_map(|own| &own.dimensions) {
            is_used[*number] = true;
        }
        let is_bare =
            |number: &usize| !is_used[*number] && !names.contains_key(&header.dimensions[*number].name);
        let bare: Vec<usize> = (0..header.dimensions.len()).filter(is_bare).collect();
        let bare_names =
            bare.iter().map(|number| (header.dimensions[*number].name.clone(), *number)).collect();
        Ok(Self { blob, length, header, layout, names, bare, bare_names })
    }

    /// The variable with this number.
    fn variable(&self, number: usize) -> Result<VariableArray> {
        let is_coordinate = |dimension: usize| {
            let variable = self.names.get(&self.header.dimensions[dimension].name);
            variable.is_some_and(|variable| {
                let variable = &self.header.variables[*variable];
                match variable.dimensions[..] {
                    [only] => only == dimension,
                    // A text per position is stored as characters along a second dimension.
                    [first, _] => first == dimension && variable.kind == NcType::Char,
                    _ => false,
                }
            })
        };
        let (variable, layout) = (&self.header.variables[number], &self.layout.variables[number]);
        VariableArray::open(&self.blob, &self.header, variable, layout, self.length, &is_coordinate)
    }

    fn bare_dimension(&self, name: &str) -> Option<BareDimension> {
        let dimension = &self.header.dimensions[*self.bare_names.get(name)?];
        let is_record = dimension.length == 0;
        let length = if is_record { self.layout.records } else { dimension.length };
        Some(BareDimension::new(&self.blob, name, length, is_record))
    }
}

impl Store for Netcdf3Store {
    fn format(&self) -> &'static str {
        "netcdf3"
    }

    fn variant(&self) -> Option<&'static str> {
        Some(self.header.version.variant())
    }

    fn name(&self) -> &Arc<str> {
        self.blob.name()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        if path != "/" {
            return self.node(path).map(|_| Vec::new());
        }
        let variables = self.header.variables.iter().map(|own| own.name.clone());
        let bare = self.bare.iter().map(|number| self.header.dimensions[*number].name.clone());
        Ok(variables.chain(bare).collect())
    }

    fn node(&self, path: &str) -> Result<Node> {
        if path == "/" {
            return Ok(Node::Group(attributes::read(&self.header.attributes)));
        }
        let name = path.strip_prefix('/').unwrap_or(path);
        if let Some(number) = self.names.get(name) {
            return Ok(Node::Array(Arc::new(self.variable(*number)?)));
        }
        match self.bare_dimension(name) {
            Some(dimension) => Ok(Node::Array(Arc::new(dimension))),
            None => Err(Error::not_found(Arc::clone(self.blob.name()), path)),
        }
    }

    fn details(&self) -> Result<Map<String, Value>> {
        let dimensions = self.header.dimensions.iter().map(|dimension| {
            let length = if dimension.length == 0 { json!("unlimited") } else { json!(dimension.length) };
            (dimension.name.clone(), length)
        });
        let mut details = Map::new();
        details.insert("version".to_owned(), json!(format!("CDF-{}", self.header.version as u8)));
        details.insert("records".to_owned(), json!(self.layout.records));
        details.insert("header_bytes".to_owned(), json!(self.header.length));
        details.insert("dimensions".to_owned(), Value::Object(dimensions.collect()));
        Ok(details)
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        let mut failed = 0;
        for (number, variable) in self.header.variables.iter().enumerate() {
            let path = format!("/{}", variable.name);
            let mut tell = |error: &Error| {
                failed += 1;
                report.failure("variable", error);
                report.at_node(&path);
            };
            let array = match self.variable(number) {
                Ok(array) => array,
                Err(error) => {
                    tell(&error);
                    continue;
                }
            };
            if depth == Depth::Deep {
                let walk = |put: &mut dyn FnMut(_)| {
                    array.visit_chunks(&mut |chunk, reference| {
                        put((chunk, reference));
                        Ok(ControlFlow::Continue(()))
                    })
                };
                let check = |(chunk, reference): (ChunkCoord, ChunkRef), stored| {
                    check_chunk(&array, &chunk, &reference, stored)
                };
                check_chunks_in_order(
                    &array,
                    walk,
                    |item| Some(&item.1),
                    check,
                    |outcome: Result<()>| outcome.err().iter().for_each(&mut tell),
                )?;
            }
        }
        if self.header.records.is_none() {
            report.warning(
                "records",
                format!(
                    "the header leaves the number of records open; the file holds {}",
                    self.layout.records
                ),
            );
        }
        if failed == 0 {
            report.passed(
                "variables",
                format!(
                    "{} variables and {} records are complete",
                    self.header.variables.len(),
                    self.layout.records
                ),
            );
        }
        Ok(())
    }
}
