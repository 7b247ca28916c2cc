use super::*;
use crate::time_text;

#[test]
fn labels_cover_what_they_name() {
    let text = |label, unit, high| {
        date_tick(label, unit, high).and_then(|tick| time_text(i64::try_from(tick).unwrap(), unit))
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
fn invalid_dates_are_refused() {
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
        assert_eq!(date_tick(label, TimeUnit::Day, false), None, "{label}");
    }
}

#[test]
fn days_and_dates_are_inverse_in_every_calendar() {
    for name in ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"] {
        let calendar = Calendar::from_name(name).unwrap();
        assert!(calendar.day(1970, 1, 1).is_some(), "{name}");
        for day in (-1_000_000..1_000_000).step_by(37) {
            let (year, month, date) = calendar.date(day);
            assert_eq!(calendar.day(year, month, date), Some(day), "{name} {year}-{month}-{date}");
        }
    }
    let far = Calendar::ProlepticGregorian.day(999_999_999_999, 12, 31).unwrap();
    assert_eq!(Calendar::ProlepticGregorian.date(far), (999_999_999_999, 12, 31));
}

/// Numbers by cftime 1.6.6: `cftime.date2num(cftime.datetime(y, m, d, calendar=c), "days since 1970-01-01", c)`.
#[test]
fn days_match_cftime() {
    let cases = [
        ("standard", (1582, 10, 15), -141_427),
        ("standard", (1582, 10, 4), -141_428),
        ("standard", (1, 1, 1), -719_164),
        ("proleptic_gregorian", (1, 1, 1), -719_162),
        ("julian", (1970, 1, 1), 0),
        ("julian", (2000, 2, 29), 11_016),
        ("noleap", (2000, 3, 1), 11_009),
        ("all_leap", (1999, 2, 29), 10_673),
        ("360_day", (2000, 2, 30), 10_859),
    ];
    for (name, (year, month, day), days) in cases {
        let calendar = Calendar::from_name(name).unwrap();
        let epoch = calendar.day(1970, 1, 1).unwrap();
        assert_eq!(
            calendar.day(year, month, day).map(|day| day - epoch),
            Some(days),
            "{name} {year}-{month}-{day}"
        );
    }
    for (name, (year, month, day)) in [
        ("standard", (1582, 10, 10)),
        ("standard", (2001, 2, 29)),
        ("noleap", (2000, 2, 29)),
        ("360_day", (2000, 1, 31)),
    ] {
        assert_eq!(Calendar::from_name(name).unwrap().day(year, month, day), None, "{name}");
    }
}

#[test]
fn common_forms_of_time_axes_are_parsed() {
    let text = |units: &str, calendar: &str, number: f64| {
        TimeAxis::parse(units, calendar).map(|axis| axis.text(number))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(text("hours since 1990-01-01", "", 87_648.0), some("2000-01-01"));
    assert_eq!(text("days since 2001-02-27", "360_day", 4.5), some("2001-03-01T12:00"));
    assert_eq!(text("days since 1-1-1 00:00:00", "standard", 730_000.0), some("1999-09-02"));
    assert_eq!(text("days since 1-1-1", "proleptic_gregorian", 730_000.0), some("1999-09-04"));
    assert_eq!(text("seconds since 1970-01-01T00:00:00Z", "standard", 0.25), some("1970-01-01T00:00:00.25"));
    assert_eq!(text("hours since 2000-01-01 00:00:00 +02:00", "standard", 0.0), some("1999-12-31T22:00"));
    assert_eq!(text("days since 2000-01-01", "standard", 0.1), some("2000-01-01T02:24"));
    assert_eq!(text("months since 2000-01-01", "360_day", 3.0), some("2000-04-01"));
    for (units, calendar) in [
        ("K", ""),
        ("months since 2000-01-01", "standard"),
        ("days since yesterday", ""),
        ("days since 2000-01-01", "none"),
        ("day as %Y%m%d.%f", ""),
    ] {
        assert_eq!(text(units, calendar, 0.0), None, "{units}");
    }
}

#[test]
fn long_counts_of_short_units_are_exact() {
    let axis = |units: &str| TimeAxis::parse(units, "proleptic_gregorian").unwrap();
    let nanoseconds = axis("nanoseconds since 1970-01-01");
    assert_eq!(nanoseconds.text_of_integer(946_771_200_123_456_789), "2000-01-02T00:00:00.123456789");
    assert_eq!(nanoseconds.text(946_771_200e9), "2000-01-02");
    let microseconds = axis("microseconds since 0001-01-01");
    assert_eq!(microseconds.text_of_integer(63_082_281_600_000_001), "2000-01-01T00:00:00.000001");
    assert_eq!(axis("microseconds since 2000-01-01").text(1.5), "2000-01-01T00:00:00.0000015");
    // Days of this size are only precise to a fraction of a microsecond.
    assert_eq!(axis("days since 1900-01-01").text(36_524.1), "2000-01-01T02:24");
    assert_eq!(axis("days since 1900-01-01").text(f64::MAX), f64::MAX.to_string());
}

#[test]
fn ticks_start_at_instants() {
    for (tick, unit, text) in [
        (30, TimeUnit::Year, "2000-01-01"),
        (-1, TimeUnit::Month, "1969-12-01"),
        (10_957, TimeUnit::Day, "2000-01-01"),
        (-1, TimeUnit::Hour, "1969-12-31T23:00"),
        (946_771_200_000_000_001, TimeUnit::Nanosecond, "2000-01-02T00:00:00.000000001"),
    ] {
        let instant = tick_instant(tick, unit);
        assert_eq!(Calendar::ProlepticGregorian.text(instant), text);
        if !matches!(unit, TimeUnit::Year | TimeUnit::Month) {
            assert_eq!(instant_tick(instant, unit), Some(tick));
        }
    }
    assert_eq!(tick_instant(i64::MAX, TimeUnit::Week), i128::MAX);
    assert_eq!(instant_tick(1, TimeUnit::Nanosecond), None);
}
