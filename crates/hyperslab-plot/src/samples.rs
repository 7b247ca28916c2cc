//! The coordinates of an axis as numbers.

/// Positions and their numbers, ordered by position. Times are seconds since `origin`.
#[derive(Debug, Clone)]
pub(crate) struct Samples {
    points: Vec<(f64, f64)>,
    origin: i128,
    even: bool,
}

impl Samples {
    /// Returns `None` unless the numbers strictly ascend or descend.
    pub(crate) fn monotonic(points: Vec<(f64, f64)>, origin: i128) -> Option<Self> {
        let rising = points.windows(2).all(|pair| pair[0].1 < pair[1].1);
        let falling = points.windows(2).all(|pair| pair[0].1 > pair[1].1);
        let even = points.len() > 1 && is_even(&points);
        (points.len() > 1 && (rising || falling)).then_some(Self { points, origin, even })
    }

    pub(crate) const fn origin(&self) -> i128 {
        self.origin
    }

    pub(crate) fn is_falling(&self) -> bool {
        self.points[0].1 > self.points[1].1
    }

    /// Returns true if the numbers are at equal distances, except for rounding.
    pub(crate) const fn is_even(&self) -> bool {
        self.even
    }

    /// The number at a position, extrapolated up to half a cell beyond the ends.
    pub(crate) fn number(&self, position: f64) -> f64 {
        let at = self.points.partition_point(|(own, _)| *own <= position).clamp(1, self.points.len() - 1);
        let ((p0, n0), (p1, n1)) = (self.points[at - 1], self.points[at]);
        n0 + (n1 - n0) * (position - p0) / (p1 - p0)
    }

    /// The position of a number.
    pub(crate) fn position(&self, number: f64) -> f64 {
        let falling = self.is_falling();
        let before = |(_, own): &(f64, f64)| if falling { *own >= number } else { *own <= number };
        let at = self.points.partition_point(before).clamp(1, self.points.len() - 1);
        let ((p0, n0), (p1, n1)) = (self.points[at - 1], self.points[at]);
        p0 + (p1 - p0) * (number - n0) / (n1 - n0)
    }
}

fn is_even(points: &[(f64, f64)]) -> bool {
    let ((first, low), (last, high)) = (points[0], points[points.len() - 1]);
    let slope = (high - low) / (last - first);
    let tolerance = 0.01 * (high - low).abs() / (points.len() - 1) as f64;
    points.iter().all(|(at, number)| (number - low - (at - first) * slope).abs() <= tolerance)
}
