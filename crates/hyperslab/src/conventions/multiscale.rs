//! OME-Zarr multiscale images: one image at several resolutions, described by the attributes of a group.
//!
//! Versions 0.1 to 0.4 store `multiscales` directly among the attributes, 0.5 inside `ome`.

use hyperslab_core::{Attributes, Error, Node, Result, child_path, normal_path};
use serde_json::{Value, json};

use crate::OpenStore;

/// One image at several resolutions.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Multiscale {
    /// The version of OME-Zarr.
    pub version: Option<String>,
    /// The name of the image.
    pub name: Option<String>,
    /// The axes in the order of the array: slowest first.
    pub axes: Vec<Axis>,
    /// The arrays, finest first.
    pub levels: Vec<Level>,
}

/// An axis of a multiscale image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Axis {
    /// Its name, such as `x`.
    pub name: String,
    /// `space`, `time`, `channel` or another.
    pub kind: Option<String>,
    /// The unit of its coordinates.
    pub unit: Option<String>,
}

/// One resolution of a multiscale image.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Level {
    /// The path of the array, below the group.
    pub path: String,
    /// The distance between two cells in coordinate units, per axis; empty if not given.
    pub scale: Vec<f64>,
    /// The coordinate of the first cell, per axis; empty if not given.
    pub translation: Vec<f64>,
}

impl Multiscale {
    /// The images that a group's attributes describe. Invalid entries are left out.
    #[must_use]
    pub fn all(attributes: &Attributes) -> Vec<Self> {
        let ome = attributes.get("ome").map(hyperslab_core::Attribute::to_json);
        let version =
            ome.as_ref().and_then(|ome| ome.get("version")).and_then(Value::as_str).map(str::to_owned);
        let listed = match &ome {
            Some(ome) => ome.get("multiscales").cloned(),
            None => attributes.get("multiscales").map(hyperslab_core::Attribute::to_json),
        };
        let listed = listed.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        listed.iter().filter_map(|entry| Self::parse(entry, version.as_deref())).collect()
    }

    fn parse(entry: &Value, version: Option<&str>) -> Option<Self> {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let axis = |value: &Value| match value {
            Value::String(name) => Some(Axis { name: name.clone(), kind: None, unit: None }),
            object => Some(Axis {
                name: text(object, "name")?,
                kind: text(object, "type"),
                unit: text(object, "unit"),
            }),
        };
        let axes = entry.get("axes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let common = transform(entry);
        let level = |value: &Value| {
            let path = text(value, "path").filter(|path| is_below(path))?;
            let own = transform(value);
            Some(Level { path, scale: combine(own.0, &common.0, |a, b| a * b), translation: own.1 })
        };
        let levels: Vec<Level> = entry.get("datasets")?.as_array()?.iter().filter_map(level).collect();
        let version = version.map(str::to_owned).or_else(|| text(entry, "version"));
        let axes = axes.iter().filter_map(axis).collect();
        (!levels.is_empty()).then_some(Self { version, name: text(entry, "name"), axes, levels })
    }

    /// The output of `tet info --json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let axes: Vec<Value> = self
            .axes
            .iter()
            .map(|axis| json!({"name": axis.name, "type": axis.kind, "unit": axis.unit}))
            .collect();
        let levels: Vec<Value> = self
            .levels
            .iter()
            .map(|level| json!({"path": level.path, "scale": level.scale, "translation": level.translation}))
            .collect();
        json!({"name": self.name, "version": self.version, "axes": axes, "levels": levels})
    }
}

/// Returns true if this is a normalised path below a group.
fn is_below(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Scale and translation of `coordinateTransformations`.
fn transform(value: &Value) -> (Vec<f64>, Vec<f64>) {
    let listed = value.get("coordinateTransformations").and_then(Value::as_array);
    let listed = listed.map(Vec::as_slice).unwrap_or_default();
    let numbers = |kind: &str| {
        let found = listed.iter().find_map(|one| one.get(kind).and_then(Value::as_array));
        let numbers: Option<Vec<f64>> = found.and_then(|list| list.iter().map(Value::as_f64).collect());
        numbers.unwrap_or_default()
    };
    (numbers("scale"), numbers("translation"))
}

fn combine(own: Vec<f64>, common: &[f64], by: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    if own.len() == common.len() { own.iter().zip(common).map(|(a, b)| by(*a, *b)).collect() } else { own }
}

/// The path of a level of a multiscale image in the group `node`, or in the only group that has one.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if there is no such image, several images, or no such level.
pub fn level_path(store: &OpenStore, node: Option<&str>, level: usize) -> Result<String> {
    let mut found: Vec<(String, Multiscale)> = Vec::new();
    let mut note = |path: &str, attributes: &Attributes| {
        found.extend(Multiscale::all(attributes).into_iter().map(|image| (path.to_owned(), image)));
    };
    match node {
        Some(node) => {
            if let Node::Group(attributes) = store.node(node)? {
                note(&normal_path(node), &attributes);
            }
        }
        None => store.walk(&mut |path, node| {
            if let Ok(Node::Group(attributes)) = node {
                note(path, &attributes);
            }
            Ok(())
        })?,
    }
    let name = store.path().display();
    match found.as_slice() {
        [] => Err(Error::invalid(format!(
            "{name}: only geometries and multiscale images have levels, and this store has neither"
        ))),
        [(path, image), ..] if found.len() == 1 || node.is_some() => {
            let level = image.levels.get(level).ok_or_else(|| {
                Error::invalid(format!(
                    "{name}: no such level; {path} has levels 0 to {}",
                    image.levels.len() - 1
                ))
            })?;
            Ok(child_path(path, &level.path))
        }
        several => {
            let paths: Vec<_> = several.iter().take(8).map(|(path, _)| path.as_str()).collect();
            Err(Error::invalid(format!(
                "{name}: there are several images; choose one of: {}",
                paths.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use hyperslab_core::Attribute;

    use super::*;

    fn attributes(document: Value) -> Attributes {
        let object = document.as_object().unwrap();
        object.iter().map(|(name, value)| (name.clone(), Attribute::Json(value.clone()))).collect()
    }

    #[test]
    fn both_layouts_are_understood() {
        let image = json!({"version": "0.4", "name": "cells", "axes": [{"name": "y", "type": "space", "unit": "micrometer"}, "x"],
            "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [0.5, 0.25]}]},
                         {"path": "s/1", "coordinateTransformations": [{"type": "scale", "scale": [1, 0.5]}, {"type": "translation", "translation": [1, 2]}]}]});
        let old = Multiscale::all(&attributes(json!({"multiscales": [image.clone(), {"datasets": []}]})));
        let new = Multiscale::all(&attributes(json!({"ome": {"version": "0.5", "multiscales": [image]}})));
        assert_eq!((old.len(), new.len()), (1, 1));
        assert_eq!((old[0].version.as_deref(), new[0].version.as_deref()), (Some("0.4"), Some("0.5")));
        assert_eq!(old[0].levels, new[0].levels);
        assert_eq!(new[0].levels[1].path, "s/1");
        assert_eq!(
            (new[0].levels[0].scale.as_slice(), new[0].levels[1].translation.as_slice()),
            (&[0.5, 0.25][..], &[1.0, 2.0][..])
        );
        assert_eq!(new[0].axes[0].unit.as_deref(), Some("micrometer"));
    }

    #[test]
    fn paths_that_leave_the_group_are_left_out() {
        let image = json!({"datasets": [{"path": "../x"}, {"path": "/etc"}, {"path": ""}, {"path": "0"}]});
        let found = Multiscale::all(&attributes(json!({"multiscales": [image]})));
        assert_eq!(found[0].levels.len(), 1);
        assert!(Multiscale::all(&attributes(json!({"multiscales": 3, "ome": "x"}))).is_empty());
    }
}
