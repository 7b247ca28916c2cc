//! Colour maps, and the mapping of values to colours.

use hyperslab::driver::did_you_mean;
use hyperslab::{Error, Result};

use crate::scene::Color;

/// The colour of missing values: a grey that no perceptually uniform map contains.
pub(crate) const MISSING: Color = Color::rgb(0xd4, 0xd4, 0xd4);

/// A colour map.
#[derive(Debug, Clone, Copy)]
pub struct ColorMap {
    name: &'static str,
    gradient: colorous::Gradient,
    reversed: bool,
}

/// Maps by name. The first group is perceptually uniform, the second diverging.
const MAPS: &[(&str, colorous::Gradient, bool)] = &[
    ("viridis", colorous::VIRIDIS, false),
    ("magma", colorous::MAGMA, false),
    ("inferno", colorous::INFERNO, false),
    ("plasma", colorous::PLASMA, false),
    ("cividis", colorous::CIVIDIS, false),
    ("turbo", colorous::TURBO, false),
    ("gray", colorous::GREYS, true),
    ("blues", colorous::BLUES, false),
    // From blue to red, as usual for temperatures.
    ("rdbu_r", colorous::RED_BLUE, true),
    ("rdbu", colorous::RED_BLUE, false),
    ("rdylbu", colorous::RED_YELLOW_BLUE, false),
    ("brbg", colorous::BROWN_GREEN, false),
    ("piyg", colorous::PINK_GREEN, false),
];

impl ColorMap {
    /// The map for values that increase from low to high.
    #[must_use]
    pub const fn sequential() -> Self {
        Self { name: "viridis", gradient: colorous::VIRIDIS, reversed: false }
    }

    /// The map for values on both sides of zero.
    #[must_use]
    pub const fn diverging() -> Self {
        Self { name: "rdbu_r", gradient: colorous::RED_BLUE, reversed: true }
    }

    /// A map by its matplotlib name; a trailing `_r` reverses it.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for an unknown name; the message lists the known ones.
    pub fn named(name: &str) -> Result<Self> {
        let wanted = name.to_ascii_lowercase();
        let find = |wanted: &str, turned: bool| {
            MAPS.iter().find(|(own, ..)| *own == wanted).map(|(name, gradient, reversed)| Self {
                name,
                gradient: *gradient,
                reversed: *reversed != turned,
            })
        };
        let turned = || wanted.strip_suffix("_r").and_then(|wanted| find(wanted, true));
        find(&wanted, false).or_else(turned).ok_or_else(|| {
            let names: Vec<&str> = MAPS.iter().map(|(name, ..)| *name).collect();
            Error::invalid(format!("no colour map {name}{}", did_you_mean(name, names)))
        })
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The colour at a position from 0 to 1.
    #[must_use]
    pub fn at(&self, share: f64) -> Color {
        let share = if self.reversed { 1.0 - share } else { share };
        let color = self.gradient.eval_continuous(share.clamp(0.0, 1.0));
        Color::rgb(color.r, color.g, color.b)
    }
}

/// How values map to colours.
#[derive(Debug, Clone, Copy)]
pub struct ColorScale {
    /// The map.
    pub map: ColorMap,
    /// The value of the first colour.
    pub low: f64,
    /// The value of the last colour.
    pub high: f64,
    /// Whether there are values below the first, or above the last.
    pub clipped: (bool, bool),
    /// Whether values are missing.
    pub missing: bool,
}

impl ColorScale {
    /// The colour of a value; NaN is missing.
    #[must_use]
    pub fn color(&self, value: f64) -> Color {
        if value.is_nan() { MISSING } else { self.map.at(self.share(value)) }
    }

    /// The position of a value on the scale, from 0 to 1.
    #[must_use]
    pub fn share(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// The scale for these values: between two percentiles, or given by `range`. Values on both sides of zero get a diverging map
    /// centred at zero, unless a map or a range was chosen.
    #[must_use]
    pub fn of(
        values: &[f64],
        map: Option<ColorMap>,
        range: Option<(f64, f64)>,
        percentiles: (f64, f64),
    ) -> Self {
        let mut finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let missing = values.iter().any(|value| value.is_nan());
        let (mut low, mut high) = range.unwrap_or_else(|| percentile_range(&mut finite, percentiles));
        let both_sides = low < 0.0 && high > 0.0 && (-low).min(high) > 0.1 * (-low).max(high);
        let map = map.unwrap_or_else(|| {
            if both_sides && range.is_none() {
                let far = high.max(-low);
                (low, high) = (-far, far);
                ColorMap::diverging()
            } else {
                ColorMap::sequential()
            }
        });
        if low >= high {
            // A constant gets the middle colour.
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
            (low, high) = (low - room, high + room);
        }
        // Rounding differences do not count as clipping.
        let room = (high - low) * 1e-9;
        let below = values.iter().any(|value| *value < low - room);
        let above = values.iter().any(|value| *value > high + room);
        Self { map, low, high, clipped: (below, above), missing }
    }
}

/// The values at two percentiles, of values in any order.
fn percentile_range(values: &mut [f64], (low, high): (f64, f64)) -> (f64, f64) {
    if values.is_empty() {
        return (0.0, 1.0);
    }
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len() - 1;
    let at = |share: f64| values[(share / 100.0 * last as f64).round().clamp(0.0, last as f64) as usize];
    let (from, to) = (at(low), at(high));
    // Nearly all values are equal, so show the full range.
    if from < to { (from, to) } else { (values[0], values[last]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_determine_the_colours() {
        let mut values: Vec<f64> = (0..1000).map(f64::from).collect();
        values.push(1e9);
        values.push(f64::NAN);
        let scale = ColorScale::of(&values, None, None, (1.0, 99.0));
        assert!((5.0..15.0).contains(&scale.low) && (985.0..995.0).contains(&scale.high), "{scale:?}");
        assert_eq!((scale.clipped, scale.missing), ((true, true), true));
        assert_eq!(scale.color(f64::NAN), MISSING);
        assert_eq!(scale.color(f64::INFINITY), scale.map.at(1.0));
    }

    #[test]
    fn zero_is_in_the_middle_of_a_diverging_map() {
        let scale = ColorScale::of(&[-3.0, 0.0, 1.0], None, None, (0.0, 100.0));
        assert_eq!((scale.map.name(), scale.low, scale.high), ("rdbu_r", -3.0, 3.0));
        let chosen = ColorScale::of(&[-3.0, 1.0], Some(ColorMap::sequential()), None, (0.0, 100.0));
        assert_eq!((chosen.low, chosen.high), (-3.0, 1.0));
    }

    #[test]
    fn constants_and_nothing_have_a_scale() {
        for values in [&[][..], &[f64::NAN], &[2.5, 2.5], &[0.0]] {
            let scale = ColorScale::of(values, None, None, (2.0, 98.0));
            assert!(scale.low < scale.high, "{values:?}");
        }
    }

    #[test]
    fn maps_are_found_by_name() -> Result<()> {
        assert_eq!(ColorMap::named("Viridis_r")?.at(0.0), ColorMap::named("viridis")?.at(1.0));
        assert!(ColorMap::named("jet").is_err_and(|error| error.to_string().contains("viridis, magma")));
        Ok(())
    }
}
