//! Text from users: selections, conditions, query documents, attributes, dates. The first byte selects the language.
#![no_main]

use hyperslab::query::document::Document;
use hyperslab::query::{Axis, Conditions};
use hyperslab::{DType, RowCondition, Selection};
use hyperslab_core::{Calendar, TimeAxis, TimeUnit, closest, date_tick};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match first % 8 {
        0 => selection(text),
        1 => drop(text.parse::<Conditions>()),
        2 => {
            if let Ok(condition) = text.parse::<RowCondition>() {
                let _ = condition.columns();
            }
        }
        3 => drop(Document::parse(text, false)),
        4 => drop(Document::parse(text, true)),
        5 => {
            let types = [None, Some(DType::Int8), Some(DType::Float32), Some(DType::String)];
            for wanted in &types {
                let _ = hyperslab::edit::parse_attribute(text, wanted.as_ref());
            }
        }
        6 => dates(text),
        _ => {
            let _: Result<Axis, _> = text.parse();
            if let Some((first, rest)) = text.split_once(' ')
                && text.len() < 200
            {
                let _ = closest(first, rest.split(' '));
            }
        }
    }
});

fn selection(text: &str) {
    let Ok(selection) = text.parse::<Selection>() else { return };
    let _ = selection.resolve(&[10, 1 << 62, 0], &[Some("time".into()), Some("lat".into()), None]);
}

fn dates(text: &str) {
    for name in ["standard", "noleap", "360_day", "julian"] {
        if let Some(calendar) = Calendar::from_name(name)
            && let Some((low, _)) = calendar.span(text)
        {
            let _ = calendar.text(low);
        }
        if let Some(axis) = TimeAxis::parse(text, name) {
            for number in [0.0, 1e300, -1.5, f64::NAN] {
                let _ = axis.text(number);
            }
        }
    }
    let _ = date_tick(text, TimeUnit::Nanosecond, true);
}
