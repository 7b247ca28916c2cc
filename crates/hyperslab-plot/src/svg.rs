//! Writes shapes as SVG.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyperslab::Result;

use crate::raster;
use crate::scene::{Anchor, Color, Frame, Point, Scene, Shape};

/// Font families that resemble the embedded font, by which text is measured.
const FAMILIES: &str = "DejaVu Sans, Verdana, Geneva, sans-serif";

/// More dots than this become one image, because browsers are slow with many circles.
const MAX_DOTS: usize = 20_000;

/// A scene as an SVG document.
pub(crate) fn write(scene: &Scene) -> Result<String> {
    let (width, height) = (number(scene.width), number(scene.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{FAMILIES}\">\n\
         <rect width=\"100%\" height=\"100%\" {}/>\n",
        fill(scene.background)
    );
    let (mut clips, mut clipped) = (0, false);
    for shape in &scene.shapes {
        if let Shape::Clip(frame) = shape {
            if std::mem::take(&mut clipped) {
                out.push_str("</g>\n");
            }
            if let Some(frame) = frame {
                clips += 1;
                clipped = true;
                push(
                    &mut out,
                    format_args!(
                        "<clipPath id=\"clip{clips}\"><rect {}/></clipPath>\n<g clip-path=\"url(#clip{clips})\">\n",
                        rect(frame)
                    ),
                );
            }
            continue;
        }
        write_shape(&mut out, shape, scene)?;
    }
    if clipped {
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    Ok(out)
}

/// Writing to a string cannot fail.
fn push(out: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(what);
}

fn write_shape(out: &mut String, shape: &Shape, scene: &Scene) -> Result<()> {
    match shape {
        Shape::Box { frame, color } => {
            push(out, format_args!("<rect {} {}/>\n", rect(frame), fill(*color)));
        }
        Shape::Area { points, color } => {
            push(out, format_args!("<polygon points=\"{}\" {}/>\n", list(points), fill(*color)));
        }
        Shape::Line { points, width, color } => {
            push(
                out,
                format_args!(
                    "<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\" stroke-width=\"{}\" {}/>\n",
                    list(points),
                    number(*width),
                    paint("stroke", *color)
                ),
            );
        }
        Shape::Dots { dots, radius } if dots.len() > MAX_DOTS => {
            let alone = Scene {
                background: Color::rgb(255, 255, 255).with_alpha(0),
                shapes: vec![Shape::Dots { dots: dots.clone(), radius: *radius }],
                ..*scene
            };
            let whole = Frame { x: 0.0, y: 0.0, width: scene.width, height: scene.height };
            write_image(out, &whole, &raster::png(&raster::draw(&alone, 2.0)?)?, "auto");
        }
        Shape::Dots { dots, radius } => {
            for ((x, y), color) in dots {
                let (x, y, r) = (number(*x), number(*y), number(*radius));
                push(out, format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {}/>\n", fill(*color)));
            }
        }
        Shape::Text { at, text, size, color, anchor, turned } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let (x, y) = (number(at.0), number(at.1));
            let turn = if *turned { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            push(
                out,
                format_args!(
                    "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\"{turn} {}>{}</text>\n",
                    number(*size),
                    fill(*color),
                    escaped(text)
                ),
            );
        }
        Shape::Image { frame, columns, rows, pixels } => {
            write_image(out, frame, &raster::image_png(*columns, *rows, pixels)?, "pixelated");
        }
        Shape::Clip(_) => {}
    }
    Ok(())
}

fn write_image(out: &mut String, frame: &Frame, png: &[u8], rendering: &str) {
    let data = STANDARD.encode(png);
    push(
        out,
        format_args!(
            "<image {} preserveAspectRatio=\"none\" style=\"image-rendering:{rendering}\" \
             href=\"data:image/png;base64,{data}\"/>\n",
            rect(frame)
        ),
    );
}

fn rect(frame: &Frame) -> String {
    let (x, y, width, height) = (number(frame.x), number(frame.y), number(frame.width), number(frame.height));
    format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
}

fn fill(color: Color) -> String {
    paint("fill", color)
}

fn paint(what: &str, color: Color) -> String {
    let mut text = format!("{what}=\"#{:02x}{:02x}{:02x}\"", color.red, color.green, color.blue);
    if color.alpha < 255 {
        push(&mut text, format_args!(" {what}-opacity=\"{}\"", number(f32::from(color.alpha) / 255.0)));
    }
    text
}

fn list(points: &[Point]) -> String {
    let mut text = String::with_capacity(12 * points.len());
    for (x, y) in points {
        push(&mut text, format_args!("{},{} ", number(*x), number(*y)));
    }
    text.truncate(text.trim_end().len());
    text
}

/// A precision of a hundredth of a pixel is enough.
fn number(value: f32) -> f32 {
    (value * 100.0).round() / 100.0
}

/// Escapes text. Characters that XML does not allow are left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("<b a=\"1\">&\u{1}</b>"), "&lt;b a=&quot;1&quot;&gt;&amp;&lt;/b&gt;");
    }
}
