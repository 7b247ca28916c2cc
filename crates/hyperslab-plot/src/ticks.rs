//! Round numbers and dates along an axis.

use hyperslab::Calendar;

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Its position, in the coordinate of the axis.
    pub at: f64,
    /// Its label.
    pub label: String,
}

/// Attoseconds per second, the unit of calendars.
const PER_SECOND: i128 = 1_000_000_000_000_000_000;
const PER_DAY: i128 = 86_400 * PER_SECOND;

/// The round step that divides a span into at most this many parts: 1, 2 or 5 times a power of ten.
fn step(span: f64, most: usize) -> f64 {
    let rough = span / most.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// Round numbers from `low` to `high`, at most about `most` of them; `whole` keeps to integers.
pub(crate) fn numbers(low: f64, high: f64, most: usize, whole: bool) -> Vec<f64> {
    if !(low.is_finite() && high.is_finite() && low < high) {
        return if low == high && low.is_finite() { vec![low] } else { Vec::new() };
    }
    let step = step(high - low, most);
    multiples(low, high, if whole { step.max(1.0).round() } else { step })
}

/// Like [`numbers`], in steps that are usual for angles.
pub(crate) fn degrees(low: f64, high: f64, most: usize) -> Vec<f64> {
    const STEPS: [f64; 6] = [10.0, 15.0, 30.0, 45.0, 60.0, 90.0];
    let span = high - low;
    match STEPS.into_iter().find(|step| span / step <= most as f64 + 0.5) {
        Some(step) if span > 40.0 => multiples(low, high, step),
        _ => numbers(low, high, most, false),
    }
}

fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    if !(0.0..1000.0).contains(&(last - first)) {
        return Vec::new();
    }
    (0..=(last - first) as usize).map(|number| (first + number as f64) * step).collect()
}

/// Numbers as text, all with the digits needed to distinguish them.
pub(crate) fn texts(numbers: &[f64]) -> Vec<String> {
    let largest = numbers.iter().fold(0.0_f64, |largest, number| largest.max(number.abs()));
    let gap = numbers.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(f64::INFINITY, f64::min);
    let gap = match gap {
        gap if gap.is_finite() && gap > 0.0 => gap,
        _ if largest > 0.0 => largest,
        _ => 1.0,
    };
    if largest >= 1e6 || (largest > 0.0 && largest < 1e-3) {
        let power = largest.log10().floor();
        let digits = (power - (gap * 1.000_001).log10().floor()).clamp(0.0, 12.0) as usize;
        return numbers.iter().map(|number| scientific(*number, power as i32, digits)).collect();
    }
    let decimals = (-(gap * 1.000_001).log10().floor()).clamp(0.0, 12.0) as usize;
    // A gap of 0.25 needs one more digit than its power of ten.
    let exact = |decimals: usize| {
        numbers.iter().all(|number| {
            let scaled = number * 10_f64.powi(decimals as i32);
            (scaled - scaled.round()).abs() < 1e-6 * scaled.abs().max(1.0)
        })
    };
    let decimals = if exact(decimals) { decimals } else { (decimals + 1).min(12) };
    numbers.iter().map(|number| minus(format!("{:.decimals$}", number + 0.0))).collect()
}

/// As `1.5×10⁶`; zero is zero.
fn scientific(number: f64, power: i32, digits: usize) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let exponent: String = power
        .to_string()
        .chars()
        .map(|character| match character {
            '-' => '⁻',
            digit => {
                ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit.to_digit(10).unwrap_or(0) as usize]
            }
        })
        .collect();
    minus(format!("{:.digits$}×10{exponent}", number / 10_f64.powi(power)))
}

/// Uses a true minus sign, and none for zero.
fn minus(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|character| matches!(character, '0' | '.')) => rest.to_owned(),
        Some(rest) => format!("\u{2212}{rest}"),
        None => text,
    }
}

/// Steps of dates and times, from coarse to fine.
#[derive(Debug, Clone, Copy)]
enum TimeStep {
    Years(i128),
    Months(i128),
    Days(i128),
    Seconds(i128),
}

const TIME_STEPS: &[TimeStep] = &[
    TimeStep::Seconds(1),
    TimeStep::Seconds(2),
    TimeStep::Seconds(5),
    TimeStep::Seconds(10),
    TimeStep::Seconds(30),
    TimeStep::Seconds(60),
    TimeStep::Seconds(120),
    TimeStep::Seconds(300),
    TimeStep::Seconds(600),
    TimeStep::Seconds(1800),
    TimeStep::Seconds(3600),
    TimeStep::Seconds(2 * 3600),
    TimeStep::Seconds(3 * 3600),
    TimeStep::Seconds(6 * 3600),
    TimeStep::Seconds(12 * 3600),
    TimeStep::Days(1),
    TimeStep::Days(2),
    TimeStep::Days(5),
    TimeStep::Days(10),
    TimeStep::Months(1),
    TimeStep::Months(2),
    TimeStep::Months(3),
    TimeStep::Months(6),
    TimeStep::Years(1),
    TimeStep::Years(2),
    TimeStep::Years(5),
];

impl TimeStep {
    const fn length(self) -> i128 {
        match self {
            Self::Years(years) => years * 365 * PER_DAY,
            Self::Months(months) => months * 30 * PER_DAY,
            Self::Days(days) => days * PER_DAY,
            Self::Seconds(seconds) => seconds * PER_SECOND,
        }
    }

    /// The first instant of this step at or after `instant`.
    fn first(self, calendar: Calendar, instant: i128) -> Option<i128> {
        let day = instant.div_euclid(PER_DAY) + i128::from(instant.rem_euclid(PER_DAY) > 0);
        let (year, month, _) = calendar.date(day);
        Some(match self {
            Self::Seconds(seconds) => {
                let length = seconds * PER_SECOND;
                instant.div_euclid(length) * length + if instant.rem_euclid(length) > 0 { length } else { 0 }
            }
            // Days restart with each month: 1, 6, 11 … or 1, 3, 5 ….
            Self::Days(days) => {
                let (_, _, date) = calendar.date(day);
                let day = day + (days - (date - 1) % days) % days;
                // The last days of a month are too close to the first of the next.
                match calendar.date(day) {
                    (year, month, date) if days > 1 && date > 31 - days => {
                        let (year, month) = next_month(year, month, 1);
                        calendar.day(year, month, 1)? * PER_DAY
                    }
                    _ => day * PER_DAY,
                }
            }
            Self::Months(months) => {
                let first = calendar.day(year, month, 1)? * PER_DAY;
                let skip = i128::from(first < instant);
                let number = year * 12 + month - 1 + skip;
                let number = number.div_euclid(months) * months
                    + if number.rem_euclid(months) > 0 { months } else { 0 };
                calendar.day(number.div_euclid(12), number.rem_euclid(12) + 1, 1)? * PER_DAY
            }
            Self::Years(years) => {
                let first = calendar.day(year, 1, 1)? * PER_DAY;
                let number = year + i128::from(first < instant);
                let number =
                    number.div_euclid(years) * years + if number.rem_euclid(years) > 0 { years } else { 0 };
                calendar.day(number, 1, 1)? * PER_DAY
            }
        })
    }

    fn text(self, calendar: Calendar, instant: i128) -> String {
        let text = calendar.text(instant);
        let date = text.split('T').next().unwrap_or_default();
        // A year has a sign and any number of digits; the other parts have two each.
        let short = |cut: usize| date[..date.len().saturating_sub(cut)].to_owned();
        let clock = text.split_once('T').map_or("00:00", |(_, clock)| clock);
        match self {
            Self::Years(_) => short(6),
            Self::Months(_) => short(3),
            Self::Days(_) => date.to_owned(),
            Self::Seconds(60..) => format!("{} {clock}", &date[date.len().saturating_sub(5)..]),
            Self::Seconds(_) if clock.len() == 5 => format!("{clock}:00"),
            Self::Seconds(_) => clock.to_owned(),
        }
    }
}

fn next_month(year: i128, month: i128, further: i128) -> (i128, i128) {
    let number = year * 12 + month - 1 + further;
    (number.div_euclid(12), number.rem_euclid(12) + 1)
}

/// Dates from one instant to another, at most about `most` of them; none if they are less than a second apart.
pub(crate) fn times(calendar: Calendar, low: i128, high: i128, most: usize) -> Vec<(i128, String)> {
    let span = high - low;
    let fits = |step: &TimeStep| span / step.length() <= most as i128;
    let step = TIME_STEPS.iter().copied().find(|step| fits(step)).unwrap_or_else(|| {
        let years = (span / (365 * PER_DAY)) as f64;
        TimeStep::Years(self::step(years, most).max(1.0) as i128)
    });
    if span < 2 * PER_SECOND {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut from = low;
    while let Some(instant) = step.first(calendar, from).filter(|instant| *instant <= high) {
        found.push((instant, step.text(calendar, instant)));
        from = instant + 1;
        if found.len() > 1000 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(calendar: Calendar, from: &str, to: &str, most: usize) -> Vec<String> {
        let (low, high) = (calendar.span(from).unwrap().0, calendar.span(to).unwrap().0);
        times(calendar, low, high, most).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn numbers_are_round() {
        assert_eq!(numbers(-90.0, 90.0, 6, false), [-50.0, 0.0, 50.0]);
        assert_eq!(degrees(-90.0, 90.0, 6), [-90.0, -60.0, -30.0, 0.0, 30.0, 60.0, 90.0]);
        assert_eq!(numbers(0.0, 1.0, 5, false), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(numbers(0.0, 3.0, 10, true), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(numbers(5.0, 5.0, 4, false), [5.0]);
        assert!(
            numbers(f64::NAN, 1.0, 4, false).is_empty() && numbers(0.0, f64::INFINITY, 4, false).is_empty()
        );
    }

    #[test]
    fn texts_distinguish_numbers() {
        assert_eq!(texts(&[0.0, 0.25, 0.5]), ["0.00", "0.25", "0.50"]);
        assert_eq!(texts(&[-20.0, 0.0, 20.0]), ["\u{2212}20", "0", "20"]);
        assert_eq!(texts(&[1_000_000.0, 1_500_000.0]), ["1.0×10⁶", "1.5×10⁶"]);
        assert_eq!(texts(&[0.0, 1e-9, 2e-9]), ["0", "1×10⁻⁹", "2×10⁻⁹"]);
        assert_eq!(texts(&[-0.0]), ["0"]);
        assert_eq!(texts(&[272.5, 275.0, 277.5]), ["272.5", "275.0", "277.5"]);
    }

    #[test]
    fn dates_are_round_in_their_calendar() {
        let calendar = Calendar::Standard;
        assert_eq!(
            dates(calendar, "2000-01-15", "2001-02-01", 6),
            ["2000-03", "2000-05", "2000-07", "2000-09", "2000-11", "2001-01"]
        );
        assert_eq!(dates(calendar, "1999-06", "2003-06", 5), ["2000", "2001", "2002", "2003"]);
        assert_eq!(
            dates(calendar, "2000-01-01T00", "2000-01-02T00", 5),
            ["01-01 00:00", "01-01 06:00", "01-01 12:00", "01-01 18:00", "01-02 00:00"]
        );
        assert_eq!(
            dates(Calendar::Days360, "2000-02-25", "2000-03-10", 8),
            [
                "2000-02-25",
                "2000-02-27",
                "2000-02-29",
                "2000-03-01",
                "2000-03-03",
                "2000-03-05",
                "2000-03-07",
                "2000-03-09"
            ]
        );
        assert_eq!(dates(calendar, "0001", "2001", 5), ["0500", "1000", "1500", "2000"]);
    }
}
