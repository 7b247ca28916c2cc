//! Variables that a variable's attributes refer to, by the CF conventions.

use hyperslab_core::{Attribute, Attributes, DType, Elements, Values};

/// Attributes whose words are variable names. Words that end in a colon are names too, as in a grid mapping that lists its
/// coordinates.
const NAMES: [&str; 5] = ["coordinates", "bounds", "climatology", "grid_mapping", "ancillary_variables"];
/// Attributes of pairs, such as `area: areacella`: a term and a name.
const PAIRS: [&str; 2] = ["cell_measures", "formula_terms"];

/// The names of the variables that belong to the one with these attributes: coordinates, bounds, grid mappings, ancillary
/// variables, cell measures and formula terms. They may not exist.
pub(crate) fn companions(attributes: &Attributes) -> Vec<String> {
    let text = |name: &&str| attributes.get(name).and_then(Attribute::as_text);
    let mut names: Vec<String> = Vec::new();
    for (text, pairs) in NAMES
        .iter()
        .filter_map(text)
        .map(|text| (text, false))
        .chain(PAIRS.iter().filter_map(text).map(|text| (text, true)))
    {
        for word in text.split_whitespace().filter(|word| !pairs || !word.ends_with(':')) {
            let name = word.trim_end_matches(':');
            if !name.is_empty() && !names.iter().any(|own| own == name) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// Replaces the names of variables in the attributes that refer to them. `renamed` returns the new name; `None` if it stays the
/// same.
pub(crate) fn rename_companions(attributes: &mut Attributes, renamed: &dyn Fn(&str) -> Option<String>) {
    for name in NAMES.iter().chain(&PAIRS) {
        let Some(old) = attributes.get(name) else { continue };
        let Some(text) = old.as_text() else { continue };
        // The first of a pair is a term, not a name.
        let pairs = PAIRS.contains(name);
        let new = |word: &str| match word.strip_suffix(':') {
            Some(_) if pairs => None,
            Some(own) => renamed(own).map(|new| format!("{new}:")),
            None => renamed(word),
        };
        let words: Vec<Option<String>> = text.split_whitespace().map(new).collect();
        if words.iter().any(Option::is_some) {
            let words = words.into_iter().zip(text.split_whitespace());
            let words: Vec<String> = words.map(|(new, old)| new.unwrap_or_else(|| old.to_owned())).collect();
            attributes.set(*name, text_like(old, &words.join(" ")));
        }
    }
}

/// A text of the same kind as the one that it replaces: fixed-length characters stay fixed-length characters, which
/// NetCDF distinguishes from strings. Non-ASCII text is a string.
pub(crate) fn text_like(old: &Attribute, text: &str) -> Attribute {
    let characters = match old {
        Attribute::Values(old) if matches!(old.dtype, DType::FixedBytes(_)) && old.len() == 1 => {
            let elements = Elements::fixed(text.as_bytes().to_vec());
            Values::new(DType::FixedBytes(text.len()), &old.shape, elements).ok()
        }
        _ => None,
    };
    characters.filter(|_| text.is_ascii()).map_or_else(|| text.into(), Attribute::Values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_every_form() {
        let mut attributes = Attributes::new();
        attributes.set("coordinates", "lat lon");
        attributes.set("grid_mapping", "crs: x y other: lat");
        attributes.set("cell_measures", "area: cell_area volume: v");
        attributes.set("formula_terms", "a: ap b: b");
        attributes.set("units", "K");
        attributes.set("bounds", "");
        let names = companions(&attributes);
        assert_eq!(names, ["lat", "lon", "crs", "x", "y", "other", "cell_area", "v", "ap", "b"]);
        assert!(companions(&Attributes::new()).is_empty());
    }
}
