//! Reports the attributes that a file of rows cannot hold.

use std::collections::HashSet;

use hyperslab_core::{ArraySchema, Attribute, Attributes, Error, Labels, Node, Result, TimeAxis};

use super::super::spec::portable_attributes;
use super::super::{ConvertOptions, ConvertReport};
use crate::{ArrayReader, OpenStore};

/// Documents of Zarr Vectors, which are stored among user attributes.
const OWN: [&str; 3] = ["zarr_vectors", "multiscales", "ome"];
/// Attributes whose meaning decoded values have.
const DECODED: [&str; 5] = ["_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned"];
/// Attributes whose meaning dates have.
const DATED: [&str; 2] = ["units", "calendar"];

/// Returns true if all attributes were written by the format itself.
pub(in super::super) fn own_attributes(attributes: &Attributes) -> bool {
    attributes.iter().all(|(name, _)| OWN.contains(&name))
}

/// Reports the attributes of the nodes that become rows, of their coordinates and of the groups above, each node once.
pub(super) struct LostAttributes<'a> {
    decoded: bool,
    options: &'a ConvertOptions,
    report: &'a mut ConvertReport,
    seen: HashSet<String>,
}

impl<'a> LostAttributes<'a> {
    /// `decoded` means that the file gets decoded values unless the options demand stored ones.
    pub(super) fn new(decoded: bool, options: &'a ConvertOptions, report: &'a mut ConvertReport) -> Self {
        Self { decoded: decoded && !options.raw, options, report, seen: HashSet::new() }
    }

    /// Reports other content that is left out.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if nothing may be lost.
    pub(super) fn drop(&mut self, path: &str, what: String) -> Result<()> {
        if self.options.strict {
            return Err(Error::invalid(format!("{path}: {what}; nothing was written")));
        }
        self.report.drop(path, what);
        Ok(())
    }

    /// Reports those of a table or geometry.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if nothing may be lost.
    pub(super) fn add_node(&mut self, source: &OpenStore, path: &str, attributes: &Attributes) -> Result<()> {
        self.add_groups(source, path)?;
        self.add(path, attributes, &[])
    }

    /// Reports those of an array and its coordinates.
    ///
    /// # Errors
    ///
    /// As [`add_node`](Self::add_node).
    pub(super) fn add_array(&mut self, source: &OpenStore, path: &str, schema: &ArraySchema) -> Result<()> {
        self.add_groups(source, path)?;
        let used: &[&str] = if self.decoded { &DECODED } else { &[] };
        self.add(path, &schema.attributes, used)?;
        for labels in &schema.labels {
            if let Labels::Node(path) = labels
                && let Ok(Node::Array(array)) = source.node(path)
            {
                let attributes = &array.schema().attributes;
                let dated: &[&str] = if counts_time(attributes) { &DATED } else { &[] };
                self.add(path, attributes, &[&DECODED, dated].concat())?;
            }
        }
        Ok(())
    }

    /// Reports contradictory or meaningless attributes, if values are decoded.
    pub(super) fn add_warnings(&mut self, path: &str, stored: &ArrayReader) {
        if self.decoded {
            stored.interpretation().warnings.into_iter().for_each(|what| self.report.change(path, what));
        }
    }

    /// The groups above a node are part of the conversion if no node was chosen.
    fn add_groups(&mut self, source: &OpenStore, path: &str) -> Result<()> {
        let mut above = path;
        while self.options.node.is_none()
            && let Some((group, _)) = above.rsplit_once('/')
        {
            above = group;
            let path = if group.is_empty() { "/" } else { group };
            if let Ok(Node::Group(attributes)) = source.node(path) {
                self.add(path, &attributes, &[])?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &str, attributes: &Attributes, used: &[&str]) -> Result<()> {
        if !self.seen.insert(path.to_owned()) {
            return Ok(());
        }
        let names = portable_attributes(attributes, false).into_iter().map(|(name, _)| name);
        let names: Vec<&str> = names.filter(|name| !OWN.contains(name) && !used.contains(name)).collect();
        if names.is_empty() {
            return Ok(());
        }
        let what = format!("a file of rows cannot hold its attributes: {}", names.join(", "));
        if self.options.strict {
            return Err(Error::invalid(format!("{path}: {what}; nothing was written")));
        }
        self.report.change(path, what);
        Ok(())
    }
}

/// Returns true if an array with these attributes counts time, so that its labels are dates.
fn counts_time(attributes: &Attributes) -> bool {
    let text = |name: &str| attributes.get(name).and_then(Attribute::as_text);
    let calendar = text("calendar").unwrap_or_default();
    text("units").is_some_and(|units| TimeAxis::parse(&units, &calendar).is_some())
}
