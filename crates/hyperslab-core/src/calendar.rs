//! Calendars: the CF calendars, dates in their usual text form, and time axes that count from a date.
//!
//! An instant is an `i128` of attoseconds since 1970-01-01 in its calendar. This is exact for every unit that a format has.

use crate::TimeUnit;

/// Attoseconds per second. The attosecond is the shortest tick of any format.
const PER_SECOND: i128 = 1_000_000_000_000_000_000;
const PER_DAY: i128 = 86_400 * PER_SECOND;
const NANOSECOND: i128 = PER_SECOND / 1_000_000_000;
/// The first day of the Gregorian calendar, 1582-10-15. Days before it are Julian.
const FIRST_GREGORIAN: (i128, i128, i128) = (1582, 10, 15);
const LAST_JULIAN: (i128, i128, i128) = (1582, 10, 4);
/// Days before each month of a year without a leap day.
const BEFORE_MONTH: [i128; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/// A calendar of the CF conventions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Calendar {
    /// Julian up to 1582-10-04, Gregorian from 1582-10-15 on: `standard`, `gregorian`.
    Standard,
    /// Gregorian at all times: `proleptic_gregorian`. The calendar of NumPy's dates.
    #[default]
    ProlepticGregorian,
    /// Julian at all times: `julian`.
    Julian,
    /// Years of 365 days: `noleap`, `365_day`.
    NoLeap,
    /// Years of 366 days: `all_leap`, `366_day`.
    AllLeap,
    /// Years of twelve months of 30 days: `360_day`.
    Days360,
}

impl Calendar {
    /// The calendar with this name. An empty name means `standard`, the CF default.
    ///
    /// ```
    /// use hyperslab_core::Calendar;
    /// assert_eq!(Calendar::from_name("365_day"), Some(Calendar::NoLeap));
    /// assert_eq!(Calendar::from_name("none"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "" | "standard" | "gregorian" => Self::Standard,
            "proleptic_gregorian" => Self::ProlepticGregorian,
            "julian" => Self::Julian,
            "noleap" | "365_day" => Self::NoLeap,
            "all_leap" | "366_day" => Self::AllLeap,
            "360_day" => Self::Days360,
            _ => return None,
        })
    }

    /// Its name in the CF conventions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::ProlepticGregorian => "proleptic_gregorian",
            Self::Julian => "julian",
            Self::NoLeap => "noleap",
            Self::AllLeap => "all_leap",
            Self::Days360 => "360_day",
        }
    }

    /// Days from 1970-01-01 to a date, or `None` if the calendar has no such date.
    #[must_use]
    pub fn day(self, year: i128, month: i128, day: i128) -> Option<i128> {
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year.abs() > 1 << 62 {
            return None;
        }
        let number = self.day_number(year, month, day)?;
        (self.date(number) == (year, month, day)).then_some(number)
    }

    fn day_number(self, year: i128, month: i128, day: i128) -> Option<i128> {
        let date = (year, month, day);
        Some(match self {
            Self::ProlepticGregorian => gregorian(year, month, day),
            Self::Julian => julian(year, month, day),
            Self::Standard if date >= FIRST_GREGORIAN => gregorian(year, month, day),
            Self::Standard if date <= LAST_JULIAN => julian(year, month, day),
            Self::Standard => return None,
            Self::NoLeap => 365 * (year - 1970) + BEFORE_MONTH[(month - 1) as usize] + day - 1,
            Self::AllLeap => {
                let leap = i128::from(month > 2);
                366 * (year - 1970) + BEFORE_MONTH[(month - 1) as usize] + leap + day - 1
            }
            Self::Days360 => 360 * (year - 1970) + 30 * (month - 1) + day - 1,
        })
    }

    /// The year, month and day of a day number counted from 1970-01-01.
    #[must_use]
    pub fn date(self, day: i128) -> (i128, i128, i128) {
        let (first, last) = (gregorian(1582, 10, 15), |days: &[i128; 12], of_year: i128, leap: i128| {
            let before = |month: usize| days[month] + if month > 1 { leap } else { 0 };
            let month = (0..12).rfind(|month| before(*month) <= of_year).unwrap_or(0);
            (month as i128 + 1, of_year - before(month) + 1)
        });
        match self {
            Self::ProlepticGregorian => from_gregorian(day),
            Self::Standard if day >= first => from_gregorian(day),
            Self::Standard | Self::Julian => from_julian(day),
            Self::NoLeap => {
                let (month, date) = last(&BEFORE_MONTH, day.rem_euclid(365), 0);
                (1970 + day.div_euclid(365), month, date)
            }
            Self::AllLeap => {
                let (month, date) = last(&BEFORE_MONTH, day.rem_euclid(366), 1);
                (1970 + day.div_euclid(366), month, date)
            }
            Self::Days360 => {
                let of_year = day.rem_euclid(360);
                (1970 + day.div_euclid(360), of_year / 30 + 1, of_year % 30 + 1)
            }
        }
    }

    /// The period that a label names: its first instant and the first instant after it.
    ///
    /// A label is `2020`, `2020-02`, `2020-02-29`, `2020-02-29T12`, … `2020-02-29T12:00:00.5`, with an optional trailing `Z`.
    #[must_use]
    pub fn span(self, label: &str) -> Option<(i128, i128)> {
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
            let (next_year, next) = month.map_or((year + 1, 1), |month| (year + month / 12, month % 12 + 1));
            let start = self.day(year, month.unwrap_or(1), 1)? * PER_DAY;
            return time.is_none().then_some((start, self.day(next_year, next, 1)? * PER_DAY));
        };
        let (within_day, length) = time.map_or(Some((0, PER_DAY)), time_of_day)?;
        let start = self.day(year, month, day)? * PER_DAY + within_day;
        Some((start, start + length))
    }

    /// Formats an instant as short text without losing precision: `2000-01-05`, `2000-01-05T06:00`.
    #[must_use]
    pub fn text(self, instant: i128) -> String {
        let (year, month, day) = self.date(instant.div_euclid(PER_DAY));
        let mut text = format!("{}-{month:02}-{day:02}", year_text(year));
        let rest = instant.rem_euclid(PER_DAY);
        if rest == 0 {
            return text;
        }
        let seconds = rest / PER_SECOND;
        text.push_str(&format!("T{:02}:{:02}", seconds / 3600, seconds / 60 % 60));
        if rest % (60 * PER_SECOND) != 0 {
            text.push_str(&format!(":{:02}", seconds % 60));
        }
        let fraction = format!("{:018}", rest % PER_SECOND);
        let fraction = fraction.trim_end_matches('0');
        if !fraction.is_empty() {
            text.push_str(&format!(".{fraction}"));
        }
        text
    }
}

/// A time axis: numbers that count time from a date (`hours since 1990-01-01`) in a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeAxis {
    calendar: Calendar,
    /// The instant from which time is counted.
    epoch: i128,
    /// Attoseconds per unit.
    unit: i128,
}

impl TimeAxis {
    /// Parses CF's `units` and `calendar`. Returns `None` if the units do not count time from a date, or the calendar is unknown.
    ///
    /// ```
    /// use hyperslab_core::TimeAxis;
    /// let axis = TimeAxis::parse("hours since 2000-01-01 06:00", "noleap").unwrap();
    /// assert_eq!(axis.text(18.0), "2000-01-02");
    /// assert!(TimeAxis::parse("K", "").is_none());
    /// ```
    #[must_use]
    pub fn parse(units: &str, calendar: &str) -> Option<Self> {
        let calendar = Calendar::from_name(calendar)?;
        let (unit, start) = units.trim().split_once(" since ")?;
        let unit = match unit.trim().to_ascii_lowercase().as_str() {
            "days" | "day" | "d" => PER_DAY,
            "hours" | "hour" | "hrs" | "hr" | "h" => 3600 * PER_SECOND,
            "minutes" | "minute" | "mins" | "min" => 60 * PER_SECOND,
            "seconds" | "second" | "secs" | "sec" | "s" => PER_SECOND,
            "milliseconds" | "millisecond" | "millisecs" | "millisec" | "msecs" | "msec" | "ms" => {
                PER_SECOND / 1000
            }
            "microseconds" | "microsecond" | "microsecs" | "microsec" => PER_SECOND / 1_000_000,
            "nanoseconds" | "nanosecond" | "nanosecs" | "nanosec" => PER_SECOND / 1_000_000_000,
            // Months have a fixed length in this calendar only.
            "months" | "month" if calendar == Calendar::Days360 => 30 * PER_DAY,
            _ => return None,
        };
        Some(Self { calendar, epoch: reference(start.trim(), calendar)?, unit })
    }

    /// Returns true if one unit is a nanosecond or less, so that parts of a unit do not show in dates.
    #[must_use]
    pub const fn is_fine(&self) -> bool {
        self.unit <= PER_SECOND / 1_000_000_000
    }

    /// The calendar.
    #[must_use]
    pub const fn calendar(&self) -> Calendar {
        self.calendar
    }

    /// The instant of an integer, without rounding. Returns `None` if it is out of range.
    #[must_use]
    pub fn instant_of_integer(&self, number: i128) -> Option<i128> {
        number.checked_mul(self.unit)?.checked_add(self.epoch)
    }

    /// The instant of a float. Its fraction is rounded to the nanosecond if the float is that precise, else to the microsecond:
    /// fractional days are rarely exact. Returns `None` if it is out of range.
    #[must_use]
    pub fn instant(&self, number: f64) -> Option<i128> {
        if !number.is_finite() {
            return None;
        }
        let whole = number.floor();
        let start = self.instant_of_integer(whole as i128)?;
        // A float that was computed is wrong by a few units in the last place.
        let error = 16.0 * f64::EPSILON * number.abs() * self.unit as f64;
        let step = if error < NANOSECOND as f64 { NANOSECOND } else { 1000 * NANOSECOND };
        let steps = ((number - whole) * (self.unit as f64 / step as f64)).round();
        start.checked_add(steps as i128 * step)
    }

    /// The conversion from this axis's numbers to those of `other`, or `None` if the calendars differ.
    ///
    /// ```
    /// use hyperslab_core::TimeAxis;
    /// let hours = TimeAxis::parse("hours since 2000-01-02", "").unwrap();
    /// let days = TimeAxis::parse("days since 2000-01-01", "").unwrap();
    /// let rebase = hours.rebase(&days).unwrap();
    /// assert_eq!(rebase.integer(48), Some(3));
    /// assert_eq!(rebase.integer(12), None);
    /// assert_eq!(rebase.float(12.0), 1.5);
    /// ```
    #[must_use]
    pub fn rebase(&self, other: &Self) -> Option<Rebase> {
        let shift = self.epoch.checked_sub(other.epoch)?;
        (self.calendar == other.calendar).then_some(Rebase { unit: self.unit, shift, other: other.unit })
    }

    /// Formats a number as a date, or as the number itself if it is not a valid time.
    #[must_use]
    pub fn text(&self, number: f64) -> String {
        self.instant(number).map_or_else(|| number.to_string(), |instant| self.calendar.text(instant))
    }

    /// Like [`text`](Self::text), for an integer.
    #[must_use]
    pub fn text_of_integer(&self, number: i128) -> String {
        let instant = self.instant_of_integer(number);
        instant.map_or_else(|| number.to_string(), |instant| self.calendar.text(instant))
    }
}

/// Converts numbers of one time axis to those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rebase {
    /// Attoseconds per input unit.
    unit: i128,
    /// Attoseconds from the output epoch to the input epoch.
    shift: i128,
    /// Attoseconds per output unit.
    other: i128,
}

impl Rebase {
    /// Returns true if both axes count alike, so that no number changes.
    #[must_use]
    pub const fn is_identity(&self) -> bool {
        self.shift == 0 && self.unit == self.other
    }

    /// Converts an integer, or returns `None` if the result is not an integer.
    #[must_use]
    pub fn integer(&self, number: i64) -> Option<i64> {
        let instant = i128::from(number).checked_mul(self.unit)?.checked_add(self.shift)?;
        (instant % self.other == 0).then(|| i64::try_from(instant / self.other).ok())?
    }

    /// Converts a float.
    #[must_use]
    pub fn float(&self, number: f64) -> f64 {
        // Whole units are shifted exactly; only the remainder is rounded.
        let (whole, rest) = (self.shift.div_euclid(self.other), self.shift.rem_euclid(self.other));
        let scaled =
            if self.unit == self.other { number } else { number * (self.unit as f64 / self.other as f64) };
        scaled + whole as f64 + rest as f64 / self.other as f64
    }
}

/// Parses the instant from which time is counted: a date with an optional time and UTC offset.
fn reference(text: &str, calendar: Calendar) -> Option<i128> {
    let (date, rest) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], text[at + 1..].trim()),
        None => (text, ""),
    };
    // Years with fewer than four digits are common here: `days since 1-1-1`.
    let (negative, date) = date.strip_prefix('-').map_or((false, date), |date| (true, date));
    let mut parts = date.split('-');
    let year = number(parts.next()?, 1..=12)? * if negative { -1 } else { 1 };
    let month = within(parts.next().unwrap_or("1"), 1..=12)?;
    let day = within(parts.next().unwrap_or("1"), 1..=31)?;
    let start = calendar.day(year, month, day).filter(|_| parts.next().is_none())? * PER_DAY;
    let rest = rest.trim_end_matches("UTC").trim_end_matches(['Z', 'z']).trim();
    let (clock, zone) = rest.find(['+', '-']).map_or((rest, ""), |at| rest.split_at(at));
    let clock = clock.trim();
    let clock = if clock.is_empty() { 0 } else { time_of_day(clock)?.0 };
    let offset = if zone.is_empty() {
        0
    } else {
        let digits = zone[1..].replace(':', "");
        let minutes = match digits.len() {
            1 | 2 => number(&digits, 1..=2)? * 60,
            4 => number(&digits[..2], 2..=2)? * 60 + number(&digits[2..], 2..=2)?,
            _ => return None,
        };
        if zone.starts_with('-') { -minutes } else { minutes }
    };
    Some(start + clock - offset * 60 * PER_SECOND)
}

/// The tick that bounds a range at a label: the first tick at or after the label, or with `high`, the last tick inside the year,
/// month, day, hour, minute or second that the label names. `None` if the label is not a date. Uses the calendar of NumPy's
/// dates.
#[must_use]
pub fn date_tick(label: &str, unit: TimeUnit, high: bool) -> Option<i128> {
    let calendar = Calendar::ProlepticGregorian;
    let (start, end) = calendar.span(label)?;
    let floor = |instant: i128| {
        let (year, month, _) = calendar.date(instant.div_euclid(PER_DAY));
        match unit {
            TimeUnit::Year => year - 1970,
            TimeUnit::Month => (year - 1970) * 12 + month - 1,
            _ => instant.div_euclid(length(unit)),
        }
    };
    // The first tick at or after `start` follows the last tick before it.
    Some(if high { floor(end - 1) } else { floor(start - 1) + 1 })
}

/// The first instant of a tick of NumPy's dates. Ticks beyond all instants become the first or the last instant.
#[must_use]
pub fn tick_instant(tick: i64, unit: TimeUnit) -> i128 {
    let calendar = Calendar::ProlepticGregorian;
    let number = i128::from(tick);
    let day = |day: Option<i128>| day.and_then(|day| day.checked_mul(PER_DAY));
    let instant = match unit {
        TimeUnit::Year => day(calendar.day(1970 + number, 1, 1)),
        TimeUnit::Month => day(calendar.day(1970 + number.div_euclid(12), number.rem_euclid(12) + 1, 1)),
        _ => number.checked_mul(length(unit)),
    };
    instant.unwrap_or(if tick < 0 { i128::MIN } else { i128::MAX })
}

/// The tick of NumPy's dates that starts at an instant, for units of constant length. `None` if there is none, or it is out of range.
#[must_use]
pub fn instant_tick(instant: i128, unit: TimeUnit) -> Option<i64> {
    if matches!(unit, TimeUnit::Year | TimeUnit::Month) {
        return None;
    }
    let length = length(unit);
    (instant % length == 0).then(|| i64::try_from(instant / length).ok())?.filter(|tick| *tick != i64::MIN)
}

/// Attoseconds per tick, for units of constant length.
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

/// Parses a time of day. Returns it with the length of the interval that it names.
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

/// Formats a year with at least four digits.
pub(crate) fn year_text(year: i128) -> String {
    if year < 0 { format!("-{:04}", -year) } else { format!("{year:04}") }
}

/// Day number in a year that starts in March, so that the leap day comes last.
fn of_march_year(month: i128, day: i128) -> i128 {
    (153 * ((month + 9) % 12) + 2) / 5 + day - 1
}

fn gregorian(year: i128, month: i128, day: i128) -> i128 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_march_year(month, day) - 719_468
}

fn julian(year: i128, month: i128, day: i128) -> i128 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(4), year.rem_euclid(4));
    era * 1461 + of_era * 365 + of_march_year(month, day) - 719_470
}

fn from_gregorian(day: i128) -> (i128, i128, i128) {
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    from_march_year(era * 400 + year_of_era, of_year)
}

fn from_julian(day: i128) -> (i128, i128, i128) {
    let day = day + 719_470;
    let (era, of_era) = (day.div_euclid(1461), day.rem_euclid(1461));
    let year_of_era = (of_era - of_era / 1460) / 365;
    from_march_year(era * 4 + year_of_era, of_era - 365 * year_of_era)
}

fn from_march_year(year: i128, of_year: i128) -> (i128, i128, i128) {
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year + i128::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests;
