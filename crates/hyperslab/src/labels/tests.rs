use hyperslab_core::{DType, Elements, TimeUnit};

use super::*;

fn floats(numbers: &[f64]) -> Values {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    Values::new(DType::Float64, &[numbers.len() as u64], Elements::fixed(bytes)).unwrap()
}

fn range(coordinate: &Coordinate, from: &str, to: &str) -> Result<(u64, u64)> {
    let given = |text| Some(text).filter(|text: &&str| !text.is_empty());
    let ends = Ends { from: given(from), to: given(to), single: false };
    coordinate.positions_of(ends, "x").map(|range| (range.start, range.end))
}

fn single(coordinate: &Coordinate, label: &str) -> Result<(u64, u64)> {
    coordinate.positions_of(Ends::one(label), "x").map(|range| (range.start, range.end))
}

fn refusal(coordinate: &Coordinate, label: &str) -> String {
    single(coordinate, label).unwrap_err().to_string()
}

#[test]
fn ends_of_a_range_are_in_the_order_of_a_descending_coordinate() -> Result<()> {
    let up = Coordinate::of_values(floats(&[20.0, 30.0, 40.0, 50.0]), None);
    let down = Coordinate::of_values(floats(&[50.0, 40.0, 30.0, 20.0]), None);
    assert_eq!(range(&up, "30", "40")?, (1, 3));
    assert_eq!(range(&down, "30", "40")?, (1, 3));
    assert_eq!(range(&down, "40", "30")?, (1, 3));
    // As in xarray, nothing is between the ends.
    assert_eq!(range(&up, "40", "30")?, (0, 0));
    let days = TimeAxis::parse("days since 2000-01-01", "standard");
    let backwards = Coordinate::of_values(floats(&[40.0, 31.0, 30.0, 0.0]), days);
    assert_eq!(range(&backwards, "2000-02", "2000-01-31")?, (0, 3));
    assert_eq!(range(&backwards, "2000-01-31", "2000-02")?, (0, 3));
    assert_eq!(range(&backwards, "2000-02", "2000-02")?, (0, 2));
    Ok(())
}

#[test]
fn missing_labels_are_not_selected() -> Result<()> {
    let own = Coordinate::of_values(floats(&[1.0, f64::NAN, 3.0]), None);
    assert_eq!(single(&own, "3")?, (2, 3));
    assert_eq!(range(&own, "2", "")?, (2, 3));
    assert_eq!(own.nearest("2.1", "x")?, 2);
    assert_eq!(range(&own, "", "")?, (0, 3));
    assert!(refusal(&own, "2").contains("its neighbours are 1 and 3"));
    Ok(())
}

#[test]
fn of_two_equally_near_labels_the_larger_is_chosen() -> Result<()> {
    for (numbers, at) in [([1.0, 2.0, 4.0], 2), ([4.0, 2.0, 1.0], 0)] {
        assert_eq!(Coordinate::of_values(floats(&numbers), None).nearest("3", "x")?, at);
    }
    assert_eq!(Coordinate::positions(5).nearest("2.5", "x")?, 3);
    assert_eq!(Coordinate::positions(5).nearest("-7", "x")?, 0);
    assert_eq!(Coordinate::positions(5).nearest("9", "x")?, 4);
    Ok(())
}

#[test]
fn large_integers_are_told_apart() -> Result<()> {
    let numbers = [1_i64 << 60, (1 << 60) + 1, (1 << 60) + 2];
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let own = Coordinate::of_values(Values::new(DType::Int64, &[3], Elements::fixed(bytes))?, None);
    assert_eq!(single(&own, "1152921504606846977")?, (1, 2));
    assert_eq!(own.nearest("1152921504606846977", "x")?, 1);
    assert_eq!(range(&own, "0.5", "1152921504606846977")?, (0, 2));
    Ok(())
}

#[test]
fn colons_are_understood_as_ranges() -> Result<()> {
    let own = Coordinate::of_values(floats(&[20.0, 30.0, 40.0, 50.0]), None);
    assert_eq!(single(&own, "30:40")?, (1, 3));
    assert_eq!(single(&own, "30:")?, (1, 4));
    assert_eq!(single(&own, ":30")?, (0, 2));
    let hours = TimeAxis::parse("hours since 2000-01-01", "standard");
    let times = Coordinate::of_values(floats(&[0.0, 6.0, 12.0, 24.0]), hours);
    assert_eq!(single(&times, "2000-01-01T06:00:2000-01-01T12:30")?, (1, 3));
    assert_eq!(single(&times, "2000-01-01:2000-01-02")?, (0, 4));
    assert_eq!(single(&times, "2000-01-01T06:00")?, (1, 2));
    assert!(refusal(&times, "2000-01-01T06:75").contains("a range is x=FIRST..LAST"));
    Ok(())
}

#[test]
fn ticks_are_instants() -> Result<()> {
    let ticks: Vec<u8> = [360_i64, 361, 362].iter().flat_map(|tick| tick.to_ne_bytes()).collect();
    let values = Values::new(DType::DateTime(TimeUnit::Month), &[3], Elements::fixed(ticks))?;
    let own = Coordinate::of_values(values, None);
    assert_eq!(single(&own, "2000-2")?, (1, 2));
    assert_eq!(range(&own, "2000-01-02", "2000-03-01")?, (1, 3));
    assert_eq!(own.nearest("2000-02-10", "x")?, 1);
    assert_eq!(own.text(2), "2000-03");
    assert!(refusal(&own, "7").contains("not a date such as"));
    Ok(())
}

#[test]
fn dates_that_a_calendar_lacks_are_named_with_it() {
    let days = TimeAxis::parse("days since 2000-01-01", "360_day");
    let own = Coordinate::of_values(floats(&[0.0, 1.0]), days);
    assert!(refusal(&own, "2000-01-31").contains("there is no 2000-01-31 in the calendar 360_day"));
    assert!(refusal(&own, "2000-01-30").contains("the nearest is 2000-01-02."));
    assert!(refusal(&own, "soon").contains("not a date such as 2000-01-30, nor a number"));
}

#[test]
fn partial_dates_are_periods() {
    let days = TimeAxis::parse("days since 2000-01-01", "standard");
    let months = Coordinate::of_values(floats(&[0.0, 31.0, 60.0]), days);
    assert!(months.is_period("2000-02") && months.is_period("2000"));
    assert!(
        !months.is_period("2000-02-01") && !months.is_period("2000-02-01T00:00") && !months.is_period("31")
    );
    let hours = TimeAxis::parse("hours since 2000-01-01", "standard");
    let times = Coordinate::of_values(floats(&[0.0, 30.0]), hours);
    assert!(times.is_period("2000-01-02") && !times.is_period("2000-01-02T06"));
    assert!(!Coordinate::of_values(floats(&[2000.0]), None).is_period("2000"));
}
