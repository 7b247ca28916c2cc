//! `tet query`: reduces, groups, windows and filters arrays; runs query documents.

mod table;

use hyperslab::driver::element_to_text;
use hyperslab::query::document::Document;
use hyperslab::query::{
    self, Answer as Found, Axis, Explanation, Group, Operation, Pad, Parameters, Query, Window,
};
use hyperslab::{
    ArrayReader, DType, Elements, Error, Node, OpenOptions, Result, Selection, Values, export, rows,
};
use serde_json::{Value, json};

use crate::args::{OpenOptionsArgs, OperationArgs, QueryArgs};
use crate::{Answer, address, output, paint, pretty};

pub(crate) fn run(args: &QueryArgs) -> Result<Answer> {
    if is_document(args) {
        return document(args);
    }
    let (node, selection) = address::node_and_selection(&args.what)?;
    let mut options = super::open_options(&args.open)?;
    if let Some(memory) = &args.memory {
        options = options.with_memory(pretty::parse_bytes(memory)?);
    }
    let store = hyperslab::open_with(&args.open.path, &options)?;
    let (node, selection) = address::chosen_level(&store, (node, selection), args.level)?;
    match store.find(&node)? {
        Node::Table(_) => {
            table::run(args, &store.table(&node)?, selection)?;
            return Ok(Answer::Yes);
        }
        Node::Array(array) if table::is_of_columns(args, array.schema()) => {
            table::run(args, &store.reader(array).table(&selection)?, Selection::all())?;
            return Ok(Answer::Yes);
        }
        _ => {}
    }
    if !args.by.is_empty() {
        return Err(Error::invalid(format!(
            "{node} is not a table; --by applies to tables, --group-by to arrays"
        )));
    }
    let stored = store.array(&node)?;
    let array = decoded(args, &stored)?;
    if let Some((other, correlation)) = pair_of(&args.operations) {
        check_pair(args)?;
        let other = decoded(args, &store.array(other)?)?;
        let skip_nan = args.skip_nan || array.is_decoded() || other.is_decoded();
        let pair = query::pair(&array, &other, &selection, skip_nan)?;
        show_pair(args, pair, correlation)?;
        let cells = array.resolve(&selection)?.cells().unwrap_or(u64::MAX);
        let missing = Some((cells.saturating_sub(pair.count), cells));
        report_decoding(args, &array, &stored, missing, None)?;
        return Ok(Answer::Yes);
    }
    let operations = operations(&args.operations)?;
    if operations.is_empty() {
        return Err(Error::invalid(
            "no operation given; use --mean, --sum, --max or another one listed by tet query --help",
        ));
    }
    let mut base = Query::new(Operation::Count).select(selection);
    for condition in &args.conditions {
        base = base.filter(condition.parse()?);
    }
    for label in &args.label {
        let (axis, label) = label
            .split_once('=')
            .ok_or_else(|| Error::invalid(format!("--label {label}: expected AXIS=LABEL")))?;
        base = base.labelled(axis, label);
    }
    base.memory = args.memory.as_deref().map(pretty::parse_bytes).transpose()?;
    base.skip_nan = args.skip_nan;
    base.trust_hints = args.trust_hints;
    base.group = group(args);
    base.window = window(args)?;
    if args.min_count > 1 && base.window.is_none() {
        return Err(Error::invalid("--min-count applies to windows: use --bins or --rolling"));
    }
    if !args.over.is_empty() && operations.iter().all(|(_, axes)| !axes.is_empty()) {
        return Err(Error::invalid("every operation names its axes, so --over has no effect"));
    }
    let queries = operations.into_iter().map(|(operation, axes)| {
        let over = if axes.is_empty() { args.over.clone() } else { axes };
        let known = stored.schema().dimensions.iter().flatten().map(String::as_str);
        check_no_selection(operation, &over, known)?;
        Ok(Query { operation, ..base.clone() }.over(over.iter().map(|axis| Axis::from(axis.as_str()))))
    });
    let queries = queries.collect::<Result<Vec<Query>>>()?;
    if args.explain {
        return explain(args, &queries, &array);
    }
    let run =
        |query: &Query| query.run(if query.operation.is_about_stored_values() { &stored } else { &array });
    let dated = |found: Found| if args.raw { found } else { found.dated(&stored) };
    let found = queries.iter().map(|query| run(query).map(dated)).collect::<Result<Vec<_>>>()?;
    match &args.output {
        Some(path) => save(args, path, &found, &stored, &base.selection)?,
        None => show(args, &found)?,
    }
    let missing = found.iter().find_map(|found| Some((found.missing?, found.cells)));
    let mut units = found.iter().map(|found| found.unit(&stored));
    let unit = units.next().flatten().filter(|unit| units.all(|own| own.as_ref() == Some(unit)));
    report_decoding(args, &array, &stored, missing, unit)?;
    Ok(Answer::Yes)
}

/// The array to query. Warns of invalid conventions.
fn decoded(args: &QueryArgs, stored: &ArrayReader) -> Result<ArrayReader> {
    if args.raw {
        return Ok(stored.clone());
    }
    super::warn_of_conventions(stored)?;
    stored.decoded_for_query(args.valid)
}

/// Reports in one line which values are missing, and how the file's conventions changed the others. `missing` is the number of
/// missing cells and of all cells, if they were counted; `unit` that of all results.
fn report_decoding(
    args: &QueryArgs,
    array: &ArrayReader,
    stored: &ArrayReader,
    missing: Option<(u64, u64)>,
    unit: Option<String>,
) -> Result<()> {
    let (interpretation, is_decoded) = (stored.interpretation(), array.is_decoded());
    let marks = is_decoded && (args.valid || !interpretation.missing.is_empty()) || array.schema().nullable;
    let mut parts = Vec::new();
    match missing {
        Some((missing, cells)) if is_decoded || missing > 0 => {
            parts.push(format!("{} of {} cells missing", pretty::count(missing), pretty::count(cells)));
        }
        None if marks => parts.push("missing values left out".to_owned()),
        _ => {}
    }
    if is_decoded && interpretation.is_packed() {
        parts.push("values unpacked".to_owned());
    }
    parts.extend(unit.filter(|_| is_decoded).map(|unit| format!("unit {unit}")));
    if parts.is_empty() || args.json {
        return Ok(());
    }
    let raw = if is_decoded { " (--raw: stored values)" } else { "" };
    output::report(|err| writeln!(err, "{}", paint::dim(format!("{}{raw}", parts.join("; ")))))
}

/// Shows the covariance or correlation of two arrays.
fn show_pair(args: &QueryArgs, pair: query::Pair, correlation: bool) -> Result<()> {
    let (name, value) =
        if correlation { ("correlation", pair.correlation) } else { ("covariance", pair.covariance) };
    if args.json {
        return output::print_json(&json!({"operation": name, "count": pair.count, "values": value}));
    }
    let text = value.map_or_else(String::new, |value| {
        let element = Elements::fixed(value.to_ne_bytes().to_vec());
        element_to_text(&DType::Float64, &element, 0)
    });
    output::print(|out| {
        let mut table = pretty::Table::new(&["operation", ">value", ">count"]);
        table.row(vec![name.to_owned(), text, pretty::count(pair.count)]);
        table.write(out)
    })
}

/// Returns true if PATH is a query document. Stores may have the extension of one: references do.
fn is_document(args: &QueryArgs) -> bool {
    let path = &args.open.path;
    let ending = path.extension().and_then(|ending| ending.to_str());
    let is_store = || hyperslab::is_remote(path) || hyperslab::detect(path, &OpenOptions::default()).is_ok();
    args.target.is_some() || matches!(ending, Some("json" | "toml")) && !is_store()
}

/// PATH is a query document: it is checked, and with `-x` run on the target.
fn document(args: &QueryArgs) -> Result<Answer> {
    let path = &args.open.path;
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::io(path.display().to_string(), source))?;
    let toml = match path.extension().and_then(|ending| ending.to_str()) {
        Some("json") => false,
        Some("toml") => true,
        _ => !text.trim_start().starts_with('{'),
    };
    let document = Document::parse(&text, toml)?;
    let answer = match (&args.target, args.execute) {
        (Some(target), true) => {
            let mut options =
                super::open_options(&OpenOptionsArgs { format: None, ..args.open.how.clone() })?;
            if let Some(memory) = &args.memory {
                options.memory = pretty::parse_bytes(memory)?;
            }
            document.run(&hyperslab::open_with(target, &options)?, args.preview)?
        }
        _ => document.accepted(),
    };
    let compact = args.open.format.as_deref() == Some("json") && !args.json;
    if compact {
        output::print(|out| writeln!(out, "{answer}"))?;
    } else {
        output::print_json(&answer)?;
    }
    Ok(Answer::Yes)
}

fn operations(args: &OperationArgs) -> Result<Vec<(Operation, Vec<String>)>> {
    let parameters = Parameters { ddof: args.ddof, ..Parameters::default() };
    let reductions = args.reductions.0.iter();
    let mut asked: Vec<_> =
        reductions.map(|(info, axes)| (info.operation(&parameters), words(axes))).collect();
    if let Some(q) = args.quantile {
        asked.push((Operation::Quantile(q), Vec::new()));
    }
    if let Some(bins) = args.histogram {
        let range = args.range.as_deref().map(range).transpose()?;
        asked.push((Operation::Histogram { bins, range, clamp: false }, Vec::new()));
    }
    Ok(asked)
}

/// Refuses a selection that an option has taken as its axes.
fn check_no_selection<'a>(
    operation: Operation,
    words: &[String],
    mut known: impl Iterator<Item = &'a str> + Clone,
) -> Result<()> {
    let is_selection =
        |word: &&String| word.contains(['=', '~', '[']) && !known.clone().any(|name| name == **word);
    let Some(word) = words.iter().find(is_selection) else { return Ok(()) };
    let example = known.next().unwrap_or("AXIS");
    let info = operation.info();
    let option = if info.parametric { "over" } else { info.flag };
    Err(Error::invalid(format!(
        "--{option} {word}: this is a selection, which comes before the operation, as in '{word}' --{option} {example}"
    )))
}

/// Refuses options that do not apply to a covariance or correlation, which has one value for all selected cells.
fn check_pair(args: &QueryArgs) -> Result<()> {
    let given = [
        ("where", !args.conditions.is_empty()),
        ("label", !args.label.is_empty()),
        ("over", !args.over.is_empty()),
        ("group-by", !args.group_by.is_empty()),
        ("group-by-label", !args.group_by_label.is_empty()),
        ("bins", args.bins.is_some()),
        ("rolling", args.rolling.is_some()),
        ("ddof", args.operations.ddof != 0),
        ("output", args.output.is_some()),
        ("explain", args.explain),
    ];
    let operations = operations(&args.operations)?;
    let flag = given.iter().find(|(_, given)| *given).map(|(flag, _)| *flag);
    match flag.or_else(|| operations.first().map(|(operation, _)| operation.info().flag)) {
        Some(flag) => Err(Error::invalid(format!(
            "--{flag} does not apply to --covariance and --correlation, which compare all selected cells"
        ))),
        None => Ok(()),
    }
}

/// The other array of a covariance or correlation.
fn pair_of(args: &OperationArgs) -> Option<(&str, bool)> {
    let covariance = args.covariance.as_deref().map(|node| (node, false));
    covariance.or_else(|| args.correlation.as_deref().map(|node| (node, true)))
}

fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn range(text: &str) -> Result<(f64, f64)> {
    let ends = text
        .split_once(',')
        .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)));
    ends.ok_or_else(|| Error::invalid(format!("--range {text}: expected LOW,HIGH")))
}

fn group(args: &QueryArgs) -> Option<Group> {
    let axes = |names: &[String]| names.iter().map(|name| Axis::from(name.as_str())).collect();
    if !args.group_by_label.is_empty() {
        return Some(Group::Labels(axes(&args.group_by_label)));
    }
    (!args.group_by.is_empty()).then(|| Group::Positions(axes(&args.group_by)))
}

fn window(args: &QueryArgs) -> Result<Option<Window>> {
    let Some(text) = args.bins.as_ref().or(args.rolling.as_ref()) else { return Ok(None) };
    let mut parts = text.split(':');
    let bad =
        || Error::invalid(format!("window {text}: expected AXIS:SIZE, or AXIS:SIZE:STEP for --rolling"));
    let (Some(axis), Some(size)) = (parts.next(), parts.next().and_then(|size| size.parse().ok())) else {
        return Err(bad());
    };
    let mut window = if args.bins.is_some() { Window::bins(axis, size) } else { Window::rolling(axis, size) };
    if let Some(step) = parts.next() {
        window.step = step.parse().map_err(|_| bad())?;
    }
    if parts.next().is_some() || (args.bins.is_some() && window.step != 1) {
        return Err(bad());
    }
    window.pad = match args.pad.as_str() {
        "0" => Pad::Zero,
        "nan" => Pad::Nan,
        "fill" => Pad::Fill,
        _ => Pad::None,
    };
    window.from_end = args.from_end;
    window.min_count = args.min_count;
    Ok(Some(window))
}

/// Writes answers to a file: as rows with their labels if the file holds rows, and always if there are several operations.
fn save(
    args: &QueryArgs,
    path: &std::path::Path,
    found: &[Found],
    array: &ArrayReader,
    selection: &hyperslab::Selection,
) -> Result<()> {
    let [only] = found else {
        if path.extension().is_some_and(|ending| ending == "npy") {
            return Err(Error::invalid(
                "an .npy file holds the answers of one operation; .csv, .json, .parquet and .arrow files hold several",
            ));
        }
        let rows = Found::rows_of(found, array, selection)?;
        return super::write_at(path, args.force, &args.open, |path, force| rows::write(rows, path, force));
    };
    let mut values = only.values()?;
    let labelled =
        only.axes.iter().any(|axis| axis.labels.is_some()) || only.edges.is_some() || array.has_labels();
    let is_csv = path.extension().is_some_and(|ending| ending == "csv");
    if !rows::takes_elements(path, &values.dtype) || is_csv && labelled && !only.axes.is_empty() {
        let rows = only.rows(array, selection)?;
        return super::write_at(path, args.force, &args.open, |path, force| rows::write(rows, path, force));
    }
    // NumPy files have no missing elements; among floats, NaN marks them.
    if path.extension().is_some_and(|ending| ending == "npy") && values.dtype == DType::Float64 {
        values.elements.validity = None;
    }
    super::write_at(path, args.force, &args.open, |path, force| export::write(&values, path, force))
}

fn show(args: &QueryArgs, found: &[Found]) -> Result<()> {
    if args.json {
        let all = found.iter().map(Found::to_json).collect::<Result<Vec<Value>>>()?;
        return output::print_json(&match all.as_slice() {
            [only] => only.clone(),
            several => json!(several),
        });
    }
    let values =
        found.iter().map(|found| Ok((found, found.values()?))).collect::<Result<Vec<(&Found, Values)>>>()?;
    output::print(|out| {
        if found.iter().all(|found| found.axes.is_empty()) {
            let mut table = pretty::Table::new(&["operation", ">value", "type"]);
            for (found, values) in &values {
                let text = element_to_text(&values.dtype, &values.elements, 0);
                table.row(vec![found.operation.to_owned(), text, values.dtype.to_string()]);
            }
            return table.write(out);
        }
        for (found, values) in &values {
            pretty::write_values(values, args.full, out)?;
            writeln!(out, "{}", paint::dim(about(found, values)))?;
        }
        Ok(())
    })
}

/// One line: the operation, the type, the axes and the labels of groups.
fn about(found: &Found, values: &Values) -> String {
    let axes: Vec<String> = found
        .axes
        .iter()
        .map(|axis| {
            let name = axis.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
            let labels =
                axis.labels.as_deref().map_or(String::new(), |labels| format!(" ({})", first(labels)));
            format!("{name}{}{labels}", axis.extent)
        })
        .collect();
    let edges: Option<Vec<String>> =
        found.edges.as_ref().map(|edges| edges.iter().map(f64::to_string).collect());
    let edges = edges.map_or(String::new(), |edges| format!(", edges {}", first(&edges)));
    format!("{} {} {}{edges}", found.operation, values.dtype, axes.join(" × "))
}

/// The first of several texts.
fn first(texts: &[String]) -> String {
    let more = if texts.len() > 8 { ", …" } else { "" };
    format!("{}{more}", texts.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", "))
}

fn explain(args: &QueryArgs, queries: &[Query], array: &ArrayReader) -> Result<Answer> {
    let explained = queries
        .iter()
        .map(|query| Ok((query.operation.name(), query.plan(array)?.explain(array)?)))
        .collect::<Result<Vec<_>>>()?;
    show_explanations(args.json, &explained)?;
    Ok(Answer::Yes)
}

/// Shows the costs of operations, by name.
pub(super) fn show_explanations(as_json: bool, explained: &[(&str, Explanation)]) -> Result<()> {
    if as_json {
        let all: Vec<Value> = explained
            .iter()
            .map(|(operation, explained)| json!({"operation": operation, "plan": explained}))
            .collect();
        return output::print_json(&if let [only] = all.as_slice() { only.clone() } else { json!(all) });
    }
    output::print(|out| {
        let mut table = pretty::Table::new(&[
            "operation",
            ">chunks",
            ">skipped",
            ">unwritten",
            ">stored",
            ">decoded",
            ">requests",
            ">rounds",
            ">tasks",
            ">memory",
            "answer",
        ]);
        for (operation, explained) in explained {
            table.row(vec![
                (*operation).to_owned(),
                explained.chunks.to_string(),
                explained.skipped.to_string(),
                explained.unwritten.to_string(),
                pretty::bytes(explained.stored_bytes),
                pretty::bytes(explained.decoded_bytes),
                explained.requests.to_string(),
                explained.rounds.to_string(),
                explained.tasks.to_string(),
                pretty::bytes(explained.memory),
                pretty::shape(&explained.shape),
            ]);
        }
        table.write(out)
    })
}
