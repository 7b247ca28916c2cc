//! Dates as people write them, as ticks of a unit.

use hyperslab_core::TimeUnit;

/// Attoseconds, the shortest ticks that there are, in a second.
const PER_SECOND: i128 = 1_000_000_000_000_000_000;
const PER_DAY: i128 = 86_400 * PER_SECOND;

/// The tick that bounds a range at this label: the first that is not before it, or with `high` the last inside the
/// year, month, day, hour, minute or second that it names. `None` when the label is no date.
///
/// A label is `2020`, `2020-02`, `2020-02-29`, `2020-02-29T12`, … `2020-02-29T12:00:00.5`, with a `Z` at its end or not.
pub(super) fn tick(label: &str, unit: TimeUnit, high: bool) -> Option<i128> {
    let (start, end) = span(label)?;
    let floor = |instant: i128| match unit {
        TimeUnit::Year => civil(instant.div_euclid(PER_DAY)).0 - 1970,
        TimeUnit::Month => {
            let (year, month) = civil(instant.div_euclid(PER_DAY));
            (year - 1970) * 12 + month - 1
        }
        _ => instant.div_euclid(length(unit)),
    };
    if high {
        return Some(floor(end - 1));
    }
    // The first tick that is not before: the one after the last that ends before.
    Some(floor(start - 1) + 1)
}

/// Attoseconds of a tick that always has the same length.
const fn length(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Year | TimeUnit::Month | TimeUnit::Week => 7 * PER_DAY,
        TimeUnit::Day => PER_DAY,
        TimeUnit::Hour => 3600 * PER_SECOND,
        TimeUnit::Minute => 60 * PER_SECOND,
        TimeUnit::Second => PER_SECOND,
        TimeUnit::Millisecond => PER_SECOND / 1_000,
        TimeUnit::Microsecond => PER_SECOND / 1_000_000,
        TimeUnit::Nanosecond => PER_SECOND / 1_000_000_000,
        TimeUnit::Picosecond => PER_SECOND / 1_000_000_000_000,
        TimeUnit::Femtosecond => PER_SECOND / 1_000_000_000_000_000,
        TimeUnit::Attosecond => 1,
    }
}

/// The time that a label names, in attoseconds since 1970: its start and where it has ended.
fn span(label: &str) -> Option<(i128, i128)> {
    let label = label.trim().trim_end_matches(['Z', 'z']);
    let (date, time) = match label.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (label, None),
    };
    let (negative, date) = date.strip_prefix('-').map_or((false, date), |date| (true, date));
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4..=12)? * if negative { -1 } else { 1 };
    let month = parts.next().map_or(Some(None), |month| within(month, 1..=12).map(Some))?;
    let day = parts.next().map_or(Some(None), |day| within(day, 1..=31).map(Some))?;
    if parts.next().is_some() {
        return None;
    }
    let (Some(month), Some(day)) = (month, day) else {
        let month_end = month.map_or((year + 1, 1), |month| (year + month / 12, month % 12 + 1));
        let start = days(year, month.unwrap_or(1), 1) * PER_DAY;
        return time.is_none().then(|| (start, days(month_end.0, month_end.1, 1) * PER_DAY));
    };
    let start = days(year, month, day);
    // The 30th of February is no date.
    if civil(start) != (year, month) {
        return None;
    }
    let (within_day, length) = time.map_or(Some((0, PER_DAY)), time_of_day)?;
    let start = start * PER_DAY + within_day;
    Some((start, start + length))
}

/// A time of day and how long what it names lasts.
fn time_of_day(text: &str) -> Option<(i128, i128)> {
    let mut parts = text.split(':');
    let hour = within(parts.next()?, 0..=23)? * 3600 * PER_SECOND;
    let Some(minute) = parts.next() else { return Some((hour, 3600 * PER_SECOND)) };
    let minute = hour + within(minute, 0..=59)? * 60 * PER_SECOND;
    let Some(second) = parts.next() else { return Some((minute, 60 * PER_SECOND)) };
    if parts.next().is_some() {
        return None;
    }
    let (whole, fraction) =
        second.split_once('.').map_or((second, ""), |(whole, fraction)| (whole, fraction));
    let start = minute + within(whole, 0..=59)? * PER_SECOND;
    if fraction.is_empty() {
        return (whole.len() == second.len()).then_some((start, PER_SECOND));
    }
    let digits = number(fraction, 1..=18)?;
    let length = PER_SECOND / 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    Some((start + digits * length, length))
}

fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<i128> {
    let plain = digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn within(text: &str, range: std::ops::RangeInclusive<i128>) -> Option<i128> {
    number(text, 1..=2).filter(|number| range.contains(number))
}

/// Days from 1970-01-01 to a day of the proleptic Gregorian calendar. Years start in March here, so that the leap day
/// is a year's last.
fn days(year: i128, month: i128, day: i128) -> i128 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The year and month of a day: the inverse of [`days`].
fn civil(day: i128) -> (i128, i128) {
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + i128::from(month <= 2), month)
}

#[cfg(test)]
mod tests {
    use hyperslab_core::time_text;

    use super::*;

    #[test]
    fn labels_cover_what_they_name() {
        let text = |label, unit, high| {
            tick(label, unit, high).and_then(|tick| time_text(i64::try_from(tick).unwrap(), unit))
        };
        let cases = [
            ("2020-02", TimeUnit::Day, "2020-02-01", "2020-02-29"),
            ("2021", TimeUnit::Day, "2021-01-01", "2021-12-31"),
            ("2020-02-29", TimeUnit::Hour, "2020-02-29T00", "2020-02-29T23"),
            ("2020-02-29T12", TimeUnit::Minute, "2020-02-29T12:00", "2020-02-29T12:59"),
            ("2020-02-29 12:30", TimeUnit::Second, "2020-02-29T12:30:00", "2020-02-29T12:30:59"),
            (
                "1969-12-31T23:59:59.5Z",
                TimeUnit::Millisecond,
                "1969-12-31T23:59:59.500",
                "1969-12-31T23:59:59.599",
            ),
            // Ticks longer than the label: those that start inside the range.
            ("2020-02-15", TimeUnit::Month, "2020-03", "2020-02"),
            ("2020-02-01", TimeUnit::Month, "2020-02", "2020-02"),
            ("1960-06-01", TimeUnit::Year, "1961", "1960"),
        ];
        for (label, unit, low, high) in cases {
            assert_eq!(text(label, unit, false).as_deref(), Some(low), "{label}");
            assert_eq!(text(label, unit, true).as_deref(), Some(high), "{label}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for label in [
            "",
            "x",
            "12",
            "2020-13",
            "2020-02-30",
            "2020-1-1-1",
            "2020T12",
            "2020-01-01T24",
            "2020-01-01T1:2:3:4",
            "+2020",
        ] {
            assert_eq!(tick(label, TimeUnit::Day, false), None, "{label}");
        }
    }

    #[test]
    fn days_and_months_are_inverse() {
        for day in (-1_000_000..1_000_000).step_by(37) {
            let (year, month) = civil(day);
            assert!(days(year, month, 1) <= day && day < days(year, month, 1) + 31);
        }
        assert_eq!(civil(days(999_999_999_999, 12, 31)), (999_999_999_999, 12));
        assert_eq!(civil(days(-999_999_999_999, 1, 1)), (-999_999_999_999, 1));
    }
}
