//! Changes to a store that exists: attributes, names, nodes.
//!
//! A change is made in place where the format can do that safely. Everywhere else the store is written anew beside the old
//! one, from a [view](view) in which the change is made already, and takes its place in one step. Either way a killed process
//! leaves the old store or the new one.

mod value;
pub(crate) mod view;

use std::path::Path;

use hyperslab_core::{
    Attribute, Attributes, CreateOptions, DType, Error, Node, Result, child_path, did_you_mean, normal_path,
};

pub use value::parse_attribute;

use crate::convert::{ConvertOptions, Progress, convert_into};
use crate::{Format, OpenOptions, OpenStore, create, open_with};
use view::{AttributeEdit, Changes};

/// One change.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Edit {
    /// Sets an attribute of a node.
    SetAttribute {
        /// The node.
        node: String,
        /// The attribute.
        name: String,
        /// Its value.
        value: Attribute,
    },
    /// Deletes an attribute of a node.
    DeleteAttribute {
        /// The node.
        node: String,
        /// The attribute.
        name: String,
    },
    /// Gives a node another name, or puts it into another group. A coordinate takes its dimension along.
    Rename {
        /// The node.
        from: String,
        /// Its new path; a name alone stays in its group.
        to: String,
    },
    /// Removes a node and everything below it.
    Remove {
        /// The node.
        node: String,
    },
}

/// How to edit.
#[derive(Debug, Clone, Default)]
pub struct EditOptions {
    /// How the store is opened.
    pub open: OpenOptions,
    /// Only check, and say what would change.
    pub dry_run: bool,
}

/// What was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct EditReport {
    /// Each change in words: node and what became of it.
    pub changes: Vec<(String, String)>,
    /// Was it done in place? Otherwise the store was written anew.
    pub in_place: bool,
    /// Was anything changed?
    pub applied: bool,
}

/// Applies changes to a store: all of them, or none.
///
/// # Errors
///
/// [`NotFound`](Error::NotFound) for a node or an attribute that is not there, [`Invalid`](Error::Invalid) for a change that
/// cannot be, [`Unsupported`](Error::Unsupported) for what the format cannot do without losing something,
/// [`Io`](Error::Io) when the system refuses. Nothing is changed then.
pub fn edit(path: &Path, edits: &[Edit], options: &EditOptions, progress: &Progress) -> Result<EditReport> {
    crate::location::check_local(path, "editing")?;
    let name = path.display().to_string();
    let target = path.canonicalize().map_err(|source| Error::io(name.as_str(), source))?;
    let store = open_with(&target, &OpenOptions { mapped: false, ..options.open.clone() })?;
    let format = store
        .driver()
        .ok_or_else(|| Error::unsupported(name.as_str(), "editing a store of an unknown format"))?;
    let changes = Changes::new(&store, edits)?;
    let mut report = EditReport { changes: described(edits), ..EditReport::default() };
    let read_only =
        target.metadata().map_err(|source| Error::io(name.as_str(), source))?.permissions().readonly();
    if read_only {
        return Err(Error::invalid(format!(
            "{name} is read-only, so nothing is changed; make it writable first"
        )));
    }
    if !format.info().capabilities.append && !format.info().capabilities.create {
        return Err(format.driver().unsupported(path, "editing"));
    }
    match in_place(&target, format, &store, edits, options.dry_run) {
        Ok(()) => report.in_place = true,
        Err(why) if why.is_unsupported() => rewrite(&target, format, &store, changes, options, progress)?,
        Err(why) => return Err(why),
    }
    report.applied = !options.dry_run && !edits.is_empty();
    Ok(report)
}

fn described(edits: &[Edit]) -> Vec<(String, String)> {
    edits
        .iter()
        .map(|edit| match edit {
            Edit::SetAttribute { node, name, value } => {
                (normal_path(node), format!("{name} = {}", value.to_json()))
            }
            Edit::DeleteAttribute { node, name } => (normal_path(node), format!("{name} deleted")),
            Edit::Rename { from, to } => {
                (normal_path(from), format!("renamed to {}", view::new_path(from, to)))
            }
            Edit::Remove { node } => (normal_path(node), "removed".to_owned()),
        })
        .collect()
}

/// Changes the store where it is; [`Unsupported`](Error::Unsupported), with nothing changed, where the format cannot.
fn in_place(target: &Path, format: Format, store: &OpenStore, edits: &[Edit], dry_run: bool) -> Result<()> {
    if !format.info().capabilities.append {
        return Err(format.driver().unsupported(target, "editing in place"));
    }
    let mut sink = create(target, format, &CreateOptions { append: true, ..CreateOptions::default() })?;
    for edit in edits {
        match edit {
            Edit::SetAttribute { node, name, value } => {
                let mut attributes = Attributes::new();
                attributes.set(name.as_str(), value.clone());
                sink.attributes(&stored_path(store, node)?, &attributes)?;
            }
            Edit::DeleteAttribute { node, name } => {
                sink.delete_attributes(&stored_path(store, node)?, &[name.as_str()])?;
            }
            Edit::Rename { from, to } => sink.rename(&normal_path(from), &view::new_path(from, to))?,
            Edit::Remove { node } => sink.remove(&normal_path(node))?,
        }
    }
    if dry_run { Ok(()) } else { sink.commit() }
}

/// The path under which a format knows a node that may be the field of an array of its name.
fn stored_path(store: &OpenStore, node: &str) -> Result<String> {
    let path = normal_path(node);
    let own = crate::fields::own_field(store, &path, &store.node(&path)?)?;
    let name = path.rsplit('/').next().unwrap_or_default();
    Ok(if own.is_some() { child_path(&path, name) } else { path })
}

/// Writes the store anew, with the changes made.
fn rewrite(
    target: &Path,
    format: Format,
    store: &OpenStore,
    changes: Changes,
    options: &EditOptions,
    progress: &Progress,
) -> Result<()> {
    let info = format.info();
    if !info.capabilities.create || info.capabilities.fragments || info.capabilities.history {
        // A store that is written anew has lost what was there before.
        return Err(format.driver().unsupported(target, "this change to a store of"));
    }
    if options.dry_run {
        return Ok(());
    }
    let keeps_bookkeeping = !changes.moves_nodes();
    let edited = view::edited(store, changes);
    let convert_options = ConvertOptions {
        replace: true,
        strict: true,
        keep_bookkeeping: keeps_bookkeeping,
        ..ConvertOptions::default()
    };
    let permissions = target.metadata().ok().map(|metadata| metadata.permissions());
    convert_into(&edited, target, format, &convert_options, progress)?;
    if let Some(permissions) = permissions.filter(|_| target.is_file()) {
        // The content is in place; the permissions of a new file are no reason to say otherwise.
        let _ = std::fs::set_permissions(target, permissions);
    }
    Ok(())
}

/// The attributes of a node, to be looked at before they are changed.
///
/// # Errors
///
/// [`NotFound`](Error::NotFound) when there is no such node, [`Unsupported`](Error::Unsupported) for one without attributes.
pub fn attributes_of(store: &OpenStore, node: &str) -> Result<Attributes> {
    let path = normal_path(node);
    let found = store.node(&path)?;
    Ok(match (crate::fields::own_field(store, &path, &found)?, found) {
        (Some(Node::Array(array)), _) | (None, Node::Array(array)) => array.schema().attributes.clone(),
        (_, Node::Group(attributes) | Node::Type(_, attributes)) => attributes,
        (_, Node::Table(table)) => table.schema().attributes.clone(),
        (_, Node::Geometry(geometry)) => geometry.schema().attributes.clone(),
        (_, other) => {
            let what = format!("attributes of {}", other.kind().one());
            return Err(Error::unsupported(store.path().display().to_string(), what));
        }
    })
}

/// The type that the numbers of an attribute take: the one that is named, else that of the attribute as it is, else that of
/// the array, for attributes that hold values of the array.
///
/// # Errors
///
/// As [`attributes_of`]; [`Invalid`](Error::Invalid) for a name that no type of numbers has.
pub fn attribute_type(
    store: &OpenStore,
    node: &str,
    name: &str,
    named: Option<&str>,
) -> Result<Option<DType>> {
    const NUMBERS: [DType; 11] = [
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::UInt8,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
        DType::Float16,
        DType::Float32,
        DType::Float64,
    ];
    if let Some(named) = named {
        let names: Vec<String> = NUMBERS.iter().map(DType::to_string).collect();
        let found = NUMBERS.iter().find(|dtype| dtype.to_string() == named);
        return found.map(|dtype| Some(dtype.clone())).ok_or_else(|| {
            let hint = did_you_mean(named, names.iter().map(String::as_str));
            Error::invalid(format!("{named} is not a type of numbers{hint}"))
        });
    }
    if let Some(Attribute::Values(values)) = attributes_of(store, node)?.get(name) {
        return Ok(Some(values.dtype.clone()));
    }
    // CF: these have the type of the values.
    let of_values = ["_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"].contains(&name);
    let path = normal_path(node);
    let found = store.node(&path)?;
    Ok(match (crate::fields::own_field(store, &path, &found)?, found) {
        (Some(Node::Array(array)), _) | (None, Node::Array(array)) if of_values => {
            Some(array.schema().dtype.clone())
        }
        _ => None,
    })
}

/// The error of an attribute that is not there.
fn no_attribute(store: &OpenStore, node: &str, name: &str, attributes: &Attributes) -> Error {
    let names: Vec<&str> = attributes.iter().map(|(name, _)| name).collect();
    let hint = did_you_mean(name, names.iter().copied());
    Error::invalid(format!("{}: {node} has no attribute {name:?}{hint}", store.path().display()))
}

/// Checks an attribute edit against what is there.
fn attribute_edit(store: &OpenStore, edit: &Edit) -> Result<Option<(String, AttributeEdit)>> {
    Ok(match edit {
        Edit::SetAttribute { node, name, value } => {
            attributes_of(store, node)?;
            if name.is_empty() {
                return Err(Error::invalid("an attribute needs a name, as in units=K"));
            }
            Some((normal_path(node), AttributeEdit::Set(name.clone(), value.clone())))
        }
        Edit::DeleteAttribute { node, name } => {
            let attributes = attributes_of(store, node)?;
            if attributes.get(name).is_none() {
                return Err(no_attribute(store, node, name, &attributes));
            }
            Some((normal_path(node), AttributeEdit::Delete(name.clone())))
        }
        _ => None,
    })
}
