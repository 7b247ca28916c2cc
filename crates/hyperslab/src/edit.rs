//! Changes to an existing store: attributes, names, nodes.
//!
//! A change is made in place if the format can do so safely. Otherwise the store is rewritten beside the old one, from a
//! [view](view) that includes the change, and replaces it in one step. Either way, a killed process leaves the old store or the
//! new one.
//!
//! Of a store at a URL, a single file is changed in a local copy, which replaces the version that was downloaded. In a directory
//! store, only the objects that differ are uploaded if the format can change them in place.

mod changes;
mod fit;
#[cfg(feature = "remote")]
mod remote;
mod value;
mod view;

use std::path::Path;

use hyperslab_core::{
    Attribute, Attributes, CreateOptions, Error, Node, Result, Sink, StoreForm, did_you_mean, normal_path,
};

pub(crate) use changes::Changes;
use changes::{AttributeEdit, new_path, struct_above};
pub use fit::attribute_value;
pub use value::parse_attribute;
pub(crate) use view::edited;

use crate::convert::{ConvertOptions, Progress, convert_into, portable_attributes};
use crate::{Format, OpenOptions, OpenStore, create, open_with};

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
        /// Its new path. A name without a slash stays in the same group; a path counts from the root.
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
    #[cfg(feature = "remote")]
    if let Some(url) = crate::location::remote_url(path) {
        return remote::edit(url, edits, options, progress);
    }
    crate::location::check_local(path, "editing")?;
    let name = path.display().to_string();
    let target = path.canonicalize().map_err(|source| Error::io(name.as_str(), source))?;
    let plan = Plan::new(path, edits, options)?;
    let read_only =
        target.metadata().map_err(|source| Error::io(name.as_str(), source))?.permissions().readonly();
    if read_only {
        return Err(Error::invalid(format!(
            "{name} is read-only; make it writable first. Nothing was changed"
        )));
    }
    plan.check_format(path)?;
    let Plan { stored, format, edits, changes, mut report } = plan;
    match in_place(&target, format, &edits, options.dry_run) {
        Ok(()) => report.in_place = true,
        Err(why) if why.is_unsupported() => rewrite(&target, format, &stored, changes, options, progress)?,
        Err(why) => return Err(why),
    }
    report.applied = !options.dry_run && !edits.is_empty();
    Ok(report)
}

/// Checked edits of an open store.
struct Plan {
    /// The store, with its content in the forms in which it is stored: a rewritten store holds the same forms.
    stored: OpenStore,
    format: Format,
    edits: Vec<Edit>,
    changes: Changes,
    report: EditReport,
}

impl Plan {
    fn new(path: &Path, edits: &[Edit], options: &EditOptions) -> Result<Self> {
        let name = crate::location_name(path);
        let store = open_with(path, &OpenOptions { mapped: false, ..options.open.clone() })?;
        let format = store
            .driver()
            .ok_or_else(|| Error::unsupported(name.as_str(), "editing a store of an unknown format"))?;
        if !format.info().capabilities.attributes && edits.iter().any(Edit::is_of_attribute) {
            return Err(Error::invalid(format!(
                "{name}: {} has no attributes; convert it to another format first",
                format.name()
            )));
        }
        let edits = edits.iter().map(|edit| checked(&store, format, edit)).collect::<Result<Vec<Edit>>>()?;
        let stored = store.with_forms_as_stored();
        let changes = Changes::new(&stored, &edits)?;
        let report = EditReport { changes: described(&edits, options.dry_run), ..EditReport::default() };
        Ok(Self { stored, format, edits, changes, report })
    }

    /// Fails if the format cannot be written.
    fn check_format(&self, path: &Path) -> Result<()> {
        let capabilities = self.format.info().capabilities;
        if capabilities.append || capabilities.create {
            return Ok(());
        }
        Err(self.format.driver().unsupported(path, "editing"))
    }
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
                (normal_path(from), format!("{would}renamed to {}", new_path(from, to)))
            }
            Edit::Remove { node } => (normal_path(node), format!("{would}removed")),
        })
        .collect()
}

/// The edit as the store's format can hold it. Fails if it names a missing attribute or only a part of an array.
fn checked(store: &OpenStore, format: Format, edit: &Edit) -> Result<Edit> {
    match edit {
        Edit::DeleteAttribute { node, name } => {
            let attributes = attributes_of(store, node)?;
            if attributes.get(name).is_none() {
                return Err(no_attribute(store, node, name, &attributes));
            }
        }
        Edit::SetAttribute { name, .. } if name.is_empty() => {
            return Err(Error::invalid("an attribute needs a name, as in units=K"));
        }
        Edit::SetAttribute { .. } => {}
        Edit::Rename { from: node, .. } | Edit::Remove { node } => {
            if let Some(array) = struct_above(store, node) {
                let (path, node) = (store.path().display(), normal_path(node));
                return Err(Error::invalid(format!(
                    "{path}: {node} is a member of the array {array}; members cannot be renamed or removed"
                )));
            }
        }
    }
    fit::fitted(store, format, edit)
}

/// Changes the store in place. Fails with [`Unsupported`](Error::Unsupported), leaving it unchanged, if the format cannot.
fn in_place(target: &Path, format: Format, edits: &[Edit], dry_run: bool) -> Result<()> {
    if !format.info().capabilities.append {
        return Err(format.driver().unsupported(target, "editing in place"));
    }
    apply(create(target, format, &CreateOptions::default().with_append(true))?, edits, dry_run)
}

/// Applies the edits through a sink for additions.
fn apply(mut sink: Box<dyn Sink>, edits: &[Edit], dry_run: bool) -> Result<()> {
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
            Edit::Rename { from, to } => sink.rename(&normal_path(from), &new_path(from, to))?,
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
    if !format.info().capabilities.create {
        return Err(format.driver().unsupported(target, "editing"));
    }
    let form = if target.is_dir() { StoreForm::Directory } else { StoreForm::File };
    check_rewritable(store, format, form)?;
    let convert_options = rewrite_options(&changes, options);
    let edited = edited(store, changes);
    let permissions = target.metadata().ok().map(|metadata| metadata.permissions());
    convert_into(&edited, target, format, &convert_options, progress).map_err(with_advice)?;
    if let Some(permissions) = permissions.filter(|_| !options.dry_run && target.is_file()) {
        // The content has been replaced, so failing to restore the permissions is not an error.
        let _ = std::fs::set_permissions(target, permissions);
    }
    Ok(())
}

/// Fails if the store cannot be rewritten without losing content.
fn check_rewritable(store: &OpenStore, format: Format, form: StoreForm) -> Result<()> {
    let info = format.info();
    if form != info.created_form() {
        return Err(Error::invalid(format!(
            "{}: a {} store that is a {form} cannot be edited; convert it to a new store, and edit that",
            store.path().display(),
            info.name
        )));
    }
    if info.capabilities.fragments {
        return Err(Error::invalid(format!(
            "{}: this change to a {} store cannot be made in place, and rewriting the store would lose its earlier versions; \
             convert it to a new store instead",
            store.path().display(),
            info.name
        )));
    }
    Ok(())
}

/// The options for converting a store to itself.
fn rewrite_options(changes: &Changes, options: &EditOptions) -> ConvertOptions {
    ConvertOptions {
        replace: true,
        strict: true,
        keep_bookkeeping: !changes.moves_nodes(),
        rewrite: true,
        dry_run: options.dry_run,
        ..ConvertOptions::default()
    }
}

/// Explains how to make the change in the error about a reference to a node that was renamed or removed.
fn with_advice(why: Error) -> Error {
    match why {
        Error::Invalid(message) if message.contains("a reference to") || message.contains(" references ") => {
            Error::invalid(format!(
                "{message}. References do not follow a node that is renamed or removed; remove the array or attribute with the \
             reference first"
            ))
        }
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

/// The error for a missing attribute.
fn no_attribute(store: &OpenStore, node: &str, name: &str, attributes: &Attributes) -> Error {
    // Bookkeeping attributes of the format are not for users.
    let names: Vec<&str> = user_attributes(attributes).into_iter().map(|(name, _)| name).collect();
    let hint = did_you_mean(name, names.iter().copied());
    Error::invalid(format!("{}: {node} has no attribute {name:?}{hint}", store.path().display()))
}

/// The change of an attribute, and its node.
fn attribute_edit(edit: &Edit) -> Option<(String, AttributeEdit)> {
    match edit {
        Edit::SetAttribute { node, name, value } => {
            Some((normal_path(node), AttributeEdit::Set(name.clone(), value.clone())))
        }
        Edit::DeleteAttribute { node, name } => {
            Some((normal_path(node), AttributeEdit::Delete(name.clone())))
        }
        Edit::Rename { .. } | Edit::Remove { .. } => None,
    }
}
