//! Changes to an existing store: attributes, names, nodes.
//!
//! A change is made in place if the format can do so safely. Otherwise the store is rewritten beside the old one, from a
//! [view](view) that includes the change, and replaces it in one step. Either way, a killed process leaves the old store or the
//! new one.

mod value;
pub(crate) mod view;

use std::path::Path;

use hyperslab_core::{
    Attribute, Attributes, CreateOptions, DType, Elements, Error, Node, Result, Values, did_you_mean,
    normal_path,
};

pub use value::parse_attribute;

use crate::convert::{ConvertOptions, Progress, convert_into, portable_attributes};
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
    /// Renames a node or moves it to another group. Renaming a coordinate also renames its dimension.
    Rename {
        /// The node.
        from: String,
        /// Its new path. A name without a slash stays in the same group.
        to: String,
    },
    /// Removes a node and everything below it.
    Remove {
        /// The node.
        node: String,
    },
}

impl Edit {
    /// Returns true if it changes an attribute.
    const fn is_of_attribute(&self) -> bool {
        matches!(self, Self::SetAttribute { .. } | Self::DeleteAttribute { .. })
    }
}

/// Options for an edit.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct EditOptions {
    /// How the store is opened.
    pub open: OpenOptions,
    /// Only check, and report what would change.
    pub dry_run: bool,
}

hyperslab_core::option_setters! { EditOptions {
    with_open = open: OpenOptions,
    with_dry_run = dry_run: bool,
} }

/// The changes made.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct EditReport {
    /// Each change: the node and a description.
    pub changes: Vec<(String, String)>,
    /// Whether the change was made in place. Otherwise the store was rewritten.
    pub in_place: bool,
    /// Whether anything was changed.
    pub applied: bool,
}

/// Applies changes to a store: all of them, or none.
///
/// # Errors
///
/// [`NotFound`](Error::NotFound) for a missing node or attribute, [`Invalid`](Error::Invalid) for an impossible change,
/// [`Unsupported`](Error::Unsupported) for a change that the format cannot make without losing content, [`Io`](Error::Io) if the
/// system reports an error. Nothing is changed then.
pub fn edit(path: &Path, edits: &[Edit], options: &EditOptions, progress: &Progress) -> Result<EditReport> {
    crate::location::check_local(path, "editing")?;
    let name = path.display().to_string();
    let target = path.canonicalize().map_err(|source| Error::io(name.as_str(), source))?;
    let store = open_with(&target, &OpenOptions { mapped: false, ..options.open.clone() })?;
    let format = store
        .driver()
        .ok_or_else(|| Error::unsupported(name.as_str(), "editing a store of an unknown format"))?;
    if !format.info().capabilities.attributes && edits.iter().any(Edit::is_of_attribute) {
        return Err(Error::invalid(format!(
            "{name}: {} has no attributes; convert it to another format first",
            format.name()
        )));
    }
    let edits = edits.iter().map(|edit| like_existing(&store, edit)).collect::<Result<Vec<Edit>>>()?;
    let edits = &edits[..];
    let changes = Changes::new(&store, edits)?;
    let mut report = EditReport { changes: described(edits, options.dry_run), ..EditReport::default() };
    let read_only =
        target.metadata().map_err(|source| Error::io(name.as_str(), source))?.permissions().readonly();
    if read_only {
        return Err(Error::invalid(format!(
            "{name} is read-only; make it writable first. Nothing was changed"
        )));
    }
    if !format.info().capabilities.append && !format.info().capabilities.create {
        return Err(format.driver().unsupported(path, "editing"));
    }
    match in_place(&target, format, edits, options.dry_run) {
        Ok(()) => report.in_place = true,
        Err(why) if why.is_unsupported() => rewrite(&target, format, &store, changes, options, progress)?,
        Err(why) => return Err(why),
    }
    report.applied = !options.dry_run && !edits.is_empty();
    Ok(report)
}

fn described(edits: &[Edit], dry_run: bool) -> Vec<(String, String)> {
    let would = if dry_run { "would be " } else { "" };
    edits
        .iter()
        .map(|edit| match edit {
            Edit::SetAttribute { node, name, value } => {
                (normal_path(node), format!("{name} = {}", value.to_json()))
            }
            Edit::DeleteAttribute { node, name } => (normal_path(node), format!("{name} {would}deleted")),
            Edit::Rename { from, to } => {
                (normal_path(from), format!("{would}renamed to {}", view::new_path(from, to)))
            }
            Edit::Remove { node } => (normal_path(node), format!("{would}removed")),
        })
        .collect()
}

/// Adapts a text to the kind of text that it replaces: fixed-length characters stay fixed-length characters, which
/// NetCDF distinguishes from strings. Non-ASCII text is not adapted.
fn like_existing(store: &OpenStore, edit: &Edit) -> Result<Edit> {
    let Edit::SetAttribute { node, name, value } = edit else { return Ok(edit.clone()) };
    let attributes = attributes_of(store, node)?;
    let (Some(Attribute::Values(old)), Some(text)) = (attributes.get(name), value.as_text()) else {
        return Ok(edit.clone());
    };
    if !matches!(old.dtype, DType::FixedBytes(_)) || old.len() != 1 || !text.is_ascii() {
        return Ok(edit.clone());
    }
    let values = Values::new(DType::FixedBytes(text.len()), &old.shape, Elements::fixed(text.into_bytes()))?;
    Ok(Edit::SetAttribute { node: node.clone(), name: name.clone(), value: values.into() })
}

/// Changes the store in place. Fails with [`Unsupported`](Error::Unsupported), leaving it unchanged, if the format cannot.
fn in_place(target: &Path, format: Format, edits: &[Edit], dry_run: bool) -> Result<()> {
    if !format.info().capabilities.append {
        return Err(format.driver().unsupported(target, "editing in place"));
    }
    let mut sink = create(target, format, &CreateOptions::default().with_append(true))?;
    for edit in edits {
        match edit {
            Edit::SetAttribute { node, name, value } => {
                let mut attributes = Attributes::new();
                attributes.set(name.as_str(), value.clone());
                sink.attributes(&normal_path(node), &attributes)?;
            }
            Edit::DeleteAttribute { node, name } => {
                sink.delete_attributes(&normal_path(node), &[name.as_str()])?;
            }
            Edit::Rename { from, to } => sink.rename(&normal_path(from), &view::new_path(from, to))?,
            Edit::Remove { node } => sink.remove(&normal_path(node))?,
        }
    }
    if dry_run { Ok(()) } else { sink.commit() }
}

/// Rewrites the store with the changes.
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
        let loss = match (info.capabilities.history, info.capabilities.fragments) {
            (true, _) => "its history",
            (_, true) => "its earlier versions",
            _ => return Err(format.driver().unsupported(target, "editing")),
        };
        return Err(Error::invalid(format!(
            "{}: this change to a {} store cannot be made in place, and rewriting the store would lose {loss}; convert it to a \
             new store instead",
            target.display(),
            info.name
        )));
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
    convert_into(&edited, target, format, &convert_options, progress).map_err(with_advice)?;
    if let Some(permissions) = permissions.filter(|_| target.is_file()) {
        // The content has been replaced, so failing to restore the permissions is not an error.
        let _ = std::fs::set_permissions(target, permissions);
    }
    Ok(())
}

/// Explains how to make the change in the error about a reference to a node that was renamed or removed.
fn with_advice(why: Error) -> Error {
    match why {
        Error::Invalid(message) if message.contains("a reference to") => Error::invalid(format!(
            "{message}. References do not follow a node that is renamed or removed; remove the array or attribute with the \
             reference first"
        )),
        other => other,
    }
}

/// The attributes of a node, for inspection before a change.
///
/// # Errors
///
/// [`NotFound`](Error::NotFound) if there is no such node, [`Unsupported`](Error::Unsupported) for one without attributes.
pub fn attributes_of(store: &OpenStore, node: &str) -> Result<Attributes> {
    let path = normal_path(node);
    let found = store.find(&path)?;
    Ok(match found {
        Node::Array(array) => array.schema().attributes.clone(),
        Node::Group(attributes) | Node::Type(_, attributes) => attributes,
        Node::Table(table) => table.schema().attributes.clone(),
        Node::Geometry(geometry) => geometry.schema().attributes.clone(),
        other => {
            let what = format!("attributes of {}", other.kind().one());
            return Err(Error::unsupported(store.path().display().to_string(), what));
        }
    })
}

/// The attributes that users set: all but a format's bookkeeping.
#[must_use]
pub fn user_attributes(attributes: &Attributes) -> Vec<(&str, &Attribute)> {
    portable_attributes(attributes, false)
}

/// The type for the numbers of an attribute: the named type, else that of the existing attribute, else that of the array for
/// attributes that hold array values.
///
/// # Errors
///
/// As [`attributes_of`]; [`Invalid`](Error::Invalid) for a name that is not a numeric type.
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
            Error::invalid(format!("{named} is not a numeric type{hint}"))
        });
    }
    if let Some(Attribute::Values(values)) = attributes_of(store, node)?.get(name) {
        return Ok(Some(values.dtype.clone()));
    }
    // CF gives these the type of the values.
    let of_values = ["_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"].contains(&name);
    let path = normal_path(node);
    let found = store.find(&path)?;
    Ok(match found {
        Node::Array(array) if of_values => Some(array.schema().dtype.clone()),
        _ => None,
    })
}

/// The error for a missing attribute.
fn no_attribute(store: &OpenStore, node: &str, name: &str, attributes: &Attributes) -> Error {
    // Bookkeeping attributes of the format are not for users.
    let names: Vec<&str> = user_attributes(attributes).into_iter().map(|(name, _)| name).collect();
    let hint = did_you_mean(name, names.iter().copied());
    Error::invalid(format!("{}: {node} has no attribute {name:?}{hint}", store.path().display()))
}

/// Checks an attribute edit against the existing attributes.
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
