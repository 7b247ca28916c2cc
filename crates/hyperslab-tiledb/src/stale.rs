//! Unused objects in an array's directory: leftovers of killed writers, consolidations and vacuums.

use std::collections::HashSet;

use hyperslab_core::Result;

use crate::array::OpenArray;

/// One leftover.
#[derive(Debug, Clone)]
pub(crate) struct Stale {
    /// The name of the check that reports it.
    pub(crate) check: &'static str,
    /// The code of its fix.
    pub(crate) code: &'static str,
    /// A description of the problem.
    pub(crate) found: String,
    /// A description of the fix.
    pub(crate) fix: String,
    pub(crate) action: FixAction,
}

/// The action that fixes a leftover.
#[derive(Debug, Clone)]
pub(crate) enum FixAction {
    /// Remove this file or folder of the array.
    Remove(String),
    /// A consolidated commit file names this one and stays, so mark the name as ignored.
    Ignore(String),
}

/// The leftovers of an array. Readers see none of them, except commits of missing fragments, which every reader fails on, and
/// vacuum lists that hide fragments that nothing replaced.
pub(crate) fn find(array: &OpenArray) -> Result<Vec<Stale>> {
    let mut all = Vec::new();
    orphans(array, &mut all)?;
    commits(array, &mut all)?;
    vacuum_lists(array, &mut all)?;
    footers(array, &mut all)?;
    Ok(all)
}

/// The fragments whose folders exist.
fn existing_fragments(array: &OpenArray) -> HashSet<&str> {
    let root = array.listing.root.iter().filter(|(name, folder)| *folder && name.ending.is_empty());
    let below = array.listing.fragments.iter();
    below.chain(root.map(|(name, _)| name)).map(|name| name.stem.as_str()).collect()
}

/// Fragments that were never committed. Those of a vacuum list were replaced and wait for the vacuum.
fn orphans(array: &OpenArray, all: &mut Vec<Stale>) -> Result<()> {
    let commits = array.commits()?;
    let listed: HashSet<&String> = commits.vacuums.iter().flat_map(|(_, names)| names).collect();
    for name in &array.listing.fragments {
        if !commits.fragments.contains_key(&name.stem) && !listed.contains(&name.stem) {
            all.push(Stale {
                check: "orphan_fragment",
                code: "remove_orphan_fragments",
                found: format!("{} was never committed", name.stem),
                fix: format!("remove the fragment {}, which was never committed", name.stem),
                action: FixAction::Remove(format!("__fragments/{}", name.stem)),
            });
        }
    }
    Ok(())
}

/// Commits of missing fragments.
fn commits(array: &OpenArray, all: &mut Vec<Stale>) -> Result<()> {
    let (commits, existing) = (array.commits()?, existing_fragments(array));
    for name in commits.fragments.keys().filter(|name| !existing.contains(name.as_str())) {
        let stale = |action| Stale {
            check: "stale_commit",
            code: "remove_stale_commits",
            found: format!("{name} was committed but is missing"),
            fix: format!("remove the commit of {name}, whose folder is missing"),
            action,
        };
        let file = format!("{name}.wrt");
        if array.listing.commits.iter().any(|own| own.stem == *name && own.ending == "wrt") {
            all.push(stale(FixAction::Remove(format!("__commits/{file}"))));
        }
        if commits.consolidated.contains(name) {
            all.push(stale(FixAction::Ignore(format!("__commits/{file}"))));
        }
    }
    for name in array.listing.commits.iter().filter(|name| name.ending == "tmp") {
        all.push(Stale {
            check: "stale_commit",
            code: "remove_stale_commits",
            found: format!("{}.tmp is an incomplete commit", name.stem),
            fix: format!("remove {}.tmp, which a killed consolidation left", name.stem),
            action: FixAction::Remove(format!("__commits/{}.tmp", name.stem)),
        });
    }
    Ok(())
}

/// Vacuum lists whose fragments are all gone, and lists that hide fragments that nothing replaced.
fn vacuum_lists(array: &OpenArray, all: &mut Vec<Stale>) -> Result<()> {
    let (commits, existing) = (array.commits()?, existing_fragments(array));
    for (vac, names) in &commits.vacuums {
        let gone = names.iter().all(|name| !existing.contains(name.as_str()));
        let (found, fix) = if gone {
            (format!("{}.vac names fragments that are gone", vac.stem), "names fragments that are gone")
        } else if !commits.replaces(&vac.stem) {
            (format!("{}.vac hides fragments that nothing replaced", vac.stem), "hides what nothing replaced")
        } else {
            continue;
        };
        let below = array.listing.commits.iter().any(|own| own.stem == vac.stem && own.ending == "vac");
        let folder = if below { "__commits/" } else { "" };
        all.push(Stale {
            check: "stale_vacuum_list",
            code: "remove_stale_vacuum_lists",
            found,
            fix: format!("remove {}.vac, which {fix}", vac.stem),
            action: FixAction::Remove(format!("{folder}{}.vac", vac.stem)),
        });
    }
    Ok(())
}

/// Consolidated footers that name missing fragments or cannot be read. Each fragment has its own footer.
fn footers(array: &OpenArray, all: &mut Vec<Stale>) -> Result<()> {
    let (commits, existing) = (array.commits()?, existing_fragments(array));
    for file in &array.listing.fragment_metas {
        let why = match array.footer_file(file) {
            Ok(footers) => footers
                .iter()
                .any(|(name, _)| !existing.contains(name.as_str()) && !commits.fragments.contains_key(name))
                .then(|| "names fragments that are gone".to_owned()),
            // Without the key, nothing can be checked.
            Err(hyperslab_core::Error::Corrupt { .. }) => Some("cannot be read".to_owned()),
            Err(_) => None,
        };
        if let Some(why) = why {
            all.push(Stale {
                check: "stale_footers",
                code: "remove_stale_footers",
                found: format!("{file} {why}"),
                fix: format!("remove {file}, which {why}"),
                action: FixAction::Remove(format!("__fragment_meta/{file}")),
            });
        }
    }
    Ok(())
}
