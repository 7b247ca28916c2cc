use hyperslab_core::{Attributes, GeometryLevel, Node};

use super::*;
use crate::table::testing::OneNode;

/// Four vertices at the corners of a square, and one object of three of them.
#[derive(Debug)]
struct Corners {
    schema: GeometrySchema,
    links: Option<(Vec<i64>, u64)>,
}

fn numbers(numbers: &[f32], shape: &[u64]) -> Values {
    Values::new(DType::Float32, shape, Elements::fixed(bytemuck::cast_slice(numbers).to_vec())).unwrap()
}

impl Geometry for Corners {
    fn schema(&self) -> &GeometrySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        "corners"
    }

    fn levels(&self) -> Result<Vec<GeometryLevel>> {
        Ok(Vec::new())
    }

    fn query(&self, _: &GeometryQuery) -> Result<GeometryData> {
        let links = self.links.as_ref().map(|(rows, width)| {
            let shape = [rows.len() as u64 / width, *width];
            Values::new(DType::Int64, &shape, Elements::fixed(bytemuck::cast_slice(rows).to_vec())).unwrap()
        });
        Ok(GeometryData {
            vertices: numbers(&[0., 0., 0., 1., 0., 0., 1., 1., 0.5, 0., 1., 0.], &[4, 3]),
            attributes: vec![
                ("radius".to_owned(), numbers(&[1., 2., 3., 4.], &[4])),
                ("color".to_owned(), numbers(&[0.; 12], &[4, 3])),
            ],
            links,
            link_attributes: Vec::new(),
            objects: vec![(7, vec![0, 1, 2])],
            object_attributes: vec![("length".to_owned(), numbers(&[2.5], &[1]))],
        })
    }
}

fn reader(kind: &str, links: Option<(Vec<i64>, u64)>) -> GeometryReader {
    let schema = GeometrySchema {
        kinds: vec![kind.to_owned()],
        axes: ["x", "y", "z"].map(str::to_owned).to_vec(),
        bounds: None,
        attributes: Attributes::new(),
    };
    OneNode::open(Node::Geometry(Arc::new(Corners { schema, links }))).geometry("/").unwrap()
}

fn selected(kind: &str, links: Option<(Vec<i64>, u64)>) -> Selected {
    reader(kind, links).query(&GeometryQuery::default()).unwrap()
}

fn text(write: impl Fn(&Selected, &mut dyn std::io::Write) -> Result<()>, selected: &Selected) -> String {
    let mut out = Vec::new();
    write(selected, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn json_has_the_documented_shape() {
    let document = selected("skeleton", Some((vec![1, 0, 2, 1], 2))).to_json();
    assert_eq!(document["vertices"][2], json!([1.0, 1.0, 0.5]));
    assert_eq!(document["links"], json!([[1, 0], [2, 1]]));
    assert_eq!(document["objects"], json!({"7": [0, 1, 2]}));
    assert_eq!(document["attributes"]["radius"], json!([1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn rows_have_one_row_per_vertex() -> Result<()> {
    let (columns, batch) = selected("point_cloud", None).rows()?.collect()?;
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["x", "y", "z", "radius", "color", "object"]);
    assert_eq!((batch.rows, batch.columns[5].is_missing(3)), (4, true));
    let mut out = Vec::new();
    crate::rows::write_csv(selected("point_cloud", None).rows()?, &mut out)?;
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains("1.0,1.0,0.5,3.0,\"[0.0,0.0,0.0]\",7\n"), "{out}");
    assert!(out.ends_with("0.0,1.0,0.0,4.0,\"[0.0,0.0,0.0]\",\n"), "{out}");
    Ok(())
}

#[test]
fn obj_has_faces_lines_or_points() {
    let mesh = text(|s, mut o| write_obj(s, &mut o), &selected("mesh", Some((vec![0, 1, 2], 3))));
    assert_eq!(mesh, "v 0 0 0\nv 1 0 0\nv 1 1 0.5\nv 0 1 0\no 7\nf 1 2 3\n");
    let line = text(|s, mut o| write_obj(s, &mut o), &selected("polyline", None));
    assert!(line.ends_with("o 7\nl 1 2 3\n"), "{line}");
    let points = text(|s, mut o| write_obj(s, &mut o), &selected("point_cloud", None));
    assert!(points.ends_with("p 4\no 7\np 1\np 2\np 3\n"), "{points}");
}

#[test]
fn swc_has_parents_before_children() {
    // [child, parent], the root last.
    let tree =
        text(|s, mut o| write_swc(s, &mut o), &selected("skeleton", Some((vec![0, 1, 1, 3, 2, 1], 2))));
    let expected =
        "# id type x y z radius parent\n1 0 0 1 0 4 -1\n2 0 1 0 0 2 1\n3 0 0 0 0 1 2\n4 0 1 1 0.5 3 2\n";
    assert_eq!(tree, expected);
    // Directions that do not form a tree are ignored.
    let graph = text(|s, mut o| write_swc(s, &mut o), &selected("graph", Some((vec![0, 1, 0, 2, 0, 3], 2))));
    assert_eq!(graph.lines().count(), 5);
    let ring = selected("graph", Some((vec![0, 1, 1, 2, 2, 0], 2)));
    assert!(write_swc(&ring, &mut Vec::new()).unwrap_err().to_string().contains("cycle"));
    let path = text(|s, mut o| write_swc(s, &mut o), &selected("streamline", None));
    assert!(path.contains("\n3 0 1 1 0.5 3 2\n"), "{path}");
}

#[test]
fn ply_content_matches_its_header() {
    let mut out = Vec::new();
    write_ply(&selected("mesh", Some((vec![0, 1, 2, 0, 2, 3], 3))), &mut out).unwrap();
    let end = out.windows(11).position(|window| window == b"end_header\n").unwrap() + 11;
    let header = String::from_utf8(out[..end].to_vec()).unwrap();
    assert!(header.contains("element vertex 4") && header.contains("element face 2"), "{header}");
    assert!(header.contains("property double radius") && !header.contains("color"), "{header}");
    // Per vertex three floats, a double and an int; per face a count and three ints.
    assert_eq!(out.len() - end, 4 * (12 + 8 + 4) + 2 * 13);
    assert_eq!(out[out.len() - 13..], [3, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
}

#[test]
fn boxes_and_links_are_checked() {
    assert_eq!(parse_box("0,0,0,1,2,3").unwrap()[1], [1.0, 2.0, 3.0]);
    assert!(parse_box("0,0,0").is_err() && parse_box("a,b").is_err());
    let ask = |text| {
        let query = GeometryQuery { region: Some(parse_box(text).unwrap()), ..GeometryQuery::default() };
        reader("mesh", None).query(&query).map(drop)
    };
    assert!(ask("0,0,0,1,1,1").is_ok());
    assert!(ask("0,0,1,1").is_err() && ask("0,0,9,1,1,1").is_err());
    for links in [vec![0, 4], vec![-1, 0]] {
        assert!(reader("graph", Some((links, 2))).query(&GeometryQuery::default()).is_err());
    }
}
