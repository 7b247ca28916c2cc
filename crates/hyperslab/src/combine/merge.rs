//! Merges the attributes of several stores.

use std::str::FromStr;

use hyperslab_core::{Attributes, Error, Result};

use super::examine::{same_attribute, shown};

/// How to treat attributes that differ between stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AttributeRule {
    /// Use the first store's value.
    #[default]
    First,
    /// Leave them out: keep only attributes on which all stores agree.
    Common,
    /// Report an error.
    Same,
}

impl FromStr for AttributeRule {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "first" => Ok(Self::First),
            "common" => Ok(Self::Common),
            "same" => Ok(Self::Same),
            _ => Err(Error::invalid(format!(
                "{name:?} is not a rule for attributes; choose first, common or same"
            ))),
        }
    }
}

/// Merges the attributes of one node. `all` holds those of the first store without bookkeeping; the others are looked up by name.
/// The units of a rebased array are already the same.
pub(super) fn merged<'a>(
    rule: AttributeRule,
    path: &str,
    (first_name, all, first): (&'a str, &'a Attributes, &'a Attributes),
    others: impl Iterator<Item = (&'a str, &'a Attributes, bool)>,
    notes: &mut Vec<(String, String)>,
) -> Result<Attributes> {
    let mut differing: Vec<String> = Vec::new();
    for (store, attributes, rebased) in others {
        let names = first.iter().chain(attributes.iter()).map(|(name, _)| name);
        for name in names.filter(|name| !(rebased && *name == "units")) {
            let (own, known) = (attributes.get(name), first.get(name));
            if same_attribute(own, known) || differing.iter().any(|other| other == name) {
                continue;
            }
            if rule == AttributeRule::Same {
                let shown = |attribute: Option<_>| attribute.map_or("none".to_owned(), shown);
                return Err(Error::invalid(format!(
                    "{store}: attribute {name:?} of {path} is {}, but {} in {}",
                    shown(own),
                    shown(known),
                    first_name
                )));
            }
            differing.push(name.to_owned());
        }
    }
    if differing.is_empty() {
        return Ok(all.clone());
    }
    let names = differing.join(", ");
    let (kept, what) = match rule {
        AttributeRule::Common => (
            all.filtered(|name, _| !differing.iter().any(|other| other == name)),
            "left out, because the files differ in them",
        ),
        _ => (all.clone(), "taken from the first file; others differ"),
    };
    notes.push((path.to_owned(), format!("attributes {names}: {what}")));
    Ok(kept)
}
