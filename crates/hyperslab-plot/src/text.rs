//! Text: widths and outlines of the embedded font.

use std::sync::OnceLock;

use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// A subset of DejaVu Sans: Latin, Greek, Cyrillic, superscripts, arrows and common symbols.
static FONT: &[u8] = include_bytes!("../fonts/DejaVuSans-subset.ttf");

/// The font; `None` only if the embedded file is damaged.
fn face() -> Option<&'static Face<'static>> {
    static FACE: OnceLock<Option<Face<'static>>> = OnceLock::new();
    FACE.get_or_init(|| Face::parse(FONT, 0).ok()).as_ref()
}

/// A character's glyph; a question mark if the font lacks it.
fn glyph(face: &Face<'_>, character: char) -> GlyphId {
    face.glyph_index(character).or_else(|| face.glyph_index('?')).unwrap_or(GlyphId(0))
}

/// The width of a text in logical pixels.
pub(crate) fn width(text: &str, size: f32) -> f32 {
    let Some(face) = face() else { return 0.6 * size * text.chars().count() as f32 };
    let scale = size / f32::from(face.units_per_em());
    let advance = |character| face.glyph_hor_advance(glyph(face, character)).unwrap_or(0);
    text.chars().map(|character| f32::from(advance(character)) * scale).sum()
}

/// A text that fits a width, truncated with an ellipsis if necessary.
pub(crate) fn fitted(text: &str, size: f32, room: f32) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept: String = text.to_owned();
    while kept.pop().is_some() {
        let shown = format!("{}…", kept.trim_end());
        if width(&shown, size) <= room {
            return shown;
        }
    }
    String::new()
}

/// The outline of a text whose baseline starts at the origin.
pub(crate) fn outline(text: &str, size: f32) -> Option<Path> {
    let face = face()?;
    let scale = size / f32::from(face.units_per_em());
    let mut pen = Pen { path: PathBuilder::new(), x: 0.0, scale };
    for character in text.chars() {
        let glyph = glyph(face, character);
        face.outline_glyph(glyph, &mut pen);
        pen.x += f32::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * scale;
    }
    pen.path.finish()
}

/// Places glyphs one after another. Font coordinates point upwards, image coordinates downwards.
struct Pen {
    path: PathBuilder,
    x: f32,
    scale: f32,
}

impl Pen {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_a_width_and_is_cut_to_fit() {
        assert!(width("latitude", 10.0) > width("lat", 10.0));
        assert_eq!(fitted("lat", 10.0, 100.0), "lat");
        let cut = fitted("a long name that does not fit", 10.0, 60.0);
        assert!(cut.ends_with('…') && width(&cut, 10.0) <= 60.0, "{cut}");
    }

    #[test]
    fn unknown_characters_are_drawn_as_question_marks() {
        assert!(outline("\u{1F600}", 10.0).is_some());
        for character in ['é', 'µ', '°', '²', '⁻', 'σ', 'Ж', '→', '…', '×'] {
            assert!(face().is_some_and(|face| face.glyph_index(character).is_some()), "{character}");
        }
    }
}
