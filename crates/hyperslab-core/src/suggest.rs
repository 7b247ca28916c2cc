//! Parts of messages: suggestions for misspelt names, and counted nouns.

/// A number with its noun: `1 group`, `2 groups`.
///
/// ```
/// assert_eq!(hyperslab_core::counted(1, "group"), "1 group");
/// assert_eq!(hyperslab_core::counted(0, "chunk"), "0 chunks");
/// ```
#[must_use]
pub fn counted(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// The candidate that a misspelt name most likely means; `None` if none is close.
///
/// ```
/// use hyperslab_core::closest;
/// assert_eq!(closest("temprature", ["time", "temperature"]), Some("temperature"));
/// assert_eq!(closest("md5", ["checksum_md5", "gzip"]), Some("checksum_md5"));
/// assert_eq!(closest("pressure", ["time", "lat"]), None);
/// ```
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let parts =
            |text: &str, part: &str| part.len() >= 3 && text.split(['_', '-', '/']).any(|own| own == part);
        if parts(&candidate, &name) || parts(&name, &candidate) {
            return 1;
        }
        strsim::damerau_levenshtein(&name, &candidate)
    };
    // A one-letter name is close to every other.
    let most = |candidate: &str| {
        let longest = name.chars().count().max(candidate.chars().count());
        (longest / 3).max(1).min(longest.saturating_sub(1))
    };
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= most(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The end of a message about an unknown name: the likely intended name, then all candidates.
///
/// ```
/// use hyperslab_core::did_you_mean;
/// assert_eq!(did_you_mean("tme", ["time", "lat"]), "; did you mean time? There are time, lat");
/// assert_eq!(did_you_mean("x", ["time", "lat"]), "; there are time, lat");
/// ```
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    const MOST: usize = 24;
    let mut all: Vec<&str> = candidates.clone().into_iter().take(MOST + 1).collect();
    if all.is_empty() {
        return String::new();
    }
    if all.len() > MOST {
        all[MOST] = "…";
    }
    let all = all.join(", ");
    match closest(name, candidates) {
        Some(closest) => format!("; did you mean {closest}? There are {all}"),
        None => format!("; there are {all}"),
    }
}
