//! Variables that a variable's attributes refer to, by the CF conventions.

use hyperslab_core::Attributes;

/// Attributes whose words are variable names. Words that end in a colon are names too, as in a grid mapping that lists its
/// coordinates.
const NAMES: [&str; 5] = ["coordinates", "bounds", "climatology", "grid_mapping", "ancillary_variables"];
/// Attributes of pairs, such as `area: areacella`: a term and a name.
const PAIRS: [&str; 2] = ["cell_measures", "formula_terms"];

/// The names of the variables that belong to the one with these attributes: coordinates, bounds, grid mappings, ancillary
/// variables, cell measures and formula terms. They may not exist.
pub(crate) fn companions(attributes: &Attributes) -> Vec<String> {
    let text = |name: &&str| attributes.get(name).and_then(hyperslab_core::Attribute::as_text);
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

/// Replaces a variable's name in the attributes that refer to it.
pub(crate) fn rename_companion(attributes: &mut Attributes, from: &str, to: &str) {
    for name in NAMES.iter().chain(&PAIRS) {
        let Some(text) = attributes.get(name).and_then(hyperslab_core::Attribute::as_text) else { continue };
        // The first of a pair is a term, not a name.
        let pairs = PAIRS.contains(name);
        let renamed = |word: &str| match word.strip_suffix(':') {
            Some(own) if own == from && !pairs => format!("{to}:"),
            None if word == from => to.to_owned(),
            _ => word.to_owned(),
        };
        let words: Vec<String> = text.split_whitespace().map(renamed).collect();
        if !text.split_whitespace().eq(words.iter().map(String::as_str)) {
            attributes.set(*name, words.join(" ").as_str());
        }
    }
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
