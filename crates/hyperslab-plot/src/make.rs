//! Creates figures from nodes of a store.

use hyperslab::driver::{AxisPositions, tick_instant};
use hyperslab::query::{Axis as QueryAxis, Group, Operation, Query};
use hyperslab::{
    ArrayReader, AxisSelection, Calendar, DType, Error, GeometryQuery, Node, OpenStore, Positions, RealPart,
    Result, Selection, TimeAxis, TimeUnit,
};

use crate::axis::{Axis, short, with_unit};
use crate::color::{ColorMap, ColorScale};
use crate::figure::{Content, Figure, Panel};
use crate::points;

/// How to combine cells that share a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// Their mean.
    Mean,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// The minimum and the maximum. Only for lines.
    MinMax,
}

/// What to plot, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlotOptions {
    /// The maximum number of pixels, horizontal and vertical, to which values are reduced.
    pub pixels: (u32, u32),
    /// How to combine cells that share a pixel. By default, minimum and maximum for lines, and means for heatmaps.
    pub reduction: Option<Reduction>,
    /// The colour map. By default, chosen based on the values.
    pub map: Option<ColorMap>,
    /// The values of the first and the last colour, or the limits of the value axis.
    pub range: Option<(f64, f64)>,
    /// The percentiles of the values that get the first and the last colour.
    pub percentiles: (f64, f64),
    /// Plot a histogram with this many bins.
    pub histogram: Option<usize>,
    /// Use stored values, not decoded by the file's conventions.
    pub raw: bool,
    /// The maximum number of panels for three axes.
    pub panels: usize,
    /// The number to plot of complex values.
    pub part: RealPart,
    /// The part of a geometry to plot. Without a level, the finest that is not too large.
    pub geometry: GeometryQuery,
    /// The axes of a geometry to plot; the first two by default.
    pub axes: Option<(String, String)>,
    /// The attribute or axis by which the points of a geometry are coloured.
    pub color_by: Option<String>,
    /// The title; the node's name by default.
    pub title: Option<String>,
}

hyperslab::driver::option_setters! { PlotOptions {
    with_pixels = pixels: (u32, u32),
    with_reduction = reduction: into Option<Reduction>,
    with_map = map: into Option<ColorMap>,
    with_range = range: into Option<(f64, f64)>,
    with_percentiles = percentiles: (f64, f64),
    with_histogram = histogram: into Option<usize>,
    with_raw = raw: bool,
    with_panels = panels: usize,
    with_part = part: RealPart,
    with_geometry = geometry: GeometryQuery,
    with_axes = axes: into Option<(String, String)>,
    with_color_by = color_by: into Option<String>,
    with_title = title: into Option<String>,
} }

impl Default for PlotOptions {
    fn default() -> Self {
        Self {
            pixels: (1200, 800),
            reduction: None,
            map: None,
            range: None,
            percentiles: (1.0, 99.0),
            histogram: None,
            raw: false,
            panels: 12,
            part: RealPart::Magnitude,
            geometry: GeometryQuery::default(),
            axes: None,
            color_by: None,
            title: None,
        }
    }
}

/// Creates the figure of a node: a line, a heatmap, small multiples or a histogram for an array, points and lines for
/// a geometry. Arrays are reduced chunk by chunk to the pixels of the figure.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for a selection that does not fit the array or is empty,
/// [`Unsupported`](Error::Unsupported) for values that are neither numbers nor dates; otherwise any error from reading.
pub fn plot(store: &OpenStore, node: &str, selection: &Selection, options: &PlotOptions) -> Result<Figure> {
    check(options)?;
    match store.find(node)? {
        Node::Array(array) => {
            let stored = store.reader(array);
            Source::new(store, node, &stored, selection, options)?.figure()
        }
        Node::Geometry(_) if *selection != Selection::all() => {
            Err(Error::invalid("a geometry is selected by --box, --object, --group and --level"))
        }
        Node::Geometry(_) => points::figure(&store.geometry(node)?, node, options),
        other => {
            let hint = if matches!(other, Node::Group(_)) { "; choose one of its nodes" } else { "" };
            let kind = other.kind().one();
            Err(Error::invalid(format!("{node} is {kind}: only arrays and geometries can be plotted{hint}")))
        }
    }
}

fn check(options: &PlotOptions) -> Result<()> {
    let (low, high) = options.percentiles;
    if !(0.0 <= low && low < high && high <= 100.0) {
        return Err(Error::invalid(format!("percentiles from {low} to {high}; expected 0 to 100")));
    }
    if let Some((low, high)) = options.range
        && !(low < high && low.is_finite() && high.is_finite())
    {
        return Err(Error::invalid(format!("the range {low} to {high} is empty: LOW must be below HIGH")));
    }
    if options.pixels.0 == 0 || options.pixels.1 == 0 || options.panels == 0 {
        return Err(Error::invalid("a picture without any pixels"));
    }
    Ok(())
}

/// An array, its selection, and the axes to show.
struct Source<'a> {
    store: &'a OpenStore,
    node: &'a str,
    array: ArrayReader,
    positions: Positions,
    shown: Vec<usize>,
    options: &'a PlotOptions,
    meaning: Meaning,
    /// The limits of the values, as given.
    range: Option<(f64, f64)>,
}

/// What the plotted numbers are.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    Numbers,
    /// This part of complex numbers.
    Part(RealPart),
    /// Numbers that count time.
    Times(TimeAxis),
    /// Ticks of dates since this one.
    Dates(TimeUnit, i64),
    /// Spans of time.
    Durations(TimeUnit),
}

impl Meaning {
    fn calendar(self) -> Option<Calendar> {
        match self {
            Self::Times(times) => Some(times.calendar()),
            Self::Dates(..) => Calendar::from_name("proleptic_gregorian"),
            _ => None,
        }
    }

    /// The instant of a value.
    fn instant(self, value: f64) -> Option<i128> {
        match self {
            Self::Times(times) => times.instant(value),
            Self::Dates(unit, origin) => {
                if (origin as f64 + value).abs() > 9e18 {
                    return None;
                }
                let tick = origin.checked_add(value.floor() as i64)?;
                let start = tick_instant(tick, unit);
                let length = tick_instant(tick.checked_add(1)?, unit) - start;
                Some(start + ((value - value.floor()) * length as f64) as i128)
            }
            _ => None,
        }
    }

    /// What to say of the values beside their name.
    const fn note(self) -> Option<&'static str> {
        match self {
            Self::Part(RealPart::Phase) => Some("phase"),
            Self::Part(RealPart::Real) => Some("real part"),
            Self::Part(RealPart::Imaginary) => Some("imaginary part"),
            Self::Part(_) => Some("magnitude"),
            _ => None,
        }
    }
}

impl<'a> Source<'a> {
    fn new(
        store: &'a OpenStore,
        node: &'a str,
        stored: &ArrayReader,
        selection: &Selection,
        options: &'a PlotOptions,
    ) -> Result<Self> {
        let array = if options.raw { stored.clone() } else { stored.decoded()? };
        let mut positions = array.resolve(selection)?;
        if positions.axes.iter().any(|axis| axis.count == 0) {
            return Err(Error::invalid(format!("{node}: the selection is empty")));
        }
        let mut shown: Vec<usize> =
            (0..positions.axes.len()).filter(|axis| positions.axes[*axis].count > 1).collect();
        if shown.is_empty() && options.histogram.is_none() {
            return Err(Error::invalid(format!("{node}: a single value; print it with tet read")));
        }
        // If there are too many axes, the first ones stay at their first position, which the subtitle shows.
        while shown.len() > 3 && options.histogram.is_none() {
            let axis = shown.remove(0);
            positions.axes[axis] = AxisPositions { count: 1, ..positions.axes[axis] };
        }
        let meaning = meaning(&array, stored, &positions, options)?;
        let (array, range) = match meaning {
            Meaning::Part(part) => (array.real_part(part)?, options.range),
            Meaning::Dates(_, origin) => {
                let origin = RealPart::TicksSince(origin);
                (array.real_part(origin)?, None)
            }
            Meaning::Durations(_) => (array.real_part(RealPart::TicksSince(0))?, options.range),
            Meaning::Numbers | Meaning::Times(_) => (array, options.range),
        };
        if options.range.is_some() && range.is_none() {
            return Err(Error::invalid(format!("{node} holds dates, whose range cannot be set")));
        }
        Ok(Self { store, node, array, positions, shown, options, meaning, range })
    }

    fn figure(&self) -> Result<Figure> {
        if let Some(bins) = self.options.histogram {
            return self.histogram(bins);
        }
        match self.shown[..] {
            [x] => self.line(x),
            [y, x] => self.heat(None, y, x),
            [panels, y, x] => self.heat(Some(panels), y, x),
            _ => Err(Error::invalid("a picture has at most three axes")),
        }
    }

    fn axis(&self, axis: usize) -> Result<Axis> {
        Axis::of(self.store, &self.array, axis, self.positions.axes[axis])
    }

    /// The label of the values: the array's long name, or its own name, and its unit.
    fn value_label(&self) -> String {
        let attributes = &self.array.schema().attributes;
        let text = |name: &str| attributes.get(name).and_then(|value| value.as_text());
        let own = self.node.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("values").to_owned();
        let name = text("long_name").or_else(|| text("standard_name")).filter(|name| !name.is_empty());
        // The unit describes the decoded values, not packed ones.
        let packed = ["scale_factor", "add_offset"].iter().any(|name| attributes.get(name).is_some());
        let unit = text("units").filter(|_| !(self.options.raw && packed));
        let unit = match self.meaning {
            Meaning::Times(_) | Meaning::Dates(..) => None,
            Meaning::Durations(unit) => Some(unit.code().to_owned()),
            Meaning::Part(RealPart::Phase) => Some("rad".to_owned()),
            _ => unit,
        };
        let name = name.unwrap_or(own);
        let name = self.meaning.note().map_or_else(|| name.clone(), |note| format!("{note} of {name}"));
        with_unit(&name, unit.as_deref())
    }

    /// The label of the colours. Values of an enumeration have names.
    fn color_label(&self) -> String {
        let label = self.value_label();
        let DType::Enum(named) = &self.array.schema().dtype else { return label };
        let members = named.members.iter().map(|(name, code)| format!("{code} {name}"));
        format!("{label}: {}", members.collect::<Vec<_>>().join(", "))
    }

    fn value_axis(&self, low: f64, high: f64) -> Axis {
        if let Some(times) = self.times_axis(low, high) {
            return times;
        }
        match &self.array.schema().dtype {
            DType::Enum(named) => Axis::names(self.value_label(), low, high, &named.members),
            _ => Axis::values(self.value_label(), low, high),
        }
    }

    /// The axis of values that are instants.
    fn times_axis(&self, low: f64, high: f64) -> Option<Axis> {
        let calendar = self.meaning.calendar()?;
        Axis::times(self.value_label(), (low, high), calendar, |value| self.meaning.instant(value))
    }

    fn title(&self) -> String {
        let file = self.store.path().file_name().map_or_else(
            || self.store.path().display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let node = if self.node == "/" { "" } else { self.node };
        self.options.title.clone().unwrap_or_else(|| format!("{file} {node}").trim_end().to_owned())
    }

    /// The positions on the axes that are not shown.
    fn subtitle(&self, more: Option<String>) -> Result<String> {
        let mut parts = Vec::new();
        for axis in (0..self.positions.axes.len()).filter(|axis| !self.shown.contains(axis)) {
            if self.array.schema().shape()[axis] > 1 && self.positions.axes[axis].count == 1 {
                parts.push(self.place(axis, 0)?);
            }
        }
        parts.extend(more);
        Ok(parts.join(", "))
    }

    /// `time = 2000-01-05`, at the `number`-th selected position.
    fn place(&self, axis: usize, number: u64) -> Result<String> {
        let wanted = self.positions.axes[axis];
        let start = wanted.start.wrapping_add_signed(number as i64 * wanted.step);
        let one = AxisPositions { start, count: 1, step: 1, keep: true };
        // The scale of a single position is unknown, so include the next position.
        let extent = self.array.schema().shape()[axis];
        let pair = if start + 1 < extent {
            (AxisPositions { count: 2, ..one }, 0.5)
        } else if start > 0 {
            (AxisPositions { start: start - 1, count: 2, ..one }, 1.5)
        } else {
            (one, 0.5)
        };
        let described = Axis::of(self.store, &self.array, axis, pair.0)?;
        let name = self.array.schema().dimensions.get(axis).cloned().flatten();
        Ok(format!("{} = {}", name.unwrap_or_else(|| format!("axis {axis}")), described.text(pair.1)))
    }

    /// The values, reduced to this many pieces along each of these axes.
    fn reduced(
        &self,
        positions: &Positions,
        pieces: &[(usize, u32)],
        operation: Operation,
    ) -> Result<Vec<f64>> {
        let pieces = pieces.iter().map(|(axis, count)| (QueryAxis::Number(*axis), *count)).collect();
        let query =
            Query::new(operation).select(selection_of(positions)).group_by(Group::Pieces(pieces)).skip_nan();
        Ok(query.run(&self.array)?.floats())
    }

    fn line(&self, x: usize) -> Result<Figure> {
        let count = self.positions.axes[x].count;
        let axis = self.axis(x)?;
        let across = self.options.pixels.0;
        let most = across.saturating_mul(2);
        let plain = count <= u64::from(most);
        let (content, more) = match self.options.reduction {
            reduction if plain || reduction.is_some_and(|reduction| reduction != Reduction::MinMax) => {
                let operation = operation(reduction);
                let values = self.reduced(&self.positions, &[(x, most)], operation)?;
                let each = count as f64 / values.len().max(1) as f64;
                let points = values.iter().enumerate().map(|(at, value)| ((at as f64 + 0.5) * each, *value));
                let more =
                    (!plain).then(|| format!("{} of {} values each", operation.name(), short(each.round())));
                (Content::Line { points: points.collect() }, more)
            }
            _ => {
                let low = self.reduced(&self.positions, &[(x, across)], Operation::Min)?;
                let high = self.reduced(&self.positions, &[(x, across)], Operation::Max)?;
                let more = format!(
                    "smallest and largest of {} values each",
                    short((count as f64 / low.len() as f64).round())
                );
                (Content::Band { pieces: low.into_iter().zip(high).collect() }, Some(more))
            }
        };
        let (low, high) = self.range.unwrap_or_else(|| match &content {
            Content::Line { points } => room(points.iter().map(|(_, value)| *value)),
            Content::Band { pieces } => room(pieces.iter().flat_map(|(low, high)| [*low, *high])),
            _ => (0.0, 1.0),
        });
        let more = if has_values(&content) { more } else { Some("all values are missing".to_owned()) };
        let y = self.value_axis(low, high);
        let panel = Panel { title: String::new(), x: axis, y, content };
        Ok(Figure {
            title: self.title(),
            subtitle: self.subtitle(more)?,
            panels: vec![panel],
            colors: None,
            aspect: None,
        })
    }

    fn heat(&self, panels: Option<usize>, y: usize, x: usize) -> Result<Figure> {
        let operation = match self.options.reduction {
            Some(Reduction::MinMax) => {
                return Err(Error::invalid(
                    "smallest and largest together are for lines; choose mean, min or max",
                ));
            }
            reduction => operation(reduction),
        };
        let numbers = panels.map_or_else(Vec::new, |axis| {
            spread(self.positions.axes[axis].count, self.options.panels as u64)
        });
        let side = (numbers.len().max(1) as f64).sqrt();
        let fit = |pixels: u32| ((f64::from(pixels) / side).ceil() as u32).max(1);
        let pieces = [(y, fit(self.options.pixels.1)), (x, fit(self.options.pixels.0))];
        let extent =
            |(axis, most): (usize, u32)| self.positions.axes[axis].count.min(u64::from(most)) as usize;
        let (rows, columns) = (extent(pieces[0]), extent(pieces[1]));
        let (across, mut down) = (self.axis(x)?, self.axis(y)?);
        down.downwards = if down.is_numbered() { down.is_falling() } else { true };
        let panel = |title: String, cells: Vec<f64>| Panel {
            title,
            x: across.clone(),
            y: down.clone(),
            content: Content::Heat { cells, columns, rows },
        };
        let mut drawn = Vec::new();
        if let Some(axis) = panels {
            let titles =
                numbers.iter().map(|number| self.place(axis, *number)).collect::<Result<Vec<_>>>()?;
            for (number, title) in numbers.iter().zip(without_times(titles)) {
                let mut positions = self.positions.clone();
                let wanted = positions.axes[axis];
                let start = wanted.start.wrapping_add_signed(*number as i64 * wanted.step);
                positions.axes[axis] = AxisPositions { start, count: 1, ..wanted };
                drawn.push(panel(title, self.reduced(&positions, &pieces, operation)?));
            }
        } else {
            drawn.push(panel(String::new(), self.reduced(&self.positions, &pieces, operation)?));
        }
        let all: Vec<f64> = drawn
            .iter()
            .flat_map(|panel| match &panel.content {
                Content::Heat { cells, .. } => cells.clone(),
                _ => Vec::new(),
            })
            .collect();
        let scale = ColorScale::of(&all, self.options.map, self.range, self.options.percentiles);
        let colors = self.times_axis(scale.low, scale.high);
        let colors = colors.unwrap_or_else(|| Axis::colors(self.color_label(), scale.low, scale.high));
        let mut more = Vec::new();
        if let Some(axis) = panels.filter(|axis| (numbers.len() as u64) < self.positions.axes[*axis].count) {
            more.push(format!("{} of {}", numbers.len(), self.positions.axes[axis].count));
        }
        let counts = (self.positions.axes[y].count, self.positions.axes[x].count);
        if counts.0 > rows as u64 || counts.1 > columns as u64 {
            more.push(format!("{} × {} cells, {} per pixel", counts.0, counts.1, operation.name()));
        }
        let more = (!more.is_empty()).then(|| more.join(", "));
        Ok(Figure {
            title: self.title(),
            subtitle: self.subtitle(more)?,
            aspect: aspect(&across, &down, counts),
            panels: drawn,
            colors: Some((scale, colors)),
        })
    }

    fn histogram(&self, bins: usize) -> Result<Figure> {
        let operation = Operation::Histogram { bins, range: self.range, clamp: false };
        let found =
            Query::new(operation).select(selection_of(&self.positions)).skip_nan().run(&self.array)?;
        let (edges, counts) = (found.edges.clone().unwrap_or_default(), found.floats());
        let (Some(first), Some(last)) = (edges.first().copied(), edges.last().copied()) else {
            return Err(Error::invalid(format!("{}: no values to count", self.node)));
        };
        let most = counts.iter().copied().fold(0.0, f64::max);
        let total: f64 = counts.iter().sum();
        let more = match found.missing {
            Some(missing) if missing > 0 => {
                format!("{} values, {} missing", short(total), short(missing as f64))
            }
            _ => format!("{} values", short(total)),
        };
        let panel = Panel {
            title: String::new(),
            x: self.value_axis(first, last),
            y: Axis::counts("count", most * 1.05),
            content: Content::Bars { edges, counts },
        };
        Ok(Figure {
            title: self.title(),
            subtitle: self.subtitle(Some(more))?,
            panels: vec![panel],
            colors: None,
            aspect: None,
        })
    }
}

/// What the numbers of an array are.
fn meaning(
    array: &ArrayReader,
    stored: &ArrayReader,
    positions: &Positions,
    options: &PlotOptions,
) -> Result<Meaning> {
    match &array.schema().dtype {
        DType::Bool | DType::Enum(_) => Ok(Meaning::Numbers),
        DType::Complex64 | DType::Complex128 => Ok(Meaning::Part(options.part)),
        DType::DateTime(unit) => {
            // Doubles hold the ticks since the earliest date better than those since 1970.
            let least = Query::new(Operation::Min).select(selection_of(positions)).run(array)?.floats();
            let least = least.first().copied().filter(|least| least.is_finite()).unwrap_or(0.0);
            Ok(Meaning::Dates(*unit, least as i64))
        }
        DType::Duration(unit) => Ok(Meaning::Durations(*unit)),
        dtype if dtype.is_integer() || dtype.is_float() => {
            let text = |name: &str| stored.schema().attributes.get(name).and_then(|value| value.as_text());
            let times = text("units").filter(|_| !options.raw);
            let times =
                times.and_then(|units| TimeAxis::parse(&units, &text("calendar").unwrap_or_default()));
            Ok(times.map_or(Meaning::Numbers, Meaning::Times))
        }
        dtype => Err(Error::unsupported(array.inner().name(), format!("plotting values of type {dtype}"))),
    }
}

/// The titles of panels. Dates lose their time if the day suffices to distinguish the panels: `time =
/// 2024-07-17T06:00` is wider than a panel.
fn without_times(titles: Vec<String>) -> Vec<String> {
    let day = |title: &String| {
        let (_, value) = title.split_once(" = ")?;
        let (day, _) = value.split_once('T').unwrap_or((value, ""));
        let is_date =
            day.len() >= 8 && day.starts_with(|c: char| c.is_ascii_digit()) && day.matches('-').count() == 2;
        is_date.then(|| day.to_owned())
    };
    let days: Option<Vec<String>> = titles.iter().map(day).collect();
    match days {
        Some(days) if days.windows(2).all(|pair| pair[0] != pair[1]) => days,
        _ => titles,
    }
}

fn has_values(content: &Content) -> bool {
    match content {
        Content::Line { points } => points.iter().any(|(_, value)| value.is_finite()),
        Content::Band { pieces } => pieces.iter().any(|(low, _)| low.is_finite()),
        _ => true,
    }
}

fn operation(reduction: Option<Reduction>) -> Operation {
    match reduction {
        Some(Reduction::Min) => Operation::Min,
        Some(Reduction::Max) => Operation::Max,
        _ => Operation::Mean,
    }
}

/// The aspect ratio if both axes have the same unit of length; `None` if the figure may be stretched.
fn aspect(x: &Axis, y: &Axis, (rows, columns): (u64, u64)) -> Option<f64> {
    let unit = |axis: &Axis| axis.label.rsplit_once('[').map(|(_, unit)| unit.to_owned());
    let ratio = if (x.is_degrees() && y.is_degrees()) || (unit(x).is_some() && unit(x) == unit(y)) {
        x.extent()? / y.extent()?
    } else if !x.is_numbered() && !y.is_numbered() && unit(x).is_none() && unit(y).is_none() {
        columns as f64 / rows as f64
    } else {
        return None;
    };
    (0.2..=5.0).contains(&ratio).then_some(ratio)
}

/// At most `most` evenly spaced numbers below `count`, including the first and the last.
fn spread(count: u64, most: u64) -> Vec<u64> {
    if count <= most {
        return (0..count).collect();
    }
    if most == 1 {
        return vec![0];
    }
    (0..most).map(|number| number * (count - 1) / (most - 1)).collect()
}

/// The range of the finite values, with some margin.
pub(crate) fn room(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| value.is_finite()) {
        (low, high) = (low.min(value), high.max(value));
    }
    match high - low {
        span if span > 0.0 => (low - 0.04 * span, high + 0.04 * span),
        _ if low.is_finite() => (low - 0.5, high + 0.5),
        _ => (0.0, 1.0),
    }
}

/// Converts resolved positions to a selection.
fn selection_of(positions: &Positions) -> Selection {
    let axis = |wanted: &AxisPositions| {
        let start = wanted.start as i64;
        if !wanted.keep {
            return AxisSelection::Index(start);
        }
        let stop = start.saturating_add(wanted.step.saturating_mul(wanted.count as i64));
        // A negative bound would count from the end. There is no position before the first.
        let stop = if stop < 0 { None } else { Some(stop) };
        AxisSelection::Slice { start: Some(start), stop, step: wanted.step }
    };
    Selection::positions(positions.axes.iter().map(axis).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_of_dates_are_titled_by_the_day() {
        let titles = |texts: &[&str]| without_times(texts.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(titles(&["t = 2024-01-01T06:00", "t = 2024-01-02T06:00"]), ["2024-01-01", "2024-01-02"]);
        assert_eq!(titles(&["t = 2024-01-01T06:00", "t = 2024-01-01T12:00"])[1], "t = 2024-01-01T12:00");
        assert_eq!(titles(&["z = 1.5", "z = 2.5"]), ["z = 1.5", "z = 2.5"]);
    }

    #[test]
    fn panels_are_spread_evenly() {
        assert_eq!(spread(3, 12), [0, 1, 2]);
        assert_eq!(spread(100, 4), [0, 33, 66, 99]);
        assert_eq!(spread(100, 1), [0]);
    }

    #[test]
    fn positions_round_trip_as_selections() -> Result<()> {
        for text in ["[2, 1:9:3, ::-1]", "[:, ::-2, 4:2:-1]", "[0, 3:4, 0]"] {
            let shape = [4, 10, 5];
            let positions = text.parse::<Selection>()?.resolve(&shape, &[])?;
            assert_eq!(selection_of(&positions).resolve(&shape, &[])?, positions, "{text}");
        }
        Ok(())
    }
}
