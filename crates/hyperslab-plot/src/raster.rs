//! Shapes to pixels.

use hyperslab::{Error, Result};
use tiny_skia::{
    FillRule, FilterQuality, Mask, Paint, PathBuilder, Pixmap, PixmapPaint, Rect, Stroke, Transform,
};

use crate::scene::{Anchor, Color, Frame, Point, Scene, Shape};
use crate::text;

/// The maximum number of pixels in a figure.
const MOST_PIXELS: f32 = 1.2e8;

/// Draws a scene with `scale` pixels per logical pixel.
pub(crate) fn draw(scene: &Scene, scale: f32) -> Result<Pixmap> {
    let (width, height) = ((scene.width * scale).round(), (scene.height * scale).round());
    let too_large = || Error::invalid(format!("cannot draw a figure of {width} × {height} pixels"));
    if !(width >= 1.0 && height >= 1.0 && width * height <= MOST_PIXELS) {
        return Err(too_large());
    }
    let pixmap = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
    let mut canvas = Canvas { pixmap, scale: Transform::from_scale(scale, scale), mask: None };
    canvas.pixmap.fill(skia_color(scene.background));
    for shape in &scene.shapes {
        canvas.shape(shape);
    }
    Ok(canvas.pixmap)
}

fn skia_color(color: Color) -> tiny_skia::Color {
    tiny_skia::Color::from_rgba8(color.red, color.green, color.blue, color.alpha)
}

fn paint(color: Color) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color(skia_color(color));
    paint
}

struct Canvas {
    pixmap: Pixmap,
    scale: Transform,
    mask: Option<Mask>,
}

impl Canvas {
    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Box { frame, color } => {
                if let Some(rect) = Rect::from_xywh(frame.x, frame.y, frame.width, frame.height) {
                    self.pixmap.fill_rect(rect, &paint(*color), self.scale, self.mask.as_ref());
                }
            }
            Shape::Area { points, color } => {
                if let Some(path) = polygon(points, true) {
                    self.fill(&path, *color, self.scale);
                }
            }
            Shape::Line { points, width, color } => self.stroke(points, *width, *color),
            Shape::Dots { dots, radius } => self.dots(dots, *radius),
            Shape::Text { at, text, size, color, anchor, turned } => {
                let Some(path) = text::outline(text, *size) else { return };
                let back = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => text::width(text, *size) / 2.0,
                    Anchor::End => text::width(text, *size),
                };
                let mut place = Transform::from_translate(-back, 0.0);
                if *turned {
                    place = place.post_rotate(-90.0);
                }
                let place = place.post_translate(at.0, at.1).post_concat(self.scale);
                self.fill(&path, *color, place);
            }
            Shape::Image { frame, columns, rows, pixels } => self.image(frame, (*columns, *rows), pixels),
            Shape::Clip(frame) => self.clip(frame.as_ref()),
        }
    }

    fn fill(&mut self, path: &tiny_skia::Path, color: Color, place: Transform) {
        self.pixmap.fill_path(path, &paint(color), FillRule::Winding, place, self.mask.as_ref());
    }

    fn stroke(&mut self, points: &[Point], width: f32, color: Color) {
        let Some(path) = polygon(points, false) else { return };
        let stroke = Stroke {
            width,
            line_join: tiny_skia::LineJoin::Round,
            line_cap: tiny_skia::LineCap::Butt,
            ..Stroke::default()
        };
        self.pixmap.stroke_path(&path, &paint(color), &stroke, self.scale, self.mask.as_ref());
    }

    fn dots(&mut self, dots: &[(Point, Color)], radius: f32) {
        for ((x, y), color) in dots {
            if radius * self.scale.sx <= 1.0 {
                if let Some(rect) = Rect::from_xywh(x - radius, y - radius, 2.0 * radius, 2.0 * radius) {
                    self.pixmap.fill_rect(rect, &paint(*color), self.scale, self.mask.as_ref());
                }
            } else if let Some(path) = PathBuilder::from_circle(*x, *y, radius) {
                self.fill(&path, *color, self.scale);
            }
        }
    }

    fn image(&mut self, frame: &Frame, (columns, rows): (u32, u32), pixels: &[Color]) {
        let Some(image) = image_of(columns, rows, pixels) else { return };
        let (wide, high) = (frame.width / columns as f32, frame.height / rows as f32);
        // Cells larger than pixels keep sharp edges.
        let sharp = wide * self.scale.sx >= 1.0 && high * self.scale.sy >= 1.0;
        let quality = if sharp { FilterQuality::Nearest } else { FilterQuality::Bilinear };
        let options = PixmapPaint { quality, ..PixmapPaint::default() };
        let place =
            Transform::from_scale(wide, high).post_translate(frame.x, frame.y).post_concat(self.scale);
        self.pixmap.draw_pixmap(0, 0, image.as_ref(), &options, place, self.mask.as_ref());
    }

    fn clip(&mut self, frame: Option<&Frame>) {
        self.mask = frame.and_then(|frame| {
            let mut mask = Mask::new(self.pixmap.width(), self.pixmap.height())?;
            let rect = Rect::from_xywh(frame.x, frame.y, frame.width, frame.height)?;
            mask.fill_path(&PathBuilder::from_rect(rect), FillRule::Winding, false, self.scale);
            Some(mask)
        });
    }
}

/// Cells as a separate image.
fn image_of(columns: u32, rows: u32, pixels: &[Color]) -> Option<Pixmap> {
    let mut image = Pixmap::new(columns, rows)?;
    for (to, color) in image.pixels_mut().iter_mut().zip(pixels) {
        *to = skia_color(*color).premultiply().to_color_u8();
    }
    Some(image)
}

/// Cells as a separate PNG.
pub(crate) fn image_png(columns: u32, rows: u32, pixels: &[Color]) -> Result<Vec<u8>> {
    let image = image_of(columns, rows, pixels).ok_or_else(|| Error::invalid("the figure has no pixels"))?;
    png(&image)
}

/// Pixels as PNG.
pub(crate) fn png(pixmap: &Pixmap) -> Result<Vec<u8>> {
    pixmap.encode_png().map_err(|error| Error::invalid(format!("PNG: {error}")))
}

fn polygon(points: &[Point], close: bool) -> Option<tiny_skia::Path> {
    let mut path = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    path.move_to(first.0, first.1);
    for (x, y) in rest {
        path.line_to(*x, *y);
    }
    if close {
        path.close();
    }
    path.finish()
}
