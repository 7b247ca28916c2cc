//! Translates format details of the source for the target: objects by their paths in the target, other files by their names
//! relative to it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{ArraySpec, Attributes, LinkTarget, ObjectId, StoredLayout, TypeName};

use super::ConvertReport;
use super::relocate::relocated;
use crate::OpenStore;

/// Paths in the source and the target.
pub(super) struct Stored<'a> {
    pub(super) source: &'a OpenStore,
    pub(super) target: &'a Path,
    /// The path of each converted object.
    pub(super) paths: &'a HashMap<ObjectId, String>,
    /// Whether everything is converted unchanged.
    pub(super) verbatim: bool,
    pub(super) materialise: bool,
}

impl Stored<'_> {
    /// Names the types that attributes use by their paths.
    pub(super) fn attributes(&self, path: &str, attributes: &mut Attributes, report: &mut ConvertReport) {
        let names: Vec<String> = attributes.iter().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            let Some(mut stored) = attributes.stored(&name).cloned() else { continue };
            if stored.named_type.is_some() {
                let what = || format!("attribute {name:?}");
                stored.named_type = self.type_name(path, stored.named_type, what, report);
                attributes.set_stored(name, stored);
            }
        }
    }

    /// Names the type that an array uses by its path, and other files relative to the target.
    pub(super) fn array(&self, path: &str, spec: &mut ArraySpec, report: &mut ConvertReport) {
        let stored = &mut spec.stored;
        stored.named_type = self.type_name(path, stored.named_type.take(), || "the array".to_owned(), report);
        if self.verbatim {
            // Attributes hold the dimension names.
            spec.dimensions.fill(None);
        }
        match &mut stored.layout {
            Some(StoredLayout::Virtual(sources)) if self.verbatim && !self.materialise => {
                for source in Arc::make_mut(sources) {
                    if let Some(name) = self.moved(path, &source.file, report) {
                        source.file = name;
                    }
                }
            }
            Some(StoredLayout::Virtual(_)) => self.materialise(path, spec, report),
            Some(StoredLayout::External(files)) if !self.paths.is_empty() => {
                report.change(
                    path,
                    format!("the values are now in the file itself, not in {}", files.join(", ")),
                );
            }
            _ => {}
        }
    }

    /// Stores a virtual array with its values.
    pub(super) fn materialise(&self, path: &str, spec: &mut ArraySpec, report: &mut ConvertReport) {
        if !self.paths.is_empty() {
            report.change(path, "a virtual array is stored with its values");
        }
        spec.stored.layout = None;
    }

    /// Returns true if the target keeps the array virtual.
    pub(super) fn is_virtual(&self, spec: &ArraySpec) -> bool {
        self.verbatim && matches!(spec.stored.layout, Some(StoredLayout::Virtual(_)))
    }

    /// A link, translated for the target.
    pub(super) fn link(
        &self,
        path: &str,
        link: &LinkTarget<String>,
        report: &mut ConvertReport,
    ) -> LinkTarget<String> {
        let mut link = link.clone();
        if let LinkTarget::External { file, .. } = &mut link
            && let Some(name) = self.moved(path, file, report)
        {
            *file = name;
        }
        link
    }

    fn moved(&self, path: &str, name: &str, report: &mut ConvertReport) -> Option<String> {
        let moved = relocated(name, self.source.path(), self.target)?;
        let what = format!("the external file {name} is {moved} relative to the target's folder");
        if !report.losses.iter().any(|loss| loss.path == path && loss.what == what) {
            report.change(path, what);
        }
        Some(moved)
    }

    fn type_name(
        &self,
        path: &str,
        name: Option<TypeName>,
        what: impl Fn() -> String,
        report: &mut ConvertReport,
    ) -> Option<TypeName> {
        let TypeName::Id(id) = name? else { return None };
        let found = self.paths.get(&id).cloned().map(TypeName::Path);
        if found.is_none() && !self.paths.is_empty() {
            report.change(path, format!("{} no longer refers to a named type", what()));
        }
        found
    }
}
