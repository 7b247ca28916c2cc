//! Timestamped names: `__T1_T2_UUID_V`, optionally with an extension such as `.wrt`.
//!
//! Times are decimal milliseconds since 1970, so they must be compared as numbers: `__9_…` is older than `__10_…`.

use hyperslab_core::NodeNames;

/// Names that TileDB uses for files and folders of arrays and groups.
const RESERVED: [&str; 11] = [
    "__array_schema.tdb",
    "__commits",
    "__fragment_meta",
    "__fragments",
    "__group",
    "__kv_schema.tdb",
    "__labels",
    "__lock.tdb",
    "__meta",
    "__schema",
    "__tiledb_group.tdb",
];

/// The rules for names of group members.
pub(crate) const NODE_NAMES: NodeNames =
    NodeNames::new("TileDB", |name| RESERVED.contains(&name) || TimedName::parse(name).is_some());

/// The parts of a timestamped name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimedName {
    /// The whole name without its extension.
    pub(crate) stem: String,
    /// First millisecond.
    pub(crate) start: u64,
    /// Last millisecond.
    pub(crate) end: u64,
    /// The format version, if the name contains one.
    pub(crate) version: Option<u32>,
    /// The part after the first dot: `wrt`, `ok`, `vac`; empty if there is none.
    pub(crate) ending: String,
}

impl TimedName {
    /// Parses `name`; `None` if it does not have this form.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
        let parts: Vec<&str> = stem.strip_prefix("__")?.split('_').collect();
        let uuid = |part: &str| part.len() == 32 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (start, end, version) = match parts.as_slice() {
            // Versions 1 and 2: `__UUID_T`.
            [id, time] if uuid(id) => (time.parse().ok()?, time.parse().ok()?, None),
            [start, end, id] if uuid(id) => (start.parse().ok()?, end.parse().ok()?, None),
            [start, end, id, version] if uuid(id) => {
                (start.parse().ok()?, end.parse().ok()?, Some(version.parse().ok()?))
            }
            _ => return None,
        };
        (start <= end).then(|| Self { stem: stem.to_owned(), start, end, version, ending: ending.to_owned() })
    }

    /// The order in which writes apply: by first millisecond, then by name.
    pub(crate) fn order(&self) -> (u64, &str) {
        (self.start, &self.stem)
    }

    /// Returns true if it is fully inside the window.
    pub(crate) const fn inside(&self, window: TimeWindow) -> bool {
        self.start >= window.start && self.end <= window.end
    }

    /// Returns true if it overlaps the window.
    pub(crate) const fn overlaps(&self, window: TimeWindow) -> bool {
        self.start <= window.end && self.end >= window.start
    }
}

/// The range of milliseconds that a reader sees, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// The first millisecond.
    pub start: u64,
    /// The last millisecond.
    pub end: u64,
}

impl Default for TimeWindow {
    /// All of time.
    fn default() -> Self {
        Self { start: 0, end: u64::MAX }
    }
}

impl TimeWindow {
    /// All of time up to and including this millisecond.
    #[must_use]
    pub const fn until(end: u64) -> Self {
        Self { start: 0, end }
    }

    pub(crate) const fn contains(self, time: u64) -> bool {
        self.start <= time && time <= self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_known() {
        let id = "0123456789abcdef0123456789abcdef";
        let name = TimedName::parse(&format!("__9_10_{id}_22.wrt")).unwrap();
        assert_eq!((name.start, name.end, name.version, name.ending.as_str()), (9, 10, Some(22), "wrt"));
        assert_eq!(TimedName::parse(&format!("__9_10_{id}")).unwrap().version, None);
        assert_eq!(TimedName::parse(&format!("__{id}_77")).unwrap().start, 77);
        for other in ["__schema", "x", "__9_10_abc_22", &format!("__10_9_{id}"), &format!("__-1_9_{id}")] {
            assert_eq!(TimedName::parse(other), None, "{other}");
        }
    }
}
