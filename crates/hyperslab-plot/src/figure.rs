//! What a picture shows, before it is drawn anywhere.

use serde_json::{Value, json};

use crate::axis::Axis;
use crate::color::ColorScale;

/// A picture: one panel, or several of one kind that share their axes and colours.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What is shown.
    pub title: String,
    /// What else is to be said: the rest of the selection, how it was reduced.
    pub subtitle: String,
    /// The panels, by row.
    pub panels: Vec<Panel>,
    /// What colours mean, and of what.
    pub colors: Option<(ColorScale, String)>,
    /// Width over height of a panel; as the picture has room when left out.
    pub aspect: Option<f64>,
}

/// One panel.
#[derive(Debug, Clone)]
pub struct Panel {
    /// What tells it from the others.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top, or [downwards](Axis::downwards).
    pub y: Axis,
    /// What is drawn.
    pub content: Content,
}

/// What a panel shows.
#[derive(Debug, Clone)]
pub enum Content {
    /// Values as colours, row by row; row 0 is at position 0 of the y axis.
    Heat {
        /// Cells, in C order; not-a-number is missing.
        cells: Vec<f64>,
        /// Cells in a row.
        columns: usize,
        /// Rows.
        rows: usize,
    },
    /// Values along the x axis; not-a-number leaves a gap.
    Line {
        /// Where on the x axis, and the value.
        points: Vec<(f64, f64)>,
    },
    /// The smallest and the largest value of each of many pieces of the x axis.
    Band {
        /// Smallest and largest, by piece.
        pieces: Vec<(f64, f64)>,
    },
    /// Counts between edges.
    Bars {
        /// One more than counts.
        edges: Vec<f64>,
        /// How many.
        counts: Vec<f64>,
    },
    /// Points, and lines between them.
    Points {
        /// Where they are.
        points: Vec<[f64; 2]>,
        /// What gives each its colour.
        color: PointColor,
        /// Lines, as rows of points.
        lines: Vec<Vec<usize>>,
    },
}

/// What gives points their colours.
#[derive(Debug, Clone)]
pub enum PointColor {
    /// All have the same.
    Same,
    /// A value each.
    Values(Vec<f64>),
    /// A group each; neighbouring groups differ.
    Groups(Vec<usize>),
}

impl Content {
    /// What kind of picture it is.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Heat { .. } => "heatmap",
            Self::Line { .. } | Self::Band { .. } => "line",
            Self::Bars { .. } => "histogram",
            Self::Points { .. } => "points",
        }
    }
}

impl Figure {
    /// The reduced data behind the picture, as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let panels: Vec<Value> = self.panels.iter().map(panel_json).collect();
        let colors = self.colors.as_ref().map(|(scale, label)| {
            json!({"label": label, "map": scale.map.name(), "range": [scale.low, scale.high]})
        });
        json!({"title": self.title, "subtitle": self.subtitle, "panels": panels, "colors": colors})
    }
}

/// Numbers that JSON lacks are written as they are everywhere else.
fn number(value: f64) -> Value {
    match value {
        _ if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => value.into(),
    }
}

fn panel_json(panel: &Panel) -> Value {
    let axis = |axis: &Axis| json!({"label": axis.label, "range": [axis.range.0, axis.range.1]});
    let numbers = |values: &[f64]| values.iter().map(|value| number(*value)).collect::<Value>();
    let content = match &panel.content {
        Content::Heat { cells, columns, .. } => {
            json!({"values": cells.chunks((*columns).max(1)).map(numbers).collect::<Value>()})
        }
        Content::Line { points } => {
            json!({"points": points.iter().map(|(x, y)| json!([x, number(*y)])).collect::<Value>()})
        }
        Content::Band { pieces } => {
            let both = |(low, high): &(f64, f64)| json!([number(*low), number(*high)]);
            json!({"ranges": pieces.iter().map(both).collect::<Value>()})
        }
        Content::Bars { edges, counts } => json!({"edges": numbers(edges), "counts": numbers(counts)}),
        Content::Points { points, lines, .. } => {
            json!({"points": points.iter().map(|point| numbers(point)).collect::<Value>(), "lines": lines})
        }
    };
    let mut object = json!({
        "kind": panel.content.kind(),
        "title": panel.title,
        "x": axis(&panel.x),
        "y": axis(&panel.y),
    });
    if let (Value::Object(object), Value::Object(content)) = (&mut object, content) {
        object.extend(content);
    }
    object
}
