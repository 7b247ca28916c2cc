//! The name that was probably meant.

/// Of these names, the one that differs least from a misspelt one; `None` when none is near.
pub(crate) fn closest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let few = (wrong.chars().count() + 1) / 3;
    let distances =
        names.into_iter().map(|name| (distance(&wrong.to_lowercase(), &name.to_lowercase()), name));
    distances
        .filter(|(distance, _)| *distance <= few)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Letters to insert, remove, replace or swap with their neighbour to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            rows[i][j] = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                rows[i][j] = rows[i][j].min(rows[i - 2][j - 2] + 1);
            }
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_mistakes_are_found() {
        let names = ["count", "type", "score"];
        assert_eq!(closest("cuont", names), Some("count"));
        assert_eq!(closest("Type", names), Some("type"));
        assert_eq!(closest("scores", names), Some("score"));
        assert_eq!(closest("weight", names), None);
        assert_eq!(closest("", names), None);
    }
}
