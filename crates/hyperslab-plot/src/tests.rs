//! Checks the pixels and the text of figures for small stores.

use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Fill, Grid, OpenStore, RealPart, Region,
    RegionWriter, Result, Selection, TimeUnit, Values, format_named,
};
use tiny_skia::Pixmap;

use crate::color::MISSING;
use crate::{Color, ColorMap, Content, Figure, PlotOptions, plot};

const SIZE: (f32, f32) = (400.0, 300.0);

/// A store with coordinates that increase to the north: `t` is ten times the latitude plus the longitude's index,
/// with one missing value.
fn store(folder: &std::path::Path) -> Result<OpenStore> {
    let path = folder.join("x.nc");
    let (format, variant) = format_named("netcdf4")?;
    let options = CreateOptions::default().with_replace(true).with_variant(variant);
    let mut sink = hyperslab::create(&path, format, &options)?;
    let mut array = |name: &str, dims: &[&str], values: Vec<f64>, shape: &[u64], unit: &str| -> Result<()> {
        let mut spec = ArraySpec::new(DType::Float64, Grid::new(shape, shape)?);
        spec.dimensions = dims.iter().map(|name| Some((*name).to_owned())).collect();
        spec.attributes = Attributes::from_iter([("units", unit)]);
        spec.fill = Fill::Element(Elements::fixed(f64::NAN.to_ne_bytes().to_vec()));
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let values = Values::new(DType::Float64, shape, Elements::fixed(bytes))?;
        let target = RegionWriter::new(sink.array(name, &spec)?, DType::Float64, spec.fill.clone());
        let start = shape.iter().map(|_| 0).collect();
        target.assign(&Region { start, shape: shape.into() }, &values)?;
        target.finish()
    };
    array("/lat", &["lat"], vec![-30.0, 0.0, 30.0], &[3], "degrees_north")?;
    array("/lon", &["lon"], vec![0.0, 10.0, 20.0, 30.0], &[4], "degrees_east")?;
    array("/time", &["time"], vec![0.0, 31.0], &[2], "days since 2001-01-01")?;
    let mut t: Vec<f64> = (0..24).map(|cell| f64::from(cell / 4 % 3 * 10 + cell % 4)).collect();
    t[5] = f64::NAN;
    array("/t", &["time", "lat", "lon"], t, &[2, 3, 4], "K")?;
    let wave: Vec<f64> = (0..20_000).map(|step| f64::from(step % 100)).collect();
    array("/wave", &["step"], wave, &[20_000], "m")?;
    sink.commit()?;
    hyperslab::open(&path)
}

fn drawn(node: &str, selection: &str, options: &PlotOptions) -> Result<Figure> {
    let folder = tempfile::tempdir().map_err(|error| hyperslab::Error::io("folder", error))?;
    let store = store(folder.path())?;
    let selection = if selection.is_empty() { Selection::all() } else { selection.parse()? };
    plot(&store, node, &selection, options)
}

fn pixels(figure: &Figure) -> Result<Pixmap> {
    let png = figure.to_png(SIZE, 1.0)?;
    Pixmap::decode_png(&png).map_err(|error| hyperslab::Error::invalid(error.to_string()))
}

/// The bounding box of all pixels of a colour: left, top, right, bottom; `None` if there are none.
fn found(picture: &Pixmap, color: Color) -> Option<(u32, u32, u32, u32)> {
    let same = |x: u32, y: u32| {
        let pixel = picture.pixel(x, y)?.demultiply();
        let near = |own: u8, wanted: u8| own.abs_diff(wanted) <= 1;
        Some(
            near(pixel.red(), color.red)
                && near(pixel.green(), color.green)
                && near(pixel.blue(), color.blue),
        )
    };
    let mut own: Option<(u32, u32, u32, u32)> = None;
    for y in 0..picture.height() {
        for x in (0..picture.width()).filter(|x| same(*x, y) == Some(true)) {
            own = Some(own.map_or((x, y, x, y), |(left, top, right, bottom)| {
                (left.min(x), top.min(y), right.max(x), bottom.max(y))
            }));
        }
    }
    own
}

fn texts(svg: &str) -> Vec<String> {
    svg.split("<text")
        .skip(1)
        .filter_map(|part| part.split('>').nth(1)?.split('<').next().map(str::to_owned))
        .collect()
}

#[test]
fn maps_have_north_up_and_a_colour_for_missing_values() -> Result<()> {
    let options = PlotOptions {
        range: Some((0.0, 23.0)),
        map: Some(ColorMap::named("viridis")?),
        ..Default::default()
    };
    let figure = drawn("/t", "time[0]", &options)?;
    let picture = pixels(&figure)?;
    let map = ColorMap::named("viridis")?;
    let (lowest, highest) = (map.at(0.0), map.at(1.0));
    // The cell with 0 is in the south-west, the one with 23 in the north-east. Both colours also occur in the colour
    // bar.
    let cell =
        |color: Color| found(&picture, color).ok_or_else(|| hyperslab::Error::invalid("no such pixel"));
    let (low, high) = (cell(lowest)?, cell(highest)?);
    assert!(low.0 < high.0 && low.3 > high.1, "{low:?} {high:?}");
    // A whole cell of the map is missing, which is larger than the key in the colour bar.
    let missing = picture.pixels().iter().filter(|pixel| {
        (pixel.red(), pixel.green(), pixel.blue()) == (MISSING.red, MISSING.green, MISSING.blue)
    });
    assert!(missing.count() > 400);
    let svg = figure.to_svg(SIZE)?;
    let texts = texts(&svg);
    for wanted in ["lon [degrees_east]", "lat [degrees_north]", "t [K]", "missing"] {
        let plain = wanted.split(' ').next().unwrap_or(wanted);
        assert!(texts.iter().any(|text| text.contains(plain)), "{wanted} in {texts:?}");
    }
    assert!(texts.iter().any(|text| text.contains("2001-01-01")), "{texts:?}");
    Ok(())
}

#[test]
fn small_multiples_share_colours_and_show_dates() -> Result<()> {
    let figure = drawn("/t", "", &PlotOptions::default())?;
    assert_eq!(figure.panels.len(), 2);
    let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
    assert!(titles[0].contains("2001-01-01") && titles[1].contains("2001-02-01"), "{titles:?}");
    let svg = figure.to_svg(SIZE)?;
    assert_eq!(svg.matches("<clipPath").count(), 2);
    Ok(())
}

#[test]
fn a_long_line_keeps_its_smallest_and_largest_values() -> Result<()> {
    let figure = drawn("/wave", "", &PlotOptions { pixels: (100, 100), ..Default::default() })?;
    let Content::Band { pieces } = &figure.panels[0].content else {
        return Err(hyperslab::Error::invalid("expected a band"));
    };
    assert_eq!(pieces.len(), 100);
    assert!(pieces.iter().all(|piece| *piece == (0.0, 99.0)));
    assert!(figure.subtitle.contains("200 values"), "{}", figure.subtitle);
    // The band fills the panel from the lowest to the highest value.
    let picture = pixels(&figure)?;
    let accent =
        found(&picture, crate::content::ACCENT).ok_or_else(|| hyperslab::Error::invalid("no line"))?;
    assert!(accent.2 - accent.0 > 250 && accent.3 - accent.1 > 180, "{accent:?}");
    Ok(())
}

#[test]
fn a_line_leaves_a_gap_where_a_value_is_missing() -> Result<()> {
    let figure = drawn("/t", "time[0],lat[1]", &PlotOptions::default())
        .or_else(|_| drawn("/t", "[0, 1, :]", &PlotOptions::default()))?;
    let Content::Line { points } = &figure.panels[0].content else {
        return Err(hyperslab::Error::invalid("expected a line"));
    };
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    assert!(values[0] == 10.0 && values[1].is_nan() && values[3] == 13.0, "{values:?}");
    // The isolated value is a dot, the two after the gap are a line.
    let svg = figure.to_svg(SIZE)?;
    assert_eq!(svg.matches("<circle").count(), 1, "{svg}");
    Ok(())
}

#[test]
fn a_histogram_counts_every_value_once() -> Result<()> {
    let figure = drawn("/t", "", &PlotOptions { histogram: Some(8), ..Default::default() })?;
    let Content::Bars { edges, counts } = &figure.panels[0].content else {
        return Err(hyperslab::Error::invalid("expected bars"));
    };
    assert_eq!((edges.len(), counts.iter().sum::<f64>()), (9, 23.0));
    assert!(figure.subtitle.starts_with("23 values"), "{}", figure.subtitle);
    Ok(())
}

#[test]
fn names_in_a_file_do_not_become_tags() -> Result<()> {
    let title = Some("<script>alert(1)</script> & \"quotes\"".to_owned());
    let svg = drawn("/t", "[0]", &PlotOptions { title, ..Default::default() })?.to_svg(SIZE)?;
    assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;"), "{svg}");
    Ok(())
}

#[test]
fn figures_have_the_requested_size() -> Result<()> {
    let figure = drawn("/wave", "", &PlotOptions::default())?;
    for scale in [1.0_f32, 2.0] {
        let png = figure.to_png(SIZE, scale)?;
        let picture =
            Pixmap::decode_png(&png).map_err(|error| hyperslab::Error::invalid(error.to_string()))?;
        let near = |own: u32, wanted: f32| (own as f32 - wanted * scale).abs() <= 2.0 * scale;
        assert!(near(picture.width(), SIZE.0) && near(picture.height(), SIZE.1), "{picture:?}");
    }
    Ok(())
}

/// Creates a file with one array `/v`.
fn one_array(
    folder: &std::path::Path,
    dtype: DType,
    bytes: Vec<u8>,
    attributes: Attributes,
) -> Result<OpenStore> {
    let path = folder.join("one.h5");
    let (format, variant) = format_named("hdf5")?;
    let mut sink = hyperslab::create(&path, format, &CreateOptions::default().with_variant(variant))?;
    let cells = (bytes.len() / dtype.size().unwrap_or(1)) as u64;
    let mut spec = ArraySpec::new(dtype.clone(), Grid::new(&[cells], &[cells])?);
    spec.attributes = attributes;
    let values = Values::new(dtype.clone(), &[cells], Elements::fixed(bytes))?;
    let target = RegionWriter::new(sink.array("/v", &spec)?, dtype, spec.fill.clone());
    target.assign(
        &Region { start: [0].into_iter().collect(), shape: [cells].into_iter().collect() },
        &values,
    )?;
    target.finish()?;
    sink.commit()?;
    hyperslab::open(&path)
}

fn one_drawn(dtype: DType, bytes: Vec<u8>, attributes: Attributes, options: &PlotOptions) -> Result<Figure> {
    let folder = tempfile::tempdir().map_err(|error| hyperslab::Error::io("folder", error))?;
    plot(&one_array(folder.path(), dtype, bytes, attributes)?, "/v", &Selection::all(), options)
}

#[test]
fn values_of_an_enumeration_have_names() -> Result<()> {
    let members = [("idle", 0), ("run", 1), ("stop", 2)];
    let members = members.map(|(name, code)| (name.to_owned(), code)).to_vec();
    let named = DType::Enum(hyperslab::EnumType::new(DType::UInt8, members).into());
    for histogram in [None, Some(10)] {
        let options = PlotOptions { histogram, ..Default::default() };
        let figure = one_drawn(named.clone(), vec![0, 1, 2, 1], Attributes::new(), &options)?;
        let svg = figure.to_svg(SIZE)?;
        for name in ["idle", "run", "stop"] {
            assert!(texts(&svg).iter().any(|text| text == name), "{histogram:?} {:?}", texts(&svg));
        }
    }
    Ok(())
}

#[test]
fn bins_below_double_precision_are_bars() -> Result<()> {
    let bytes = (0..3).flat_map(|more| ((1_i64 << 53) + more).to_ne_bytes()).collect();
    let options = PlotOptions { histogram: Some(50), ..Default::default() };
    let figure = one_drawn(DType::Int64, bytes, Attributes::new(), &options)?;
    let (left, _, right, _) = found(&pixels(&figure)?, crate::content::ACCENT)
        .ok_or_else(|| hyperslab::Error::invalid("no bars"))?;
    assert!(right - left > 200, "{left} to {right}");
    Ok(())
}

#[test]
fn packed_values_have_no_unit() -> Result<()> {
    let bytes: Vec<u8> = (0..4_i16).flat_map(i16::to_ne_bytes).collect();
    let mut attributes = Attributes::from_iter([("units", "K")]);
    attributes.set("scale_factor", serde_json::json!(0.5));
    for (raw, label) in [(false, "v [K]"), (true, "v")] {
        let options = PlotOptions { raw, ..Default::default() };
        let figure = one_drawn(DType::Int16, bytes.clone(), attributes.clone(), &options)?;
        assert_eq!(figure.panels[0].y.label, label);
    }
    Ok(())
}

#[test]
fn a_line_without_values_says_so() -> Result<()> {
    let bytes = [f64::NAN; 5].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let figure = one_drawn(DType::Float64, bytes, Attributes::new(), &PlotOptions::default())?;
    assert_eq!(figure.subtitle, "all values are missing");
    Ok(())
}

/// A file with `/v` over the coordinates of `/x` and `/y`: rows 0, 1, 2 …
fn over_coordinates(folder: &std::path::Path, x: &[f64], y: &[f64]) -> Result<OpenStore> {
    let path = folder.join("coordinates.nc");
    let (format, variant) = format_named("netcdf4")?;
    let mut sink = hyperslab::create(&path, format, &CreateOptions::default().with_variant(variant))?;
    let cells: Vec<f64> = (0..x.len() * y.len()).map(|cell| cell as f64).collect();
    let (wide, high) = (x.len() as u64, y.len() as u64);
    for (name, dims, values, shape) in [
        ("/x", &["x"][..], x, &[wide][..]),
        ("/y", &["y"], y, &[high]),
        ("/v", &["y", "x"], &cells, &[high, wide]),
    ] {
        let mut spec = ArraySpec::new(DType::Float64, Grid::new(shape, shape)?);
        spec.dimensions = dims.iter().map(|name| Some((*name).to_owned())).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let values = Values::new(DType::Float64, shape, Elements::fixed(bytes))?;
        let target = RegionWriter::new(sink.array(name, &spec)?, DType::Float64, spec.fill.clone());
        let start = shape.iter().map(|_| 0).collect();
        target.assign(&Region { start, shape: shape.into() }, &values)?;
        target.finish()?;
    }
    sink.commit()?;
    hyperslab::open(&path)
}

#[test]
fn irregular_coordinates_have_their_distances() -> Result<()> {
    let folder = tempfile::tempdir().map_err(|error| hyperslab::Error::io("folder", error))?;
    let store = over_coordinates(folder.path(), &[0.0, 1.0, 2.0, 10.0, 20.0, 100.0], &[0.0, 10.0])?;
    let options = PlotOptions {
        range: Some((0.0, 11.0)),
        map: Some(ColorMap::named("viridis")?),
        ..Default::default()
    };
    let figure = plot(&store, "/v", &Selection::all(), &options)?;
    // The cell of x = 100 extends from 60 to 140, of -0.5 to 140.
    let picture = pixels(&figure)?;
    let map = ColorMap::named("viridis")?;
    // The longest run in a row, because the colour bar has all colours.
    let span = |value: f64| {
        let color = map.at(value / 11.0);
        let same = |pixel: &tiny_skia::PremultipliedColorU8| {
            (pixel.red(), pixel.green(), pixel.blue()) == (color.red, color.green, color.blue)
        };
        let rows = picture.pixels().chunks(picture.width() as usize);
        let cells = rows.flat_map(move |row| row.split(move |pixel| !same(pixel)).map(<[_]>::len));
        cells.max().unwrap_or(0) as f64
    };
    let (narrow, wide) = (span(4.0), span(5.0));
    assert!((wide / narrow - 80.0 / 45.0).abs() < 0.1, "{wide} to {narrow}");
    let told = figure.to_json();
    let coordinates = &told["panels"][0]["x"]["coordinates"];
    assert_eq!(*coordinates, serde_json::json!([0.0, 1.0, 2.0, 10.0, 20.0, 100.0]));
    // A line has the same distances: its last segment takes 80 of 140.5.
    let line = plot(&store, "/v", &"[0, :]".parse()?, &PlotOptions::default())?;
    let svg = line.to_svg(SIZE)?;
    let points = svg.split("<polyline").find(|part| part.contains("2b6cb0")).unwrap_or_default();
    let points = points.split("points=\"").nth(1).and_then(|text| text.split('"').next()).unwrap_or_default();
    let x: Vec<f64> =
        points.split_whitespace().filter_map(|pair| pair.split(',').next()?.parse().ok()).collect();
    assert_eq!(x.len(), 6, "{svg}");
    assert!(((x[5] - x[4]) / (x[5] - x[0]) - 0.8).abs() < 0.01, "{x:?}");
    Ok(())
}

#[test]
fn labels_of_neighbouring_panels_do_not_touch() -> Result<()> {
    let options = PlotOptions { panels: 2, ..Default::default() };
    let longitudes: Vec<f64> = (0..37).map(|step| f64::from(step) * 10.0 - 180.0).collect();
    let folder = tempfile::tempdir().map_err(|error| hyperslab::Error::io("folder", error))?;
    let store = over_coordinates(folder.path(), &longitudes, &[0.0, 10.0])?;
    let figure = plot(&store, "/v", &Selection::all(), &options)?;
    let several = Figure { panels: vec![figure.panels[0].clone(), figure.panels[0].clone()], ..figure };
    for width in [240.0, 320.0, 500.0, 900.0] {
        let svg = several.to_svg((width, 200.0))?;
        let mut labels: Vec<(f32, f32, f32)> = Vec::new();
        for part in svg.split("<text").skip(1).filter(|part| part.contains("anchor=\"middle\"")) {
            let number = |name: &str| -> Option<f32> {
                part.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
            };
            let text = part.split('>').nth(1).and_then(|text| text.split('<').next()).unwrap_or_default();
            if let (Some(x), Some(y)) = (number("x"), number("y")) {
                let half = crate::text::width(text, 10.0) / 2.0;
                labels.push((y, x - half, x + half));
            }
        }
        labels.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        assert!(labels.len() > 2, "{svg}");
        for pair in labels.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            assert!(pair[1].1 > pair[0].2 + 2.0, "{width}: {pair:?}");
        }
    }
    Ok(())
}

#[test]
fn complex_values_are_drawn_by_their_parts() -> Result<()> {
    let bytes: Vec<u8> = [3.0_f64, 4.0, 0.0, -2.0].iter().flat_map(|part| part.to_ne_bytes()).collect();
    let half_pi = std::f64::consts::FRAC_PI_2;
    for (part, label, expected) in [
        (RealPart::Magnitude, "magnitude of v [K]", [5.0, 2.0]),
        (RealPart::Phase, "phase of v [rad]", [4_f64.atan2(3.0), -half_pi]),
        (RealPart::Real, "real part of v [K]", [3.0, 0.0]),
        (RealPart::Imaginary, "imaginary part of v [K]", [4.0, -2.0]),
    ] {
        let options = PlotOptions { part, ..Default::default() };
        let attributes = Attributes::from_iter([("units", "K")]);
        let figure = one_drawn(DType::Complex128, bytes.clone(), attributes, &options)?;
        let Content::Line { points } = &figure.panels[0].content else { panic!("a line") };
        assert_eq!(points.iter().map(|(_, value)| *value).collect::<Vec<_>>(), expected, "{part:?}");
        assert_eq!(figure.panels[0].y.label, label);
    }
    Ok(())
}

#[test]
fn dates_as_values_are_dates_on_the_axis() -> Result<()> {
    let days = [18_262_i64, i64::MIN, 18_293, 18_322];
    let bytes = |unit: i64| -> Vec<u8> {
        days.iter().flat_map(|day| day.checked_mul(unit).unwrap_or(*day).to_ne_bytes()).collect()
    };
    let hours: Vec<u8> = days.iter().flat_map(|day| (day.max(&0) * 24).to_ne_bytes()).collect();
    let counted = Attributes::from_iter([("units", "hours since 1970-01-01")]);
    for (dtype, bytes, attributes) in [
        (DType::DateTime(TimeUnit::Day), bytes(1), Attributes::new()),
        (DType::DateTime(TimeUnit::Nanosecond), bytes(86_400_000_000_000), Attributes::new()),
        (DType::Int64, hours, counted),
    ] {
        let gap = dtype != DType::Int64;
        let figure = one_drawn(dtype.clone(), bytes.clone(), attributes.clone(), &PlotOptions::default())?;
        assert_eq!(figure.panels[0].y.label, "v");
        if gap {
            let points = &figure.to_json()["panels"][0]["points"];
            let shown: Vec<&str> = (0..4).filter_map(|at| points[at][1].as_str()).collect();
            assert_eq!(shown, ["2020-01-01", "NaN", "2020-02-01", "2020-03-01"], "{dtype}");
            let shown = texts(&figure.to_svg(SIZE)?);
            assert!(shown.iter().any(|text| text.starts_with("2020-02")), "{dtype}: {shown:?}");
            let options = PlotOptions { range: Some((0.0, 1.0)), ..Default::default() };
            assert!(one_drawn(dtype, bytes, attributes, &options).is_err());
        } else {
            let shown = texts(&figure.to_svg(SIZE)?);
            assert!(shown.iter().any(|text| text.starts_with("2000")), "{shown:?}");
        }
    }
    let bytes: Vec<u8> = [0_i64, 60].iter().flat_map(|tick| tick.to_ne_bytes()).collect();
    let options = PlotOptions { histogram: Some(2), ..Default::default() };
    let figure = one_drawn(DType::Duration(TimeUnit::Second), bytes, Attributes::new(), &options)?;
    assert_eq!(figure.panels[0].x.label, "v [s]");
    Ok(())
}

#[test]
fn colours_of_dates_have_dates() -> Result<()> {
    let folder = tempfile::tempdir().map_err(|error| hyperslab::Error::io("folder", error))?;
    let path = folder.path().join("d.npy");
    let mut sink = hyperslab::create(&path, "npy".parse()?, &CreateOptions::default().with_replace(true))?;
    let dtype = DType::DateTime(TimeUnit::Day);
    let spec = ArraySpec::new(dtype.clone(), Grid::new(&[10, 10], &[10, 10])?);
    let target = RegionWriter::new(sink.array("/", &spec)?, dtype.clone(), spec.fill.clone());
    let bytes: Vec<u8> = (18_262..18_362_i64).flat_map(i64::to_ne_bytes).collect();
    let start = [0, 0].into_iter().collect();
    let region = Region { start, shape: [10, 10].into_iter().collect() };
    target.assign(&region, &Values::new(dtype, &[10, 10], Elements::fixed(bytes))?)?;
    target.finish()?;
    sink.commit()?;
    let figure = plot(&hyperslab::open(&path)?, "/", &Selection::all(), &PlotOptions::default())?;
    assert!(texts(&figure.to_svg(SIZE)?).iter().any(|text| text.starts_with("2020-02")));
    assert!(figure.to_json()["colors"]["range"][0].as_str().is_some_and(|text| text.starts_with("2020-01")));
    Ok(())
}
