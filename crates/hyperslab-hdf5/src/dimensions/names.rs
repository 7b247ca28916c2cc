//! Variables that NetCDF-4 stores under another name.
//!
//! A variable may have the name of a dimension that is not its first: `y(x)` beside a dimension `y`. The dimension's
//! scale is the dataset `y`, and the variable is the dataset `_nc4_non_coord_y`. Readers show the variable under its own name.

use std::collections::HashSet;
use std::sync::Arc;

use hyperslab_core::child_path;

use super::is_bare;
use crate::attributes;
use crate::file::File;
use crate::header::Header;
use crate::store::{Resolved, find};

/// The prefix of the stored name of such a variable.
const NON_COORDINATE: &str = "_nc4_non_coord_";

/// The stored path of a variable with this path that is named like a dimension; `None` for the root.
pub(crate) fn non_coordinate_path(path: &str) -> Option<String> {
    let (group, name) = path.rsplit_once('/').filter(|(_, name)| !name.is_empty())?;
    Some(child_path(if group.is_empty() { "/" } else { group }, &format!("{NON_COORDINATE}{name}")))
}

/// The path in the file of the node shown at `path`.
pub(crate) fn stored_path(file: &Arc<File>, path: &str) -> String {
    let shown = match find(file, path) {
        Ok(Resolved::Object(object)) => !is_bare_dimension(&object.file, object.address),
        Ok(Resolved::Dangling(_)) => true,
        Err(_) => false,
    };
    let other = non_coordinate_path(path).filter(|_| !shown);
    other
        .filter(|other| matches!(find(file, other), Ok(Resolved::Object(_))))
        .unwrap_or_else(|| path.to_owned())
}

/// Replaces the stored names of a group's children by those of the variables, and drops the dimensions of these names.
pub(crate) fn shown<T>(
    file: &Arc<File>,
    group: &str,
    children: Vec<T>,
    name: impl Fn(&mut T) -> &mut String,
) -> Vec<T> {
    let mut children = children;
    let variables: HashSet<String> = children
        .iter_mut()
        .filter_map(|child| name(child).strip_prefix(NON_COORDINATE))
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    if variables.is_empty() {
        return children;
    }
    let named_like_them: HashSet<String> = children
        .iter_mut()
        .map(|child| name(child).clone())
        .filter(|name| variables.contains(name))
        .collect();
    let is_bare = |name: &String| match find(file, &child_path(group, name)) {
        Ok(Resolved::Object(object)) => is_bare_dimension(&object.file, object.address),
        _ => false,
    };
    // A name that is taken by something else than a dimension is not reused.
    let (dimensions, taken): (HashSet<_>, HashSet<_>) = named_like_them.into_iter().partition(is_bare);
    children.retain_mut(|child| !dimensions.contains(name(child)));
    for child in &mut children {
        let stored = name(child);
        if let Some(own) = stored.strip_prefix(NON_COORDINATE)
            && !own.is_empty()
            && !taken.contains(own)
        {
            *stored = own.to_owned();
        }
    }
    children
}

/// Returns true if the object is a NetCDF-4 dimension without a variable.
fn is_bare_dimension(file: &Arc<File>, address: u64) -> bool {
    Header::read(file, address)
        .and_then(|header| attributes::raw(file, &header))
        .is_ok_and(|raw| is_bare(file, &raw))
}
