//! Draws shapes as pixels.

use hyperslab::{Error, Result};
use tiny_skia::{
    FillRule, FilterQuality, Mask, Paint, PathBuilder, Pixmap, PixmapPaint, PremultipliedColorU8, Rect,
    Stroke, Transform,
};

use crate::scene::{Anchor, Color, Frame, Point, Scene, Shape};
use crate::text;

/// The maximum number of pixels in a figure.
const MAX_PIXELS: f32 = 1.2e8;

/// Draws a scene with `scale` pixels per logical pixel.
pub(crate) fn draw(scene: &Scene, scale: f32) -> Result<Pixmap> {
    let (width, height) = ((scene.width * scale).round(), (scene.height * scale).round());
    let too_large = || Error::invalid(format!("cannot draw a figure of {width} × {height} pixels"));
    if !(width >= 1.0 && height >= 1.0 && width * height <= MAX_PIXELS) {
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
        let Some(mut image) = image_of(columns, rows, pixels) else { return };
        // Cells larger than pixels keep sharp edges. If they are so along one axis only, they are averaged along the other.
        let device = (frame.width * self.scale.sx, frame.height * self.scale.sy);
        let sharp = (device.0 >= columns as f32, device.1 >= rows as f32);
        if sharp.0 != sharp.1 {
            let fit = |sharp: bool, count: u32, room: f32| if sharp { count } else { (room as u32).max(1) };
            let size = (fit(sharp.0, columns, device.0), fit(sharp.1, rows, device.1));
            let Some(smaller) = averaged(&image, size) else { return };
            image = smaller;
        }
        let quality = if sharp == (false, false) { FilterQuality::Bilinear } else { FilterQuality::Nearest };
        let (wide, high) = (frame.width / image.width() as f32, frame.height / image.height() as f32);
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

/// An image with fewer pixels, each the mean of those in its place.
fn averaged(image: &Pixmap, (columns, rows): (u32, u32)) -> Option<Pixmap> {
    let (across, down) = (shares(image.width(), columns), shares(image.height(), rows));
    let mut smaller = Pixmap::new(columns, rows)?;
    let places = down.iter().flat_map(|rows| across.iter().map(move |columns| (rows, columns)));
    for (to, (rows, columns)) in smaller.pixels_mut().iter_mut().zip(places) {
        let (mut sums, mut total) = ([0.0_f32; 4], 0.0);
        for ((row, high), (column, wide)) in
            rows.iter().flat_map(|row| columns.iter().map(move |column| (*row, *column)))
        {
            let pixel = image.pixel(column, row)?;
            let parts = [pixel.red(), pixel.green(), pixel.blue(), pixel.alpha()];
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += high * wide * f32::from(part));
            total += high * wide;
        }
        let [red, green, blue, alpha] = sums.map(|sum| (sum / total).round() as u8);
        *to = PremultipliedColorU8::from_rgba(red.min(alpha), green.min(alpha), blue.min(alpha), alpha)?;
    }
    Some(smaller)
}

/// For each of `to` equal parts of `from` cells, the cells in it and how much of each.
fn shares(from: u32, to: u32) -> Vec<Vec<(u32, f32)>> {
    let each = f64::from(from) / f64::from(to);
    let part = |number: u32| {
        let (start, end) = (f64::from(number) * each, f64::from(number + 1) * each);
        let cells = start as u32..(end.ceil() as u32).min(from);
        let share = |cell: u32| (f64::from(cell + 1).min(end) - f64::from(cell).max(start)) as f32;
        cells.map(|cell| (cell, share(cell))).filter(|(_, share)| *share > 0.0).collect()
    };
    (0..to).map(part).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_sharp_if_columns_are_narrower_than_pixels() -> Result<()> {
        let (columns, rows) = (700_u32, 3_u32);
        let colors = [Color::rgb(10, 10, 10), Color::rgb(250, 250, 250), Color::rgb(120, 120, 120)];
        let row = |color: &Color| std::iter::repeat_n(*color, columns as usize).collect::<Vec<_>>();
        let pixels: Vec<Color> = colors.iter().flat_map(row).collect();
        let frame = Frame { x: 0.0, y: 0.0, width: 100.0, height: 90.0 };
        let image = Shape::Image { frame, columns, rows, pixels };
        let scene =
            Scene { width: 100.0, height: 90.0, background: Color::rgb(255, 0, 0), shapes: vec![image] };
        let drawn = draw(&scene, 1.0)?;
        for y in 0..90 {
            let wanted = colors[y as usize / 30].red;
            let shown = drawn.pixel(50, y).map(|pixel| (pixel.red(), pixel.green()));
            assert_eq!(shown, Some((wanted, wanted)), "row {y}");
        }
        Ok(())
    }

    #[test]
    fn parts_share_cells() {
        assert_eq!(shares(4, 2), [vec![(0, 1.0), (1, 1.0)], vec![(2, 1.0), (3, 1.0)]]);
        assert_eq!(shares(3, 2), [vec![(0, 1.0), (1, 0.5)], vec![(1, 0.5), (2, 1.0)]]);
    }
}
