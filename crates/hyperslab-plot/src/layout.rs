//! Lays out a figure: places all parts on a page and turns them into shapes.

use crate::axis::Axis;
use crate::color::{ColorScale, MISSING};
use crate::content;
use crate::figure::{Content, Figure, Panel};
use crate::scene::{Anchor, Color, Frame, Scene, Shape};
use crate::text;
use crate::ticks::{self, Tick};

pub(crate) const INK: Color = Color::rgb(0x22, 0x22, 0x22);
const QUIET: Color = Color::rgb(0x66, 0x66, 0x66);
const SPINE: Color = Color::rgb(0x9a, 0x9a, 0x9a);
const GRID: Color = Color::rgb(0xe8, 0xe8, 0xe8);

const TITLE: f32 = 13.0;
const LABEL: f32 = 11.0;
const SMALL: f32 = 10.0;
const MARGIN: f32 = 14.0;
const TICK: f32 = 4.0;
const BAR: f32 = 13.0;

/// Lays out a figure on a page of at most this size.
pub(crate) fn scene(figure: &Figure, (width, height): (f32, f32)) -> Scene {
    let mut page = Page::new(figure, (width, height));
    page.draw();
    page.scene
}

/// A figure on a page.
struct Page<'a> {
    figure: &'a Figure,
    scene: Scene,
    /// The positions of the panels.
    frames: Vec<Frame>,
    /// The bottom of the panels whose ticks were labelled last, and the end of the last label.
    labelled: (f32, f32),
    columns: usize,
}

/// The space around the panels.
struct Margins {
    left: f32,
    right: f32,
    top: f32,
    bottom: f32,
    /// The gaps between panels, horizontal and vertical.
    gaps: (f32, f32),
}

impl<'a> Page<'a> {
    fn new(figure: &'a Figure, (width, height): (f32, f32)) -> Self {
        let margins = margins(figure, height);
        let room = (
            (width - margins.left - margins.right).max(60.0),
            (height - margins.top - margins.bottom).max(40.0),
        );
        let (columns, size) = arrange(figure, room, margins.gaps);
        let count = figure.panels.len().max(1);
        let rows = count.div_ceil(columns);
        let frame = |number: usize| Frame {
            x: margins.left + (number % columns) as f32 * (size.0 + margins.gaps.0),
            y: margins.top + (number / columns) as f32 * (size.1 + margins.gaps.1),
            width: size.0,
            height: size.1,
        };
        let inner = (
            columns as f32 * (size.0 + margins.gaps.0) - margins.gaps.0,
            rows as f32 * (size.1 + margins.gaps.1) - margins.gaps.1,
        );
        let scene = Scene {
            width: (margins.left + inner.0 + margins.right).ceil(),
            height: (margins.top + inner.1 + margins.bottom).ceil(),
            background: Color::rgb(255, 255, 255),
            shapes: Vec::new(),
        };
        let frames = (0..count).map(frame).collect();
        Self { figure, scene, frames, labelled: (0.0, 0.0), columns }
    }

    fn draw(&mut self) {
        self.titles();
        for (number, panel) in self.figure.panels.iter().enumerate() {
            let frame = self.frames[number];
            // Panels share their axes, so ticks are only drawn at the left and at the bottom.
            let first_column = number % self.columns == 0;
            let last_row = number + self.columns >= self.figure.panels.len();
            self.panel(panel, frame, (first_column, last_row));
        }
        self.axis_labels();
        if let Some((scale, axis)) = &self.figure.colors {
            self.color_bar(scale, axis);
        }
    }

    /// The labels of the axes, once for all panels.
    fn axis_labels(&mut self) {
        let (Some(panel), Some(first)) = (self.figure.panels.first(), self.frames.first().copied()) else {
            return;
        };
        let right = self.frames.iter().map(Frame::right).fold(0.0, f32::max);
        let bottom = self.frames.iter().map(Frame::bottom).fold(0.0, f32::max);
        let (width, height) = (right - first.x, bottom - first.y);
        if !panel.x.label.is_empty() {
            let at = (first.x + width / 2.0, bottom + TICK + SMALL + LABEL + 8.0);
            let label = text::fitted(&panel.x.label, LABEL, width.max(120.0));
            self.scene.text(at, label, (LABEL, INK), Anchor::Middle);
        }
        if !panel.y.label.is_empty() {
            let at = (MARGIN + LABEL * 0.7, first.y + height / 2.0);
            let label = text::fitted(&panel.y.label, LABEL, height.max(120.0));
            self.turned(at, label, (LABEL, INK));
        }
    }

    fn titles(&mut self) {
        let room = self.scene.width - 2.0 * MARGIN;
        let x = MARGIN;
        let title = text::fitted(&self.figure.title, TITLE, room);
        self.scene.text((x, MARGIN + TITLE * 0.8), title, (TITLE, INK), Anchor::Start);
        let subtitle = text::fitted(&self.figure.subtitle, SMALL, room);
        if !subtitle.is_empty() {
            self.scene.text((x, MARGIN + TITLE + SMALL + 3.0), subtitle, (SMALL, QUIET), Anchor::Start);
        }
    }

    fn panel(&mut self, panel: &Panel, frame: Frame, (left, bottom): (bool, bool)) {
        let (x_ticks, y_ticks) = (x_ticks(&panel.x, frame.width), y_ticks(&panel.y, frame.height));
        let place = PlacedPanel { panel, frame };
        if !matches!(panel.content, Content::Heat { .. }) {
            for tick in &y_ticks {
                let y = place.y(tick.at);
                self.scene.line(vec![(frame.x, y), (frame.right(), y)], 1.0, GRID);
            }
            if !matches!(panel.content, Content::Bars { .. }) {
                for tick in &x_ticks {
                    let x = place.x(tick.at);
                    self.scene.line(vec![(x, frame.y), (x, frame.bottom())], 1.0, GRID);
                }
            }
        }
        self.scene.shapes.push(Shape::Clip(Some(frame)));
        let scale = self.figure.colors.as_ref().map(|(scale, _)| scale);
        content::draw(&mut self.scene, &place, scale);
        self.scene.shapes.push(Shape::Clip(None));
        self.spines(frame);
        if !panel.title.is_empty() {
            let title = text::fitted(&panel.title, SMALL, frame.width);
            let middle = (frame.x + frame.width / 2.0, frame.y - 5.0);
            self.scene.text(middle, title, (SMALL, INK), Anchor::Middle);
        }
        self.x_axis(&place, &x_ticks, bottom);
        self.y_axis(&place, &y_ticks, left);
    }

    fn spines(&mut self, frame: Frame) {
        let corners = vec![
            (frame.x, frame.y),
            (frame.right(), frame.y),
            (frame.right(), frame.bottom()),
            (frame.x, frame.bottom()),
            (frame.x, frame.y),
        ];
        self.scene.line(corners, 0.8, SPINE);
    }

    fn x_axis(&mut self, place: &PlacedPanel<'_>, ticks: &[Tick], shown: bool) {
        let frame = place.frame;
        for tick in ticks {
            let x = place.x(tick.at);
            self.scene.line(vec![(x, frame.bottom()), (x, frame.bottom() + TICK)], 0.8, SPINE);
            let half = text::width(&tick.label, SMALL) / 2.0;
            let (row, end) = self.labelled;
            if shown && (row != frame.bottom() || x - half > end + 4.0) {
                self.labelled = (frame.bottom(), x + half);
                let at = (x, frame.bottom() + TICK + SMALL + 1.0);
                self.scene.text(at, &*tick.label, (SMALL, INK), Anchor::Middle);
            }
        }
    }

    fn y_axis(&mut self, place: &PlacedPanel<'_>, ticks: &[Tick], shown: bool) {
        let frame = place.frame;
        for tick in ticks {
            let y = place.y(tick.at);
            self.scene.line(vec![(frame.x - TICK, y), (frame.x, y)], 0.8, SPINE);
            if shown {
                let at = (frame.x - TICK - 4.0, y + SMALL * 0.36);
                self.scene.text(at, &*tick.label, (SMALL, INK), Anchor::End);
            }
        }
    }

    fn turned(&mut self, at: (f32, f32), text: String, (size, color): (f32, Color)) {
        self.scene.shapes.push(Shape::Text { at, text, size, color, anchor: Anchor::Middle, turned: true });
    }

    /// The colour bar, beside all panels.
    fn color_bar(&mut self, scale: &ColorScale, axis: &Axis) {
        let (Some(first), Some(last)) = (self.frames.first(), self.frames.last()) else { return };
        let right = self.frames.iter().map(Frame::right).fold(0.0, f32::max);
        let whole = Frame { x: right + 16.0, y: first.y, width: BAR, height: last.bottom() - first.y };
        let swatch = if scale.missing { SMALL + 14.0 } else { 0.0 };
        let tip = BAR * 0.8;
        let cut = |clipped: bool| if clipped { tip } else { 0.0 };
        let bar = Frame {
            y: whole.y + cut(scale.clipped.1),
            height: whole.height - cut(scale.clipped.0) - cut(scale.clipped.1) - swatch,
            ..whole
        };
        let pixels = (0..256).rev().map(|step| scale.map.at(f64::from(step) / 255.0)).collect();
        self.scene.shapes.push(Shape::Image { frame: bar, columns: 1, rows: 256, pixels });
        let middle = bar.x + bar.width / 2.0;
        let mut outline = vec![(bar.x, bar.y)];
        if scale.clipped.1 {
            let points = vec![(bar.x, bar.y), (bar.right(), bar.y), (middle, bar.y - tip)];
            self.scene.shapes.push(Shape::Area { points, color: scale.map.at(1.0) });
            outline.push((middle, bar.y - tip));
        }
        outline.extend([(bar.right(), bar.y), (bar.right(), bar.bottom())]);
        if scale.clipped.0 {
            let points =
                vec![(bar.x, bar.bottom()), (bar.right(), bar.bottom()), (middle, bar.bottom() + tip)];
            self.scene.shapes.push(Shape::Area { points, color: scale.map.at(0.0) });
            outline.push((middle, bar.bottom() + tip));
        }
        outline.extend([(bar.x, bar.bottom()), (bar.x, bar.y)]);
        self.scene.line(outline, 0.8, SPINE);
        let mut widest = 0.0_f32;
        for (share, text) in color_ticks(scale, axis, bar.height) {
            let y = bar.bottom() - share as f32 * bar.height;
            self.scene.line(vec![(bar.right(), y), (bar.right() + TICK, y)], 0.8, SPINE);
            widest = widest.max(text::width(&text, SMALL));
            let at = (bar.right() + TICK + 3.0, y + SMALL * 0.36);
            self.scene.text(at, text, (SMALL, INK), Anchor::Start);
        }
        // Beside the bar, and above the key of missing values.
        let room = whole.height - swatch;
        let at = (bar.right() + TICK + 3.0 + widest + LABEL + 5.0, whole.y + room / 2.0);
        self.turned(at, text::fitted(&axis.label, LABEL, room.max(120.0)), (LABEL, INK));
        if scale.missing {
            let y = whole.bottom() - SMALL;
            let frame = Frame { x: bar.x, y, width: BAR, height: SMALL };
            self.scene.shapes.push(Shape::Box { frame, color: MISSING });
            self.spines(frame);
            let at = (bar.right() + TICK + 3.0, y + SMALL * 0.86);
            self.scene.text(at, "missing", (SMALL, QUIET), Anchor::Start);
        }
    }
}

/// A panel in its frame. Maps the coordinates of its axes to the page.
pub(crate) struct PlacedPanel<'a> {
    pub(crate) panel: &'a Panel,
    pub(crate) frame: Frame,
}

impl PlacedPanel<'_> {
    pub(crate) fn x(&self, at: f64) -> f32 {
        self.frame.x + self.panel.x.share(at) as f32 * self.frame.width
    }

    pub(crate) fn y(&self, at: f64) -> f32 {
        let share = self.panel.y.share(at) as f32;
        self.frame.y + self.frame.height * if self.panel.y.downwards { share } else { 1.0 - share }
    }
}

/// The ticks of the colour bar: relative height and value.
fn color_ticks(scale: &ColorScale, axis: &Axis, height: f32) -> Vec<(f64, String)> {
    let most = (height / 36.0).max(2.0) as usize;
    if axis.is_times() {
        let ticks = axis.ticks(most).into_iter();
        return ticks.map(|tick| (scale.share(tick.at), tick.label)).collect();
    }
    let numbers = ticks::numbers(scale.low, scale.high, most, false);
    let texts = ticks::texts(&numbers);
    numbers.iter().map(|number| scale.share(*number)).zip(texts).collect()
}

/// As many ticks as fit beside each other with some space between them.
fn x_ticks(axis: &Axis, width: f32) -> Vec<Tick> {
    let mut most = (width / 44.0).max(1.0) as usize;
    loop {
        let ticks = axis.ticks(most);
        let widest = ticks.iter().map(|tick| text::width(&tick.label, SMALL)).fold(0.0, f32::max);
        let place = |tick: &Tick| axis.share(tick.at) * f64::from(width);
        let gaps = ticks.windows(2).map(|pair| (place(&pair[1]) - place(&pair[0])).abs());
        let nearest = gaps.fold(f64::INFINITY, f64::min);
        if most <= 1 || f64::from(widest) + 12.0 <= nearest {
            return ticks;
        }
        most -= 1;
    }
}

fn y_ticks(axis: &Axis, height: f32) -> Vec<Tick> {
    axis.ticks((height / 32.0).max(2.0) as usize)
}

fn margins(figure: &Figure, height: f32) -> Margins {
    let widest =
        |ticks: &[Tick]| ticks.iter().map(|tick| text::width(&tick.label, SMALL)).fold(0.0, f32::max);
    let y_labels = figure.panels.first().map_or(0.0, |panel| widest(&y_ticks(&panel.y, height)));
    let subtitle = if figure.subtitle.is_empty() { 0.0 } else { SMALL + 4.0 };
    let several = figure.panels.len() > 1;
    let bar = figure.colors.as_ref().map_or(6.0, |(scale, axis)| {
        let texts = color_ticks(scale, axis, height).into_iter().map(|(_, text)| text::width(&text, SMALL));
        let missing = if scale.missing { text::width("missing", SMALL) } else { 0.0 };
        let label = if axis.label.is_empty() { 0.0 } else { LABEL + 8.0 };
        (16.0 + BAR + TICK + 3.0 + texts.fold(0.0, f32::max) + label).max(16.0 + BAR + TICK + missing)
    });
    // Half of the text of a tick at the end of the axis extends beyond the panel.
    let x_labels = figure.panels.first().map_or(0.0, |panel| widest(&panel.x.ticks(4)));
    let bar = bar.max(x_labels / 2.0 - MARGIN / 2.0);
    Margins {
        left: MARGIN + LABEL + 6.0 + y_labels + TICK + 6.0,
        right: bar + MARGIN,
        top: MARGIN + TITLE + subtitle + if several { SMALL + 16.0 } else { 10.0 },
        bottom: TICK + SMALL + LABEL + 12.0 + MARGIN,
        // The labels at the ends of neighbouring panels must not touch each other.
        gaps: ((x_labels + 6.0).clamp(12.0, 48.0), SMALL + 14.0),
    }
}

/// Returns the number of panels per row and the size of each, for the arrangement with the largest panels.
fn arrange(figure: &Figure, room: (f32, f32), gaps: (f32, f32)) -> (usize, (f32, f32)) {
    let count = figure.panels.len().max(1);
    let fitted = |columns: usize| {
        let rows = count.div_ceil(columns) as f32;
        let width = ((room.0 + gaps.0) / columns as f32 - gaps.0).max(20.0);
        let height = ((room.1 + gaps.1) / rows - gaps.1).max(20.0);
        // A single panel without an aspect ratio fills the page. Several panels use a landscape ratio.
        let aspect = figure.aspect.map(|aspect| aspect as f32).or((count > 1).then_some(1.5));
        match aspect {
            Some(aspect) if width / height > aspect => (height * aspect, height),
            Some(aspect) => (width, width / aspect),
            None => (width, height),
        }
    };
    let area = |columns: usize| {
        let (width, height) = fitted(columns);
        width * height
    };
    let best = (1..=count).max_by(|a, b| area(*a).total_cmp(&area(*b))).unwrap_or(1);
    // At the same panel size, prefer fewer columns, so that the last row is not needlessly incomplete.
    (best, fitted(best))
}
