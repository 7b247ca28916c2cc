//! The names in use.

use std::collections::BTreeSet;

use hyperslab_core::{Error, Result, normal_path};

/// The maximum name length that other readers support.
const MOST_NAME: usize = 1024;

/// The paths of a file's groups and arrays. The format allows duplicate names; we do not.
#[derive(Debug, Default)]
pub(crate) struct Names {
    groups: BTreeSet<String>,
    arrays: BTreeSet<String>,
}

impl Names {
    /// Registers the path of a group, and returns it in normal form. The root always exists and may be described.
    pub(crate) fn group(&mut self, path: &str) -> Result<String> {
        let path = normal_path(path);
        self.refuse_under_array(&path)?;
        let is_new = self.groups.insert(path.clone()) || path == "/";
        if self.arrays.contains(&path) || !is_new {
            return Err(taken(&path));
        }
        Ok(path)
    }

    /// The name of an array at this path. An array at the root is called `data`.
    pub(crate) fn array_name(path: &str) -> String {
        let mut path = normal_path(path);
        if path == "/" {
            path.push_str("data");
        }
        path.split_off(1)
    }

    /// Registers the path of an array, and returns its name.
    pub(crate) fn array(&mut self, path: &str) -> Result<String> {
        let path = format!("/{}", Self::array_name(path));
        if path.len() > MOST_NAME {
            return Err(Error::invalid(format!(
                "the name has {} bytes, but .tet allows at most {MOST_NAME}",
                path.len() - 1
            )));
        }
        self.refuse_under_array(&path)?;
        let below = format!("{path}/");
        let is_group = self.groups.contains(&path)
            || self.arrays.range(below.clone()..).next().is_some_and(|next| next.starts_with(&below));
        if is_group || !self.arrays.insert(path.clone()) {
            return Err(taken(&path));
        }
        Ok(Self::array_name(&path))
    }

    /// Refuses nodes below an array.
    fn refuse_under_array(&self, path: &str) -> Result<()> {
        let mut above = path.match_indices('/').skip(1).map(|(end, _)| &path[..end]);
        match above.find(|above| self.arrays.contains(*above)) {
            Some(array) => Err(Error::invalid(format!("{path} cannot be under {array}, which is an array"))),
            None => Ok(()),
        }
    }
}

fn taken(path: &str) -> Error {
    Error::invalid(format!("{path} already exists"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_taken_once() -> Result<()> {
        let mut names = Names::default();
        assert_eq!(names.group("/")?, "/");
        assert_eq!(names.group("")?, "/");
        assert_eq!(names.group("g")?, "/g");
        assert_eq!(names.array("g/x")?, "g/x");
        assert_eq!(names.array("/")?, "data");
        assert_eq!(names.array("h/i/j")?, "h/i/j");
        for taken in ["g", "g/x", "/g//x/", "g/x/y", "h", "h/i", "data", &"n".repeat(1024)] {
            assert!(names.array(taken).is_err(), "{taken}");
        }
        assert!(names.group("g").is_err());
        assert!(names.group("g/x").is_err());
        assert!(names.group("g/x/y").is_err());
        assert_eq!(names.group("h/i")?, "/h/i");
        assert_eq!(names.array("g/xx")?, "g/xx");
        Ok(())
    }
}
