use proptest::prelude::*;

use super::*;
use crate::{DType, Elements, Number, Result, Validity};

fn rows_of(filter: &RowFilter, dtype: &DType, elements: &Elements) -> Result<Vec<u32>> {
    let rows = elements.len(dtype);
    Ok(filter.evaluate(rows, &|_| Ok((dtype.clone(), elements.clone())))?.rows())
}

fn test(test: Test) -> RowFilter {
    RowFilter::test("a", test)
}

#[test]
fn missing_values_are_neither_true_nor_false() -> Result<()> {
    let elements =
        Elements::fixed(vec![1, 5, 9]).with_validity(Some(Validity::from_flags([true, false, true])));
    let above = test(Test::Integers { low: 5, high: i128::MAX });
    let not = RowFilter::Not(Box::new(above.clone()));
    assert_eq!(rows_of(&above, &DType::UInt8, &elements)?, [2]);
    assert_eq!(rows_of(&not, &DType::UInt8, &elements)?, [0]);
    assert_eq!(rows_of(&test(Test::Null), &DType::UInt8, &elements)?, [1]);
    let either = RowFilter::Any(vec![above.clone(), not.clone()]);
    assert_eq!(rows_of(&either, &DType::UInt8, &elements)?, [0, 2]);
    let or_null = RowFilter::Any(vec![above, test(Test::Null)]);
    assert_eq!(rows_of(&or_null, &DType::UInt8, &elements)?, [1, 2]);
    Ok(())
}

#[test]
fn ends_outside_the_type_are_no_ends() -> Result<()> {
    let elements = Elements::fixed(vec![0, 127, 128, 255]);
    let all = test(Test::Integers { low: -1000, high: 1000 });
    assert_eq!(rows_of(&all, &DType::Int8, &elements)?.len(), 4);
    assert_eq!(rows_of(&all, &DType::UInt8, &elements)?.len(), 4);
    let none = test(Test::Integers { low: 300, high: 1000 });
    assert!(rows_of(&none, &DType::UInt8, &elements)?.is_empty());
    let none = test(Test::Integers { low: -1000, high: -200 });
    assert!(rows_of(&none, &DType::Int8, &elements)?.is_empty());
    Ok(())
}

#[test]
fn not_a_number_fails_comparisons_and_differs() -> Result<()> {
    let bytes: Vec<u8> = [1.0, f64::NAN].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let one = test(Test::Floats { low: End::included(1.0), high: End::included(1.0) });
    let elements = Elements::fixed(bytes);
    assert_eq!(rows_of(&one, &DType::Float64, &elements)?, [0]);
    assert_eq!(rows_of(&RowFilter::Not(Box::new(one)), &DType::Float64, &elements)?, [1]);
    Ok(())
}

#[test]
fn a_test_of_another_type_is_an_error() {
    let texts = Elements::variable(["x"]);
    let error = rows_of(&test(Test::Integers { low: 0, high: 1 }), &DType::String, &texts).unwrap_err();
    assert!(
        error.to_string().contains("column a: the condition does not apply to the type string"),
        "{error}"
    );
}

#[test]
fn bounds_come_from_what_must_hold() {
    let range = |low, high| test(Test::Integers { low, high });
    let both = range(0, 10).and(range(5, 20)).and(RowFilter::Not(Box::new(range(7, 7))));
    assert_eq!(both.bounds("a"), Bounds { low: Some(Bound::Integer(5)), high: Some(Bound::Integer(10)) });
    assert_eq!(RowFilter::Any(vec![range(0, 1), range(5, 6)]).bounds("a"), Bounds::default());
    assert_eq!(both.bounds("b"), Bounds::default());
}

fn any_filter() -> impl Strategy<Value = RowFilter> {
    let leaf = prop_oneof![
        (-20_i128..20, 0_i128..10).prop_map(|(low, length)| test(Test::Integers { low, high: low + length })),
        prop::collection::btree_set(-20_i128..20, 0..4)
            .prop_map(|values| test(Test::IntegersIn(values.into_iter().collect()))),
        Just(test(Test::Null)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(RowFilter::All),
            prop::collection::vec(inner.clone(), 0..3).prop_map(RowFilter::Any),
            inner.prop_map(|part| RowFilter::Not(Box::new(part))),
        ]
    })
}

/// The answer of SQL for one value.
fn sql(filter: &RowFilter, value: Option<i128>) -> Option<bool> {
    match filter {
        RowFilter::All(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| sql(part, value)).collect();
            if parts.contains(&Some(false)) {
                Some(false)
            } else if parts.contains(&None) {
                None
            } else {
                Some(true)
            }
        }
        RowFilter::Any(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| sql(part, value)).collect();
            if parts.contains(&Some(true)) {
                Some(true)
            } else if parts.contains(&None) {
                None
            } else {
                Some(false)
            }
        }
        RowFilter::Not(part) => sql(part, value).map(|answer| !answer),
        RowFilter::Test { test: Test::Null, .. } => Some(value.is_none()),
        RowFilter::Test { test: Test::Integers { low, high }, .. } => {
            value.map(|value| (*low..=*high).contains(&value))
        }
        RowFilter::Test { test: Test::IntegersIn(values), .. } => value.map(|value| values.contains(&value)),
        RowFilter::Test { .. } => None,
    }
}

proptest! {
    #[test]
    fn filters_match_sql(filter in any_filter(), values in prop::collection::vec(prop::option::of(-20_i8..20), 1..40)) {
        let bytes: Vec<u8> = values.iter().map(|value| value.unwrap_or(3) as u8).collect();
        let elements = Elements::fixed(bytes).with_validity(Some(Validity::from_flags(values.iter().map(Option::is_some))));
        let expected: Vec<u32> = (0..values.len() as u32)
            .filter(|row| sql(&filter, values[*row as usize].map(i128::from)) == Some(true))
            .collect();
        prop_assert_eq!(rows_of(&filter, &DType::Int8, &elements).unwrap(), expected.clone());
        // Statistics never contradict the rows.
        let there: Vec<i8> = values.iter().copied().flatten().collect();
        if let (Some(min), Some(max)) = (there.iter().min(), there.iter().max()) {
            let range = ColumnRange {
                min: Number::Integer((*min).into()), max: Number::Integer((*max).into()), missing: there.len() < values.len(),
            };
            if filter.rules_out(&|_| Some(range)) {
                prop_assert!(expected.is_empty());
            }
            if filter.takes_all(&|_| Some(range)) {
                prop_assert_eq!(expected.len(), values.len());
            }
        }
        // Nor do bounds.
        let bounds = filter.bounds("a");
        for row in &expected {
            let value = Bound::Integer(values[*row as usize].unwrap_or(0).into());
            if values[*row as usize].is_some() {
                prop_assert!(bounds.low.as_ref().is_none_or(|low| at_most(low, &value)));
                prop_assert!(bounds.high.as_ref().is_none_or(|high| at_most(&value, high)));
            }
        }
    }
}

fn at_most(a: &Bound, b: &Bound) -> bool {
    matches!((a, b), (Bound::Integer(a), Bound::Integer(b)) if a <= b)
}
