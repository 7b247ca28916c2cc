//! A figure as shapes, independent of pixels and SVG.
//!
//! Coordinates are logical pixels from the top left corner.

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Color {
    /// Red.
    pub red: u8,
    /// Green.
    pub green: u8,
    /// Blue.
    pub blue: u8,
    /// 255 is opaque.
    pub alpha: u8,
}

impl Color {
    /// An opaque colour.
    #[must_use]
    pub const fn rgb(red: u8, green: u8, blue: u8) -> Self {
        Self { red, green, blue, alpha: 255 }
    }

    /// The same colour, of another opacity.
    #[must_use]
    pub const fn with_alpha(self, alpha: u8) -> Self {
        Self { alpha, ..self }
    }
}

/// The alignment of a text relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A point.
pub(crate) type Point = (f32, f32);

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Frame {
    pub(crate) x: f32,
    pub(crate) y: f32,
    pub(crate) width: f32,
    pub(crate) height: f32,
}

impl Frame {
    pub(crate) fn right(&self) -> f32 {
        self.x + self.width
    }

    pub(crate) fn bottom(&self) -> f32 {
        self.y + self.height
    }
}

/// One shape.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Box {
        frame: Frame,
        color: Color,
    },
    /// A polygon, filled.
    Area {
        points: Vec<Point>,
        color: Color,
    },
    Line {
        points: Vec<Point>,
        width: f32,
        color: Color,
    },
    /// Many dots of one size, each of its own colour.
    Dots {
        dots: Vec<(Point, Color)>,
        radius: f32,
    },
    /// Text at a baseline; `turned` reads from bottom to top.
    Text {
        at: Point,
        text: String,
        size: f32,
        color: Color,
        anchor: Anchor,
        turned: bool,
    },
    /// Pixels, row by row from the top, stretched over a frame.
    Image {
        frame: Frame,
        columns: u32,
        rows: u32,
        pixels: Vec<Color>,
    },
    /// Clips the following shapes to the frame, until the next clip.
    Clip(Option<Frame>),
}

/// A figure as a list of shapes.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) width: f32,
    pub(crate) height: f32,
    pub(crate) background: Color,
    pub(crate) shapes: Vec<Shape>,
}

impl Scene {
    pub(crate) fn line(&mut self, points: Vec<Point>, width: f32, color: Color) {
        self.shapes.push(Shape::Line { points, width, color });
    }

    pub(crate) fn text(&mut self, at: Point, text: impl Into<String>, style: (f32, Color), anchor: Anchor) {
        let (size, color) = style;
        self.shapes.push(Shape::Text { at, text: text.into(), size, color, anchor, turned: false });
    }
}
