//! Where the rows of one chunk are in a result.

use std::collections::HashMap;

/// A row that was not picked.
pub(crate) const NONE: u32 = u32::MAX;

/// Beyond this part of a chunk's rows, a table of all of them is smaller and faster than one of those that were picked.
const FEW: usize = 16;

/// Row to place: few of them in a map, many in a table of all rows.
#[derive(Debug)]
pub(crate) enum Places {
    Few(HashMap<u32, u32>),
    All(Vec<u32>),
}

impl Default for Places {
    fn default() -> Self {
        Self::Few(HashMap::new())
    }
}

impl Places {
    /// The place of a row; `None` if it was not picked.
    pub(crate) fn get(&self, row: usize) -> Option<u32> {
        let place = match self {
            Self::Few(few) => few.get(&u32::try_from(row).ok()?),
            Self::All(all) => all.get(row),
        };
        place.copied().filter(|place| *place != NONE)
    }

    /// Puts one of `rows` rows, fewer than 2^32, at a place.
    pub(crate) fn set(&mut self, row: usize, place: u32, rows: usize) {
        match self {
            Self::Few(few) if few.len() < rows / FEW => {
                few.insert(row as u32, place);
            }
            _ => self.dense(rows)[row] = place,
        }
    }

    /// The table of all of `rows` rows.
    pub(crate) fn dense(&mut self, rows: usize) -> &mut [u32] {
        if let Self::Few(few) = self {
            let mut all = vec![NONE; rows];
            few.iter().for_each(|(row, place)| all[*row as usize] = *place);
            *self = Self::All(all);
        }
        match self {
            Self::All(all) => all,
            Self::Few(_) => &mut [],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found_again() {
        for rows in [1, 5, 100, 1000] {
            let mut places = Places::default();
            for place in 0..rows {
                let row = place * 7 % rows;
                assert!(places.get(row).is_none() || rows % 7 == 0);
                places.set(row, place as u32, rows);
                assert_eq!(places.get(row), Some(place as u32));
            }
            assert_eq!(places.get(rows), None);
            assert_eq!((0..rows).filter_map(|row| places.get(row)).count(), rows);
        }
    }
}
