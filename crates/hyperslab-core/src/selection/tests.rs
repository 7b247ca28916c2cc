use proptest::prelude::*;

use super::*;

fn resolved(text: &str, shape: &[u64]) -> Result<Positions> {
    let names = [Some("time".to_owned()), None, Some("x".to_owned())];
    text.parse::<Selection>()?.resolve(shape, &names[..shape.len()])
}

#[test]
fn written_forms_are_understood() -> Result<()> {
    assert_eq!(resolved("[]", &[4, 5])?.shape(), [4, 5].into());
    assert_eq!(resolved("[1]", &[4, 5])?.shape(), [5].into());
    assert_eq!(resolved("[..., -1]", &[4, 5, 6])?.shape(), [4, 5].into());
    assert_eq!(
        resolved("[:, ::-2]", &[4, 5])?.axes[1],
        AxisPositions { start: 4, count: 3, step: -2, keep: true }
    );
    assert_eq!(resolved("time[1:3]", &[4, 5])?.shape(), [2, 5].into());
    assert_eq!(resolved(" [ 2 : , 3 ] ", &[4, 5])?.shape(), [2].into());
    for text in ["time=2020-01-01T12:00:30", "lat=30:60", "name=a:b", "name=a:", "t=..2020-01-01 12:00"] {
        assert!(text.parse::<Selection>().is_ok(), "{text}");
    }
    let labels: Selection = "time=2020-01-01..2020-02-01".parse()?;
    assert_eq!(
        labels.items,
        [SelectionItem::Labels {
            dimension: "time".into(),
            from: Some("2020-01-01".into()),
            to: Some("2020-02-01".into()),
            single: false
        }]
    );
    Ok(())
}

#[test]
fn nonsense_is_refused_with_the_reason() {
    for (text, why) in [
        ("[1:2:3:4]", "more than start:stop:step"),
        ("[a]", "not a whole number"),
        ("[::0]", "step must not be zero"),
        ("[..., ...]", "more than one"),
        ("[1,,2]", "an axis is missing"),
        ("hello", "expected"),
        ("time=", "label is missing"),
        ("lat=30:", "two dots, as in lat=30.."),
        ("lat=:-3.5", "two dots, as in lat=..-3.5"),
        ("time=2000-01-05:2000-01-07", "two dots, as in time=2000-01-05..2000-01-07"),
        ("time=2000-01-05T12:00 : 2000-01-07", "two dots, as in time=2000-01-05T12:00..2000-01-07"),
        ("[4]", "out of bounds"),
        ("[-5]", "out of bounds"),
        ("[0,0,0]", "the selection has 3 axes"),
        ("y[0]", "no dimension y; there are time"),
    ] {
        let error = resolved(text, &[4, 5]).expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

/// The result of Python's `range(n)[start:stop:step]`, found by walking.
fn walked(extent: u64, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<u64> {
    let extent = extent as i64;
    let bound = |bound: i64| if bound < 0 { bound + extent } else { bound };
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let mut at = start.map_or(if step > 0 { low } else { high }, |bound_| bound(bound_).clamp(low, high));
    let end = stop.map_or(if step > 0 { high } else { low }, |bound_| bound(bound_).clamp(low, high));
    let mut found = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        found.push(at as u64);
        at += step;
    }
    found
}

proptest! {
    #[test]
    fn slices_match_numpy(
        extent in 0_u64..30,
        start in prop::option::of(-40_i64..40),
        stop in prop::option::of(-40_i64..40),
        step in prop_oneof![-7_i64..0, 1_i64..8],
    ) {
        let axis = AxisSelection::Slice { start, stop, step }.resolve(extent, 0).unwrap();
        let positions: Vec<u64> =
            (0..axis.count as i64).map(|i| (axis.start as i64 + i * axis.step) as u64).collect();
        prop_assert_eq!(positions, walked(extent, start, stop, step));
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,24}") {
        let _ = resolved(&text, &[4, 5]);
    }
}
