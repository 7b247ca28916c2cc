//! Sixels: six rows at a time, one colour after another.

use std::collections::HashMap;
use std::fmt::Write;

use tiny_skia::Pixmap;

/// The number of colours in a terminal's palette.
const COLORS: usize = 255;

/// Encodes pixels as sixels, in the most frequent colours.
pub(super) fn encode(picture: &Pixmap) -> String {
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let (palette, indices) = reduced(picture);
    let mut out = format!("\x1bPq\"1;1;{width};{height}");
    let percent = |value: u8| (u32::from(value) * 100 + 127) / 255;
    for (number, [red, green, blue]) in palette.iter().enumerate() {
        push(&mut out, format_args!("#{number};2;{};{};{}", percent(*red), percent(*green), percent(*blue)));
    }
    for top in (0..height).step_by(6) {
        let rows = (height - top).min(6);
        let mut bits: HashMap<u8, Vec<u8>> = HashMap::new();
        for row in 0..rows {
            for x in 0..width {
                let own = bits.entry(indices[(top + row) * width + x]).or_insert_with(|| vec![0; width]);
                own[x] |= 1 << row;
            }
        }
        let mut colors: Vec<_> = bits.into_iter().collect();
        colors.sort_unstable_by_key(|(color, _)| *color);
        for (color, columns) in colors {
            push(&mut out, format_args!("#{color}"));
            runs(&columns, &mut out);
            out.push('$');
        }
        out.push('-');
    }
    out.push_str("\x1b\\\n");
    out
}

/// Writing to a string cannot fail.
fn push(out: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(what);
}

/// One colour of six rows, run-length encoded.
fn runs(columns: &[u8], out: &mut String) {
    for run in columns.chunk_by(|a, b| a == b) {
        let sixel = char::from(b'?' + run[0]);
        match run.len() {
            count @ 1..=3 => out.extend(std::iter::repeat_n(sixel, count)),
            count => push(out, format_args!("!{count}{sixel}")),
        }
    }
}

/// A palette of the most frequent colours, and the nearest of them for every pixel.
fn reduced(picture: &Pixmap) -> (Vec<[u8; 3]>, Vec<u8>) {
    // Five bits per channel: closer colours look the same.
    let key =
        |pixel: &tiny_skia::PremultipliedColorU8| [pixel.red() >> 3, pixel.green() >> 3, pixel.blue() >> 3];
    let mut counts: HashMap<[u8; 3], (u64, [u64; 3])> = HashMap::new();
    for pixel in picture.pixels() {
        let own = counts.entry(key(pixel)).or_default();
        own.0 += 1;
        for (sum, value) in own.1.iter_mut().zip([pixel.red(), pixel.green(), pixel.blue()]) {
            *sum += u64::from(value);
        }
    }
    let mut by_count: Vec<_> = counts.iter().collect();
    by_count.sort_unstable_by_key(|(key, (count, _))| (std::cmp::Reverse(*count), **key));
    let mean = |(count, sums): &(u64, [u64; 3])| sums.map(|sum| (sum / count) as u8);
    let palette: Vec<[u8; 3]> = by_count.iter().take(COLORS).map(|(_, own)| mean(own)).collect();
    let distance = |a: [u8; 3], b: [u8; 3]| -> i32 {
        a.iter().zip(b).map(|(a, b)| (i32::from(*a) - i32::from(b)).pow(2)).sum()
    };
    let nearest: HashMap<[u8; 3], u8> = by_count
        .iter()
        .map(|(key, own)| {
            let color = mean(own);
            let best = (0..palette.len()).min_by_key(|number| distance(palette[*number], color));
            (**key, best.unwrap_or(0) as u8)
        })
        .collect();
    let indices =
        picture.pixels().iter().map(|pixel| nearest.get(&key(pixel)).copied().unwrap_or(0)).collect();
    (palette, indices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixels_match_the_standard() {
        let mut picture = Pixmap::new(5, 2).unwrap();
        picture.fill(tiny_skia::Color::from_rgba8(255, 0, 0, 255));
        // Five columns of two rows in one colour: bits 1 and 2, five times.
        assert_eq!(encode(&picture), "\x1bPq\"1;1;5;2#0;2;100;0;0#0!5B$-\x1b\\\n");
    }

    #[test]
    fn many_colours_become_few() {
        let mut picture = Pixmap::new(64, 64).unwrap();
        for (number, pixel) in picture.pixels_mut().iter_mut().enumerate() {
            let (x, y) = ((number % 64) as u8 * 4, (number / 64) as u8 * 4);
            *pixel = tiny_skia::ColorU8::from_rgba(x, y, x ^ y, 255).premultiply();
        }
        let (palette, indices) = reduced(&picture);
        assert!(palette.len() <= COLORS && indices.iter().all(|index| usize::from(*index) < palette.len()));
    }
}
