//! Schema evolution: adds attributes to an existing array, and drops attributes.
//!
//! Only a new schema is written. Fragments keep the schemas that they name. An attribute that a fragment lacks reads
//! as its fill value, and dropped attributes remain readable at earlier times.

use std::path::Path;

use hyperslab_core::storage::{StageWriter, StagedChange};
use hyperslab_core::{
    ArraySpec, Error, FieldChange, FieldSpec, Fill, Grid, Result, did_you_mean, join_inside,
};

use super::enumeration::{self, NewEnumeration};
use super::{WriteOptions, key_in, locks, put_schema, schema_key, time_of, types};
use crate::array::OpenArray;
use crate::schema::{ArrayKind, Attribute, Schema, WRITTEN};
use crate::{OpenOptions, TimeWindow};

/// Applies all changes to an array's attributes, or none. With `dry_run`, only checks them.
///
/// # Errors
///
/// [`NotFound`](Error::NotFound) if there is no array at the node, [`Invalid`](Error::Invalid) for a name that
/// already exists or does not exist, [`Unsupported`](Error::Unsupported) for a type that TileDB does not have.
pub fn evolve(
    path: &Path,
    node: &str,
    changes: &[FieldChange],
    options: &WriteOptions,
    dry_run: bool,
) -> Result<()> {
    let open = OpenOptions { key: options.key.clone(), ..OpenOptions::default() };
    let store = crate::open_path(path, open)?;
    let missing = || Error::not_found(path.display().to_string(), format!("an array {node}"));
    let key = store.folder_of(node)?.ok_or_else(missing)?;
    let folder = join_inside(path, &key)?;
    let _lock = locks::continuing(&folder)?;
    let array = super::consolidate::open(&folder, options.key.as_ref(), TimeWindow::default())?;
    let mut evolution = Evolution::new(&array);
    for change in changes {
        evolution.apply(change)?;
    }
    evolution.check()?;
    if dry_run || changes.is_empty() {
        return Ok(());
    }
    let change = StagedChange::open(path)?;
    let name = evolution.put(&change.writer().below(&key)?, time_of(&array, options)?, options)?;
    change.publish(&[key_in(&key, &schema_key(&name))])
}

/// A schema with pending changes.
#[derive(Debug)]
pub(super) struct Evolution<'a> {
    array: &'a OpenArray,
    schema: Schema,
    /// The enumerations of new attributes, by attribute name.
    enumerations: Vec<(String, NewEnumeration)>,
}

impl<'a> Evolution<'a> {
    pub(super) fn new(array: &'a OpenArray) -> Self {
        let schema = Schema { version: WRITTEN, ..(*array.schema).clone() };
        Self { array, schema, enumerations: Vec::new() }
    }

    fn apply(&mut self, change: &FieldChange) -> Result<()> {
        match change {
            FieldChange::Add(field) => self.add(field),
            FieldChange::Drop(name) => self.drop_attribute(name),
        }
    }

    fn add(&mut self, field: &FieldSpec) -> Result<()> {
        let (schema, name) = (&self.schema, &field.name);
        let dimension = schema.dimensions.iter().any(|own| own.name == *name);
        let label = schema.labels.iter().any(|own| own.name == *name);
        if schema.attribute(name).is_some() || dimension || label {
            return Err(Error::invalid(format!("{}: attribute {name} already exists", self.array.name)));
        }
        if name.is_empty() || name.starts_with("__") {
            let why = "a name must not be empty, nor start with two underscores";
            return Err(Error::invalid(format!("{}: an attribute {name:?}: {why}", self.array.name)));
        }
        // Older fragments with an attribute of this name would be read with the new type.
        for earlier in self.array.fragments()? {
            if let Some((_, before)) = earlier.schema.attribute(name)
                && types::datatype(&field.dtype) != Some((before.datatype, before.values))
            {
                return Err(Error::invalid(format!(
                    "{}: {name} has another type in existing fragments",
                    self.array.name
                )));
            }
        }
        let mut spec =
            ArraySpec::new(field.dtype.clone(), Grid::new(&[1], &[1])?).with_filters(field.filters.clone());
        spec.nullable = field.nullable;
        spec.fill = field.fill.clone().map_or(Fill::Zero, Fill::Element);
        let mut attribute = types::attribute(name, &spec)?;
        if field.fill.is_none() {
            let plain = Attribute::new(name.as_str(), attribute.datatype, attribute.values);
            (attribute.fill, attribute.fill_validity) = (plain.fill, plain.fill_validity);
        }
        self.enumerations
            .extend(NewEnumeration::of(name, &field.dtype, None).map(|found| (name.clone(), found)));
        self.schema.attributes.push(attribute);
        Ok(())
    }

    pub(super) fn drop_attribute(&mut self, name: &str) -> Result<()> {
        let Some((at, attribute)) = self.schema.attribute(name) else {
            let names = self.schema.attributes.iter().map(|own| own.name.as_str());
            let hint = did_you_mean(name, names);
            return Err(Error::invalid(format!("{}: no attribute {name}{hint}", self.array.name)));
        };
        let used = attribute.enumeration.clone();
        self.schema.attributes.remove(at);
        self.enumerations.retain(|(own, _)| own != name);
        let left =
            |used: &String| self.schema.attributes.iter().any(|own| own.enumeration.as_ref() == Some(used));
        if let Some(unused) = used.filter(|used| !left(used)) {
            self.schema.enumerations.retain(|(own, _)| *own != unused);
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.schema.attributes.is_empty() && self.schema.kind == ArrayKind::Dense {
            return Err(Error::invalid(format!("{}: a dense array needs an attribute", self.array.name)));
        }
        Ok(())
    }

    /// Writes the schema. Returns its name.
    pub(super) fn put(self, folder: &StageWriter, at: u64, options: &WriteOptions) -> Result<String> {
        let place = |schema: &Schema, name: &str| schema.attribute(name).map(|(index, _)| index);
        let found: Vec<(usize, &NewEnumeration)> = self
            .enumerations
            .iter()
            .filter_map(|(name, own)| Some((place(&self.schema, name)?, own)))
            .collect();
        let mut schema = self.schema.clone();
        enumeration::put(folder, &mut schema, found, options.key.as_ref())?;
        put_schema(folder, &schema, at, options.key.as_ref())
    }
}
