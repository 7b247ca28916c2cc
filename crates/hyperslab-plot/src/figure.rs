//! The content of a figure, independent of how it is drawn.

use serde_json::{Value, json};

use crate::axis::Axis;
use crate::color::ColorScale;

/// A figure: one panel, or several of one kind that share their axes and colours.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The title.
    pub title: String,
    /// Further information: the rest of the selection, how it was reduced.
    pub subtitle: String,
    /// The panels, by row.
    pub panels: Vec<Panel>,
    /// The colour scale, and the axis of its values.
    pub colors: Option<(ColorScale, Axis)>,
    /// The aspect ratio (width over height) of a panel; chosen to fit by default.
    pub aspect: Option<f64>,
}

/// One panel.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The title that distinguishes it from other panels.
    pub title: String,
    /// The x axis, from left to right.
    pub x: Axis,
    /// The y axis, from bottom to top, or [downwards](Axis::downwards).
    pub y: Axis,
    /// What is drawn.
    pub content: Content,
}

/// The content of a panel.
#[derive(Debug, Clone)]
pub enum Content {
    /// Values as colours, row by row; row 0 is at position 0 of the y axis.
    Heat {
        /// Cells, in C order; NaN is missing.
        cells: Vec<f64>,
        /// Cells in a row.
        columns: usize,
        /// Rows.
        rows: usize,
    },
    /// Values along the x axis; NaN leaves a gap.
    Line {
        /// Positions on the x axis and values.
        points: Vec<(f64, f64)>,
    },
    /// The minimum and maximum of each of many pieces of the x axis.
    Band {
        /// Minimum and maximum, by piece.
        pieces: Vec<(f64, f64)>,
    },
    /// Counts between edges.
    Bars {
        /// The edges: one more than there are counts.
        edges: Vec<f64>,
        /// The counts.
        counts: Vec<f64>,
    },
    /// Points, and lines between them.
    Points {
        /// Their positions.
        points: Vec<[f64; 2]>,
        /// Their colours.
        color: PointColor,
        /// Lines, as rows of points.
        lines: Vec<Vec<usize>>,
    },
}

/// The colours of points.
#[derive(Debug, Clone)]
pub enum PointColor {
    /// All points have the same colour.
    Same,
    /// One value per point.
    Values(Vec<f64>),
    /// One group per point; neighbouring groups differ in colour.
    Groups(Vec<usize>),
}

impl Content {
    /// The kind of figure.
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
    /// The reduced data of the figure, as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let axis = self.colors.as_ref().map(|(_, axis)| axis);
        let panels: Vec<Value> = self.panels.iter().map(|panel| panel_json(panel, axis)).collect();
        let colors = self.colors.as_ref().map(|(scale, axis)| {
            let range = [axis.value(scale.low), axis.value(scale.high)];
            json!({"label": axis.label, "map": scale.map.name(), "range": range})
        });
        json!({"title": self.title, "subtitle": self.subtitle, "panels": panels, "colors": colors})
    }
}

/// A panel as JSON. Values are those of the axis of colours, if there is one.
fn panel_json(panel: &Panel, colors: Option<&Axis>) -> Value {
    let axis = |axis: &Axis, positions: Vec<f64>, values: bool| {
        let (low, high) = axis.range;
        let range = if values { json!([axis.value(low), axis.value(high)]) } else { json!([low, high]) };
        let mut told = json!({"label": axis.label, "range": range});
        let coordinates: Option<Vec<Value>> = positions.iter().map(|at| axis.coordinate(*at)).collect();
        if let Some(coordinates) = coordinates.filter(|coordinates| !coordinates.is_empty()) {
            told["coordinates"] = coordinates.into();
        }
        told
    };
    // The centres of equal parts of an axis.
    let centres = |axis: &Axis, count: usize| -> Vec<f64> {
        let (low, high) = axis.range;
        (0..count).map(|number| low + (number as f64 + 0.5) / count as f64 * (high - low)).collect()
    };
    let (across, down) = match &panel.content {
        Content::Heat { columns, rows, .. } => (centres(&panel.x, *columns), centres(&panel.y, *rows)),
        Content::Line { points } => (points.iter().map(|(x, _)| *x).collect(), Vec::new()),
        Content::Band { pieces } => (centres(&panel.x, pieces.len()), Vec::new()),
        Content::Bars { .. } | Content::Points { .. } => (Vec::new(), Vec::new()),
    };
    let on = |axis: &Axis, values: &[f64]| values.iter().map(|value| axis.value(*value)).collect::<Value>();
    let numbers = |values: &[f64]| on(colors.unwrap_or(&panel.y), values);
    let number = |value: f64| panel.y.value(value);
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
        Content::Bars { edges, counts } => {
            json!({"edges": on(&panel.x, edges), "counts": on(&panel.y, counts)})
        }
        Content::Points { points, lines, .. } => {
            json!({"points": points.iter().map(|point| json!([panel.x.value(point[0]), number(point[1])])).collect::<Value>(), "lines": lines})
        }
    };
    let mut object = json!({
        "kind": panel.content.kind(),
        "title": panel.title,
        "x": axis(&panel.x, across, matches!(panel.content, Content::Bars { .. })),
        "y": axis(&panel.y, down, !matches!(panel.content, Content::Heat { .. })),
    });
    if let (Value::Object(object), Value::Object(content)) = (&mut object, content) {
        object.extend(content);
    }
    object
}
