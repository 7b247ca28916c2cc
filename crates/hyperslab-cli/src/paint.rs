//! Sparse colours. They are stripped if the output is not a terminal.

use std::fmt::{self, Display};

use anstyle::{AnsiColor, Style};

/// A text in a style.
pub(crate) struct Painted<T>(Style, T);

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (style, text) = (self.0, &self.1);
        write!(f, "{style}{text}{style:#}")
    }
}

/// A heading or a name.
pub(crate) const fn strong<T: Display>(text: T) -> Painted<T> {
    Painted(Style::new().bold(), text)
}

/// Less important.
pub(crate) const fn dim<T: Display>(text: T) -> Painted<T> {
    Painted(Style::new().dimmed(), text)
}

/// Success.
pub(crate) const fn good<T: Display>(text: T) -> Painted<T> {
    Painted(AnsiColor::Green.on_default(), text)
}

/// A warning.
pub(crate) const fn doubtful<T: Display>(text: T) -> Painted<T> {
    Painted(AnsiColor::Yellow.on_default(), text)
}

/// An error.
pub(crate) const fn bad<T: Display>(text: T) -> Painted<T> {
    Painted(AnsiColor::Red.on_default().bold(), text)
}

/// A command that can be typed.
pub(crate) const fn command<T: Display>(text: T) -> Painted<T> {
    Painted(AnsiColor::Cyan.on_default(), text)
}
