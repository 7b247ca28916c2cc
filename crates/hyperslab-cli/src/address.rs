//! Parses NODE and SELECTION from the words after PATH.

use hyperslab::conventions::level_path;
use hyperslab::{Node, OpenStore, Result, Selection};

/// The node and the selections named by these words. A word that starts with a slash is a node. Any other word is a selection if
/// it parses as one; the first that does not is the node.
pub(crate) fn node_and_selection(words: &[String]) -> Result<(Option<String>, Selection)> {
    let (mut node, mut selection) = (None, Selection::all());
    for word in words {
        let looks = !word.starts_with('/') && (word.trim_end().ends_with(']') || word.contains(['=', '~']));
        if node.is_none() && !looks {
            node = Some(word.clone());
        } else {
            selection = selection.and(word.parse()?);
        }
    }
    Ok((node, selection))
}

/// The named node, or the only one. Names may contain brackets: only if no node has the full name is its end a selection, as in
/// `/t[0:5]`.
pub(crate) fn chosen_node(
    store: &OpenStore,
    named: Option<String>,
    selection: Selection,
) -> Result<(String, Selection)> {
    let Some(named) = named else { return Ok((store.only_node()?, selection)) };
    let Err(missing) = store.find(&named) else { return Ok((named, selection)) };
    match named.find('[').map(|at| named.split_at(at)) {
        Some((node, picked)) if missing.is_not_found() && store.node(node).is_ok() => {
            Ok((node.to_owned(), picked.parse::<Selection>()?.and(selection)))
        }
        _ => Err(missing),
    }
}

/// Like [`chosen_node`], but a level chooses one of the arrays of a multiscale image. Levels of a geometry are left to the
/// geometry.
pub(crate) fn chosen_level(
    store: &OpenStore,
    (named, selection): (Option<String>, Selection),
    level: Option<usize>,
) -> Result<(String, Selection)> {
    let Some(level) = level else { return chosen_node(store, named, selection) };
    match chosen_node(store, named.clone(), selection.clone()) {
        Ok((node, selection)) if matches!(store.node(&node), Ok(Node::Geometry(_))) => Ok((node, selection)),
        _ => Ok((level_path(store, named.as_deref(), level)?, selection)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_into_node_and_selections() -> Result<()> {
        let words = |words: &[&str]| {
            node_and_selection(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(words(&[])?, (None, Selection::all()));
        assert_eq!(words(&["t"])?.0.as_deref(), Some("t"));
        assert_eq!(words(&["/t", "[0]"])?.1.items.len(), 1);
        assert_eq!(words(&["[0]"])?.0, None);
        assert_eq!(words(&["time[0:2]", "x=1..2"])?.1.items.len(), 2);
        assert_eq!(words(&["/m[1][2]", "[0]"])?.0.as_deref(), Some("/m[1][2]"));
        assert!(words(&["/a", "/b"]).is_err());
        Ok(())
    }
}
