//! A catalog in CDL, the notation of `ncdump -h`.

use std::collections::HashMap;
use std::fmt::Write;

use hyperslab_core::{
    ArraySchema, Attribute, DType, Elements, Error, Node, Result, StructType, Values, child_path,
    element_to_json,
};
use serde_json::Value;

use super::{Catalog, CatalogDimension, CatalogNode};

/// Significant digits of `float` and `double`, as `ncdump` prints them.
const DIGITS: (usize, usize) = (7, 15);

impl Catalog {
    /// The header in CDL, in the format of `ncdump -h`. Nodes without a CDL notation (tables, geometries, links,
    /// damaged nodes) become comments.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the catalog is restricted to a node that is not a group.
    pub fn to_cdl(&self) -> Result<String> {
        let root = self.nodes.first().filter(|node| matches!(node.node, Ok(Node::Group(_))));
        let root = root.ok_or_else(|| Error::invalid("CDL describes a group, not a single node"))?;
        let file = self.path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("data");
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let mut writer = Writer::new(self);
        writer.line(0, &format!("netcdf {} {{", name(if stem.is_empty() { file } else { stem })));
        writer.group(root, 0);
        writer.line(0, "}");
        Ok(writer.out)
    }
}

/// Writes the nodes of a catalog as CDL.
struct Writer<'a> {
    /// The nodes of each group, in the file's order.
    members: HashMap<&'a str, Vec<(&'a str, &'a CatalogNode)>>,
    /// The dimensions of each group, in the order of the arrays that name them.
    dimensions: HashMap<String, Vec<CatalogDimension>>,
    /// The number of the next dimension without a name.
    next: usize,
    /// The named types and their names.
    types: Vec<(&'a DType, &'a str)>,
    out: String,
}

/// Splits a path into its group and its own name.
fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", own)) => ("/", own),
        Some((group, own)) => (group, own),
        None => ("/", path),
    }
}

impl<'a> Writer<'a> {
    fn new(catalog: &'a Catalog) -> Self {
        let mut members: HashMap<&str, Vec<(&str, &CatalogNode)>> = HashMap::new();
        // The first array and axis with each name of a dimension.
        let mut places: HashMap<&str, (usize, usize)> = HashMap::new();
        let mut types = Vec::new();
        for (number, node) in catalog.nodes.iter().enumerate() {
            let (group, own) = split(&node.path);
            if node.path != "/" {
                members.entry(group).or_default().push((own, node));
            }
            match &node.node {
                Ok(Node::Array(array)) => {
                    for (axis, name) in array.schema().dimensions.iter().enumerate() {
                        if let Some(name) = name {
                            places.entry(name).or_insert((number, axis));
                        }
                    }
                }
                Ok(Node::Type(dtype, _)) => types.push((dtype, own)),
                _ => {}
            }
        }
        let mut all = catalog.dimensions();
        all.sort_by_key(|dimension| places.get(split(&dimension.path).1).copied());
        let mut dimensions: HashMap<String, Vec<CatalogDimension>> = HashMap::new();
        let next = all.len();
        for dimension in all {
            dimensions.entry(split(&dimension.path).0.to_owned()).or_default().push(dimension);
        }
        Self { members, dimensions, next, types, out: String::new() }
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.out.extend(std::iter::repeat_n("  ", depth));
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn group(&mut self, group: &'a CatalogNode, depth: usize) {
        let members = self.members.remove(&*group.path).unwrap_or_default();
        self.types(&members, depth);
        let arrays: Vec<_> = members
            .iter()
            .filter_map(|(own, node)| match &node.node {
                Ok(Node::Array(array)) if !node.is_dimension() => Some((*own, *node, array.schema())),
                _ => None,
            })
            .collect();
        let axes: Vec<Vec<String>> =
            arrays.iter().map(|(_, _, schema)| self.axes(&group.path, schema)).collect();
        self.dimensions(&group.path, depth);
        if !arrays.is_empty() {
            self.line(depth, "variables:");
        }
        for ((own, node, schema), axes) in arrays.into_iter().zip(axes) {
            self.variable(own, schema, &axes, depth);
            self.attributes(&name(own), node, depth);
        }
        for (own, node) in &members {
            self.comment(own, node, depth);
        }
        if !group.user_attributes().is_empty() {
            let whose = if depth == 0 { "global" } else { "group" };
            self.out.push('\n');
            self.line(depth, &format!("// {whose} attributes:"));
            self.attributes("", group, depth);
        }
        for (own, node) in members {
            if matches!(node.node, Ok(Node::Group(_))) {
                self.out.push('\n');
                self.line(depth, &format!("group: {} {{", name(own)));
                self.group(node, depth + 1);
                self.line(depth + 1, &format!("}} // group {}", name(own)));
            }
        }
    }

    /// The named types of a group.
    fn types(&mut self, members: &[(&str, &CatalogNode)], depth: usize) {
        let mut first = true;
        for (own, node) in members {
            let Ok(Node::Type(dtype, _)) = &node.node else { continue };
            if std::mem::take(&mut first) {
                self.line(depth, "types:");
            }
            let own = name(own);
            match dtype {
                DType::Struct(fields) => {
                    self.line(depth, &format!("  compound {own} {{"));
                    for field in struct_fields(fields, self) {
                        self.line(depth, &format!("    {field} ;"));
                    }
                    self.line(depth, &format!("  }}; // {own}"));
                }
                other => {
                    let text = self.definition(other, &own);
                    self.line(depth, &format!("  {text} ;"));
                }
            }
        }
    }

    /// A type in one line.
    fn definition(&self, dtype: &DType, own: &str) -> String {
        match dtype {
            DType::Enum(named) => {
                let members: Vec<_> = named
                    .members
                    .iter()
                    .map(|(member, value)| format!("{} = {value}", name(member)))
                    .collect();
                format!("{} enum {own} {{{}}}", self.type_name(&named.base), members.join(", "))
            }
            DType::Opaque(opaque) => format!("opaque({}) {own}", opaque.size),
            DType::List(item) => format!("{}(*) {own}", self.type_name(item)),
            other => format!("{} {own}", self.type_name(other)),
        }
    }

    /// The name of a type: CDL's own, that of a named type of the file, or a description.
    fn type_name(&self, dtype: &DType) -> String {
        let own = match dtype {
            DType::Int8 | DType::Bool => "byte",
            DType::UInt8 => "ubyte",
            DType::Int16 => "short",
            DType::UInt16 => "ushort",
            DType::Int32 => "int",
            DType::UInt32 => "uint",
            DType::Int64 => "int64",
            DType::UInt64 => "uint64",
            DType::Float32 => "float",
            DType::Float64 => "double",
            DType::FixedBytes(1) => "char",
            DType::FixedBytes(_) | DType::FixedText(_) | DType::String => "string",
            other => {
                let named = self.types.iter().find(|(dtype, _)| *dtype == other);
                return named.map_or_else(|| name(&other.to_string()), |(_, own)| name(own));
            }
        };
        own.to_owned()
    }

    fn dimensions(&mut self, group: &str, depth: usize) {
        let own = self.dimensions.remove(group).unwrap_or_default();
        if !own.is_empty() {
            self.line(depth, "dimensions:");
        }
        for dimension in own {
            let (label, length) = (name(split(&dimension.path).1), dimension.length);
            let text = if dimension.unlimited {
                format!("\t{label} = UNLIMITED ; // ({length} currently)")
            } else {
                format!("\t{label} = {length} ;")
            };
            self.line(depth, &text);
        }
    }

    /// The names of an array's dimensions. CDL has no dimension without a name: as in the NetCDF library, such an axis takes
    /// another dimension of its group with the same length, or a new one.
    fn axes(&mut self, group: &str, schema: &ArraySchema) -> Vec<String> {
        let mut used: Vec<String> = schema.dimensions.iter().flatten().cloned().collect();
        let mut names = Vec::with_capacity(schema.dimensions.len());
        for (axis, label) in schema.dimensions.iter().enumerate() {
            if let Some(label) = label {
                names.push(name(label));
                continue;
            }
            let (length, unlimited) = (schema.shape()[axis], schema.max_shape[axis].is_none());
            let known = self.dimensions.entry(group.to_owned()).or_default();
            let fits = |other: &&CatalogDimension| {
                let own = split(&other.path).1;
                other.length == length && other.unlimited == unlimited && used.iter().all(|used| used != own)
            };
            let own = match known.iter().find(fits) {
                Some(other) => split(&other.path).1.to_owned(),
                None => {
                    let own = format!("phony_dim_{}", self.next);
                    self.next += 1;
                    known.push(CatalogDimension { path: child_path(group, &own), length, unlimited });
                    own
                }
            };
            names.push(name(&own));
            used.push(own);
        }
        names
    }

    fn variable(&mut self, own: &str, schema: &ArraySchema, axes: &[String], depth: usize) {
        let mut text = format!("\t{} {}", self.type_name(&schema.dtype), name(own));
        if !axes.is_empty() {
            let _ = write!(text, "({})", axes.join(", "));
        }
        self.line(depth, &format!("{text} ;"));
    }

    /// The attributes of a node. `of` is its name, empty for a group.
    fn attributes(&mut self, of: &str, node: &CatalogNode, depth: usize) {
        for (label, attribute) in node.user_attributes() {
            let own = name(label);
            let (kind, text) = match attribute {
                Attribute::Values(values) => {
                    // Text of variable length is CDL's type `string`; other text is an array of `char`.
                    let stored = node.attributes().and_then(|all| all.stored(label));
                    let variable = values.dtype == DType::String && stored.is_some();
                    (if variable { "string " } else { "" }, values_text(values))
                }
                Attribute::Json(value) => ("", json_text(value)),
                Attribute::Unreadable(why) => {
                    self.line(depth, &format!("\t\t// {of}:{own} cannot be read: {why}"));
                    continue;
                }
                _ => continue,
            };
            self.line(depth, &format!("\t\t{kind}{of}:{own} = {text} ;"));
        }
    }

    /// A node that CDL cannot describe.
    fn comment(&mut self, own: &str, node: &CatalogNode, depth: usize) {
        let what = match &node.node {
            Ok(Node::Table(table)) => {
                let columns: Vec<_> =
                    table.schema().columns.iter().map(|column| column.name.clone()).collect();
                format!("table {} ({})", name(own), columns.join(", "))
            }
            Ok(Node::Geometry(geometry)) => format!("{} {}", geometry.schema().kinds.join(", "), name(own)),
            Ok(Node::Link(target)) => format!("link {} to {target}", name(own)),
            Err(why) => format!("{} cannot be read: {why}", name(own)),
            Ok(_) => return,
        };
        self.line(depth, &format!("\t// {}", what.replace('\n', " ")));
    }
}

/// The members of a compound type: `int a`, `float b(3)`.
fn struct_fields(fields: &StructType, writer: &Writer<'_>) -> Vec<String> {
    let one = |field: &hyperslab_core::Member| match &field.dtype {
        DType::Array(item, shape) => {
            let shape: Vec<_> = shape.iter().map(ToString::to_string).collect();
            format!("{} {}({})", writer.type_name(item), name(&field.name), shape.join(", "))
        }
        dtype => format!("{} {}", writer.type_name(dtype), name(&field.name)),
    };
    fields.members.iter().map(one).collect()
}

/// A name with CDL's special characters escaped.
fn name(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (place, letter) in text.chars().enumerate() {
        let plain = letter.is_alphanumeric() || !letter.is_ascii() || "_.@+-".contains(letter);
        if !plain || (place == 0 && letter.is_ascii_digit()) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// A text in quotation marks.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.trim_end_matches('\0').chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '"' | '\\' => out.extend(['\\', letter]),
            other if other.is_control() => {
                let _ = write!(out, "\\{:03o}", u32::from(other));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn values_text(values: &Values) -> String {
    let count = values.len();
    if count == 0 {
        return quoted("");
    }
    if let DType::FixedBytes(1) = values.dtype
        && let Some(bytes) = values.elements.as_fixed()
    {
        return quoted(&String::from_utf8_lossy(bytes));
    }
    let all = (0..count).map(|index| element_text(&values.dtype, &values.elements, index));
    all.collect::<Vec<_>>().join(", ")
}

fn element_text(dtype: &DType, elements: &Elements, index: usize) -> String {
    let value = element_to_json(dtype, elements, index);
    let suffix = match dtype {
        DType::Int8 | DType::Bool => "b",
        DType::UInt8 => "UB",
        DType::Int16 => "s",
        DType::UInt16 => "US",
        DType::UInt32 => "U",
        DType::Int64 => "LL",
        DType::UInt64 => "ULL",
        DType::Float32 => return format!("{}f", float_text(&value, DIGITS.0)),
        DType::Float64 => return float_text(&value, DIGITS.1),
        DType::Enum(named) => {
            let number = value.as_i64().map(i128::from);
            return number.and_then(|number| named.name_of(number)).map_or_else(|| value.to_string(), name);
        }
        _ => "",
    };
    match &value {
        Value::Number(number) => format!("{number}{suffix}"),
        Value::Bool(flag) => format!("{}{suffix}", u8::from(*flag)),
        other => json_text(other),
    }
}

/// A JSON value in CDL's notation. Objects, which CDL lacks, are texts of their JSON.
fn json_text(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) if number.is_f64() => float_text(value, DIGITS.1),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => format!("{}b", u8::from(*flag)),
        Value::Array(items) if items.iter().all(|item| item.is_number() || item.is_string()) => {
            items.iter().map(json_text).collect::<Vec<_>>().join(", ")
        }
        other => quoted(&other.to_string()),
    }
}

/// A float with a decimal point, so that it cannot be mistaken for an integer.
fn float_text(value: &Value, digits: usize) -> String {
    let number = match value {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        // Floats that are not finite are texts in our JSON.
        Value::String(text) => return text.clone(),
        other => return other.to_string(),
    };
    let text = general(number, digits);
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.e{exponent}"),
        None if !text.contains('.') => format!("{text}."),
        _ => text,
    }
}

/// As C prints with `%.{digits}g`.
fn general(number: f64, digits: usize) -> String {
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{number:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if exponent < -4 || exponent >= i32::try_from(digits).unwrap_or(i32::MAX) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    let decimals = usize::try_from(i32::try_from(digits).unwrap_or(0) - 1 - exponent).unwrap_or(0);
    trim(&format!("{number:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_in_c() {
        for (number, digits, expected) in [
            (1.0, 7, "1"),
            (0.1, 7, "0.1"),
            (1e20, 7, "1e+20"),
            (9.969_209_968_386_869e36, 7, "9.96921e+36"),
            (-1234.5, 15, "-1234.5"),
            (1e-5, 7, "1e-05"),
            (123_456_789.0, 7, "1.234568e+08"),
            (0.0001, 7, "0.0001"),
        ] {
            assert_eq!(general(number, digits), expected);
        }
        assert_eq!(float_text(&Value::from(1e20), 7), "1.e+20");
        assert_eq!(float_text(&Value::from(3.0), 15), "3.");
    }

    #[test]
    fn names_and_texts_are_escaped() {
        assert_eq!(name("2 m (temp)"), "\\2\\ m\\ \\(temp\\)");
        assert_eq!(quoted("a\nb\"c"), "\"a\\nb\\\"c\"");
    }
}
