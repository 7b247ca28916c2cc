//! NODE and SELECTION among the words after PATH.

use hyperslab::{OpenStore, Result, Selection};

/// The node and the selections that the words name. A word is a selection when it reads as one; the first other word
/// is the node.
pub(crate) fn node_and_selection(words: &[String]) -> Result<(Option<String>, Selection)> {
    let (mut node, mut selection) = (None, Selection::all());
    for word in words {
        let looks = word.trim_end().ends_with(']') || (word.contains('=') && !word.starts_with('/'));
        if node.is_none() && !looks {
            node = Some(word.clone());
        } else {
            selection = selection.and(word.parse()?);
        }
    }
    Ok((node, selection))
}

/// The named node, or the only one.
pub(crate) fn chosen_node(store: &OpenStore, named: Option<String>) -> Result<String> {
    named.map_or_else(|| store.only_node(), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart() -> Result<()> {
        let words = |words: &[&str]| {
            node_and_selection(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(words(&[])?, (None, Selection::all()));
        assert_eq!(words(&["t"])?.0.as_deref(), Some("t"));
        assert_eq!(words(&["/t", "[0]"])?.1.items.len(), 1);
        assert_eq!(words(&["[0]"])?.0, None);
        assert_eq!(words(&["time[0:2]", "x=1..2"])?.1.items.len(), 2);
        assert!(words(&["/a", "/b"]).is_err());
        Ok(())
    }
}
