use hyperslab_core::{DType, Elements, EnumType, TimeUnit};
use proptest::prelude::*;

use super::*;
use crate::rows::plain_column;

fn columns() -> Vec<Column> {
    let cells = EnumType::new(DType::Int8, vec![("NK".to_owned(), 0), ("B".to_owned(), 1)]);
    vec![
        plain_column("count", DType::Int32, false),
        plain_column("score", DType::Float32, false),
        plain_column("name", DType::String, true),
        plain_column("day", DType::DateTime(TimeUnit::Day), false),
        plain_column("type", cells.into(), false),
        plain_column("flag", DType::Bool, false),
        plain_column("odd name", DType::UInt64, false),
    ]
}

/// The rows of a small table that meet a condition.
fn rows(text: &str) -> Result<Vec<u32>> {
    let values = |name: &str| {
        let numbers = |values: &[i32]| {
            Elements::fixed(values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>())
        };
        let wide = |values: &[i64]| {
            Elements::fixed(values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>())
        };
        match name {
            "count" => numbers(&[10, 51, 52, -3]),
            "score" => Elements::fixed(
                [0.1_f32, 2.5, f32::NAN, 1e9]
                    .iter()
                    .flat_map(|value| value.to_ne_bytes())
                    .collect::<Vec<_>>(),
            ),
            "name" => Elements::variable(["a", "it's", "", "Gießen"])
                .with_validity(Some(hyperslab_core::Validity::from_flags([true, true, false, true]))),
            // 2020-01-01, 2020-01-31, 2020-02-01, 2021-01-01.
            "day" => wide(&[18262, 18292, 18293, 18628]),
            "type" => Elements::fixed(vec![0, 1, 0, 1]),
            "flag" => Elements::fixed(vec![1, 0, 1, 0]),
            _ => wide(&[1, 2, 3, 4]),
        }
    };
    let all = columns();
    let filter = text.parse::<RowCondition>()?.bind(&all)?;
    let truth = filter.evaluate(4, &|name| {
        let column = all.iter().find(|column| column.name == name).unwrap();
        Ok((column.dtype.clone(), values(name)))
    })?;
    Ok(truth.rows())
}

#[test]
fn conditions_select_the_expected_rows() -> Result<()> {
    for (text, expected) in [
        ("count > 50 and type == 'NK'", vec![2]),
        ("count > 50 or type = \"NK\"", vec![0, 1, 2]),
        ("not count > 50", vec![0, 3]),
        ("10 <= count < 52", vec![0, 1]),
        ("50 < count", vec![1, 2]),
        ("count in (10, 52, 99)", vec![0, 2]),
        ("count not in [10, 52]", vec![1, 3]),
        ("count between -3 and 10", vec![0, 3]),
        ("count == -3", vec![3]),
        ("count >= 50.5", vec![1, 2]),
        ("count != 10.5", vec![0, 1, 2, 3]),
        ("score == 0.1", vec![0]),
        ("score > 0.1", vec![1, 3]),
        ("score < inf", vec![0, 1, 3]),
        ("score != 0.1", vec![1, 2, 3]),
        ("name == 'it''s'", vec![1]),
        ("name == 'Gießen'", vec![3]),
        ("name is null", vec![2]),
        ("name is not null", vec![0, 1, 3]),
        ("not (name == 'a')", vec![1, 3]),
        ("name >= 'a' AND name < 'b'", vec![0]),
        ("day == '2020-01'", vec![0, 1]),
        ("day > 2020-01-31", vec![2, 3]),
        ("day > 2020", vec![3]),
        ("day <= '2020-01-31'", vec![0, 1]),
        ("day in ('2020-02', '2021')", vec![2, 3]),
        ("type in ('B', 'T')", vec![1, 3]),
        ("type != 'B'", vec![0, 2]),
        ("type == 'nothing'", vec![]),
        ("flag", vec![0, 2]),
        ("!flag & count > 0", vec![1]),
        ("flag == false", vec![1, 3]),
        ("`odd name` >= 3 | `odd name` = 1", vec![0, 2, 3]),
        ("(count > 0 and (flag or type == 'B'))", vec![0, 1, 2]),
        ("count in ()", vec![]),
        ("true", vec![0, 1, 2, 3]),
    ] {
        assert_eq!(rows(text)?, expected, "{text}");
    }
    Ok(())
}

#[test]
fn mistakes_are_explained() {
    for (text, expected) in [
        ("cuont > 5", "no column cuont; did you mean count?"),
        ("count > 'x'", "column count holds int32; 'x' cannot be compared with it"),
        ("count > '5'", "write the number without quotes"),
        ("name > 5", "put text in quotes, as in '5'"),
        ("day > 'soon'", "dates look like '2020-01-31'"),
        ("type > 'B'", "is an enumeration: use ==, != or in"),
        ("type == 1", "holds one of 'NK', 'B'"),
        ("count", "compare it with a value"),
        ("count >", "expected a column or a value at the end"),
        ("count > 5 and", "expected a column or a value at the end"),
        ("count 5", "expected and, or, or the end at character 7"),
        ("(count > 5", "expected a closing parenthesis at the end"),
        ("name == null", "write 'is null'"),
        ("name == 'x", "is not closed"),
        ("count > 5 $", "has no meaning here"),
        ("count == score", "comparing the columns count and score"),
        ("type == NK", "no column NK; put text in quotes, as in 'NK'"),
        ("x == name", "no column x; put text in quotes, as in 'x'"),
        ("count > scoer", "no column scoer; did you mean score?"),
        ("cuont > score", "no column cuont; did you mean count?"),
        ("5 > 4", "one must be a column"),
        ("", "the condition is empty"),
        ("count > 1x", "\"1x\" is not a number"),
        ("name in ('a' 'b')", "expected a comma or a closing parenthesis"),
        ("name in (a)", "text needs quotes"),
    ] {
        let error = rows(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = format!("{}flag{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(rows(&deep).unwrap_err().to_string().contains("nested deeper"));
    assert!(rows(&format!("{}flag", "not ".repeat(100_000))).is_err());
}

proptest! {
    #[test]
    fn no_text_panics(text in "[a-z0-9 '\"`<>=!&|()\\[\\],.\\-_Tßé]{0,40}") {
        let _ = rows(&text);
    }
}
