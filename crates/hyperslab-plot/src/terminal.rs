//! Figures in a terminal: by kitty's graphics protocol, as sixels, or as characters.

mod characters;
mod sixel;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyperslab::{Error, Result};

use crate::figure::Figure;
use crate::{layout, raster};

/// The graphics capabilities of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Graphics {
    /// Images by kitty's protocol, which WezTerm, Ghostty and Konsole support as well.
    Kitty,
    /// Images as sixels: xterm, foot, mlterm, WezTerm, Windows Terminal.
    Sixel,
    /// Characters in 24-bit colours.
    TrueColor,
    /// Characters in the 256 colours of xterm.
    Palette,
    /// Characters only.
    Plain,
}

impl std::str::FromStr for Graphics {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "kitty" => Self::Kitty,
            "sixel" => Self::Sixel,
            "truecolor" => Self::TrueColor,
            "palette" => Self::Palette,
            "plain" => Self::Plain,
            _ => {
                return Err(Error::invalid(format!(
                    "no terminal graphics {text}; choose one of: kitty, sixel, truecolor, palette, plain"
                )));
            }
        })
    }
}

/// The environment variables by which terminals identify themselves.
pub const VARIABLES: [&str; 7] =
    ["NO_COLOR", "TERM", "TERM_PROGRAM", "COLORTERM", "KITTY_WINDOW_ID", "TMUX", "KONSOLE_VERSION"];

impl Graphics {
    /// Detects the terminal from the environment. Images require a terminal known to support them, without a multiplexer.
    #[must_use]
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| variable(name).unwrap_or_default();
        let (term, program) = (value("TERM"), value("TERM_PROGRAM"));
        if !value("NO_COLOR").is_empty() || term == "dumb" {
            return Self::Plain;
        }
        let direct = value("TMUX").is_empty() && !term.starts_with("screen") && !term.starts_with("tmux");
        let kitty = !value("KITTY_WINDOW_ID").is_empty()
            || !value("KONSOLE_VERSION").is_empty()
            || term.contains("kitty")
            || term.contains("ghostty")
            || matches!(program.as_str(), "WezTerm" | "ghostty");
        let sixel = term.contains("sixel")
            || term.starts_with("foot")
            || term.starts_with("mlterm")
            || matches!(program.as_str(), "iTerm.app" | "mintty");
        match value("COLORTERM").as_str() {
            _ if direct && kitty => Self::Kitty,
            _ if direct && sixel => Self::Sixel,
            "truecolor" | "24bit" => Self::TrueColor,
            _ if term.contains("direct") => Self::TrueColor,
            _ => Self::Palette,
        }
    }

    /// Returns true if the terminal shows images.
    #[must_use]
    pub const fn has_images(self) -> bool {
        matches!(self, Self::Kitty | Self::Sixel)
    }

    /// The number of pixels to which values are reduced in a terminal of this size.
    #[must_use]
    pub fn pixels(self, (columns, rows): (usize, usize)) -> (u32, u32) {
        let (across, down) = if self.has_images() { (20, 24) } else { (2, 4) };
        let count = |cells: usize, each: usize| u32::try_from(cells.max(1) * each).unwrap_or(u32::MAX);
        (count(columns.min(1000), across), count(rows.min(1000), down))
    }
}

impl Figure {
    /// The figure for a terminal with this many columns and rows.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a terminal without space.
    pub fn to_terminal(&self, graphics: Graphics, (columns, rows): (usize, usize)) -> Result<String> {
        let (columns, rows) = (columns.clamp(20, 1000), rows.clamp(8, 1000));
        if !graphics.has_images() {
            return Ok(characters::draw(self, graphics, columns, rows));
        }
        // A terminal cell is about 8 by 17 logical pixels. One line is left for the prompt.
        let room = ((columns as f32 * 8.0).min(900.0), ((rows - 1) as f32 * 17.0).min(620.0));
        let picture = raster::draw(&layout::scene(self, room), 1.5)?;
        Ok(match graphics {
            Graphics::Kitty => kitty(&raster::png(&picture)?),
            _ => sixel::encode(&picture),
        })
    }
}

/// A PNG in kitty's protocol: base64, in blocks of 4096 bytes.
fn kitty(png: &[u8]) -> String {
    let data = STANDARD.encode(png);
    let pieces: Vec<&str> =
        data.as_bytes().chunks(4096).map(|piece| std::str::from_utf8(piece).unwrap_or("")).collect();
    let mut out = String::with_capacity(data.len() + 32 * pieces.len());
    for (number, piece) in pieces.iter().enumerate() {
        let more = u8::from(number + 1 < pieces.len());
        let head = if number == 0 { format!("a=T,f=100,q=2,m={more}") } else { format!("m={more}") };
        out.push_str(&format!("\x1b_G{head};{piece}\x1b\\"));
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Graphics {
        Graphics::detect(|name| {
            pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn terminals_are_known_by_their_environment() {
        assert_eq!(with(&[("TERM", "xterm-kitty")]), Graphics::Kitty);
        assert_eq!(with(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")]), Graphics::Kitty);
        assert_eq!(with(&[("TERM", "foot")]), Graphics::Sixel);
        assert_eq!(with(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), Graphics::TrueColor);
        assert_eq!(with(&[("TERM", "xterm-256color")]), Graphics::Palette);
        assert_eq!(with(&[("TERM", "xterm-kitty"), ("NO_COLOR", "1")]), Graphics::Plain);
        assert_eq!(
            with(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x"), ("COLORTERM", "truecolor")]),
            Graphics::TrueColor
        );
        assert_eq!(with(&[("TERM", "dumb")]), Graphics::Plain);
    }

    #[test]
    fn the_last_piece_of_an_image_is_marked() {
        let text = kitty(&[7; 7000]);
        assert_eq!(text.matches("\x1b_G").count(), 3);
        assert!(text.starts_with("\x1b_Ga=T,f=100,q=2,m=1;"));
        let data: String = text
            .split("\x1b_G")
            .skip(1)
            .map(|piece| piece.split_once(';').unwrap().1.trim_end().trim_end_matches("\x1b\\"))
            .collect();
        assert_eq!(STANDARD.decode(data).unwrap(), [7; 7000]);
        assert!(text.contains("\x1b_Gm=0;"));
    }
}
