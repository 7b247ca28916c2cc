//! Samples: a year of weather with coordinates, dates and a gap, and nerve cells as lines in space.

use std::path::Path;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Fill, Filter, Grid, Region, RegionWriter, Result,
    Sink, Values, format_named,
};

const MONTHS: usize = 12;
const ROWS: usize = 72;
const COLUMNS: usize = 144;

/// Writes `climate.nc`: temperatures by month, latitude and longitude, with a gap without measurements.
pub(super) fn climate(path: &Path) -> Result<()> {
    let (format, variant) = format_named("netcdf4")?;
    let options = CreateOptions::default().with_replace(true).with_variant(variant);
    let mut sink = hyperslab::create(path, format, &options)?;
    let text = |pairs: &[(&'static str, &'static str)]| Attributes::from_iter(pairs.iter().copied());
    sink.group("/", &text(&[("title", "A year of weather, made up"), ("Conventions", "CF-1.11")]))?;
    // The middle of each month of 2024.
    let days: Vec<f64> = (0..MONTHS).map(|month| (month as f64 + 0.5) * 30.5).collect();
    let time = text(&[("units", "days since 2024-01-01"), ("calendar", "standard")]);
    let (latitudes, longitudes): (Vec<f64>, Vec<f64>) =
        ((0..ROWS).map(latitude).collect(), (0..COLUMNS).map(longitude).collect());
    array(&mut *sink, "/time", &["time"], &doubles(&days)?, time)?;
    let north = text(&[("units", "degrees_north"), ("long_name", "latitude")]);
    array(&mut *sink, "/lat", &["lat"], &doubles(&latitudes)?, north)?;
    let east = text(&[("units", "degrees_east"), ("long_name", "longitude")]);
    array(&mut *sink, "/lon", &["lon"], &doubles(&longitudes)?, east)?;
    let cells = (0..MONTHS * ROWS * COLUMNS).map(|cell| {
        temperature(cell / (ROWS * COLUMNS), cell / COLUMNS % ROWS, cell % COLUMNS).to_ne_bytes()
    });
    let shape = [MONTHS as u64, ROWS as u64, COLUMNS as u64];
    let values = Values::new(DType::Float32, &shape, Elements::fixed(cells.flatten().collect::<Vec<_>>()))?;
    let about = text(&[("units", "K"), ("long_name", "surface temperature")]);
    array(&mut *sink, "/temperature", &["time", "lat", "lon"], &values, about)?;
    sink.commit()
}

fn latitude(row: usize) -> f64 {
    (row as f64 + 0.5) * 180.0 / ROWS as f64 - 90.0
}

fn longitude(column: usize) -> f64 {
    (column as f64 + 0.5) * 360.0 / COLUMNS as f64 - 180.0
}

/// Warm at the equator, with seasons, mountains and currents; missing where there is no station.
fn temperature(month: usize, row: usize, column: usize) -> f32 {
    let (north, east) = (latitude(row), longitude(column));
    let (y, x) = (north.to_radians(), east.to_radians());
    if (north - 8.0).hypot((east - 24.0) * 0.8) < 13.0 {
        return f32::NAN;
    }
    let season = (std::f64::consts::TAU * (month as f64 - 6.5) / 12.0).cos();
    let land = (2.0 * x + 0.6).sin() * (1.7 * y).cos() + 0.6 * (3.0 * x - 2.0 * y).cos() * (2.5 * y).sin();
    let waves = 0.5 * (7.0 * x + 3.0 * y).sin() * (5.0 * y - x).cos();
    let kelvin = 272.0
        + 29.0 * y.cos().powi(2)
        + season * 16.0 * y.sin() * (0.6 + 0.4 * land.max(0.0))
        + 3.5 * land
        + 2.0 * waves;
    ((kelvin * 100.0).round() / 100.0) as f32
}

fn doubles(values: &[f64]) -> Result<Values> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    Values::new(DType::Float64, &[values.len() as u64], Elements::fixed(bytes))
}

fn array(
    sink: &mut dyn Sink,
    path: &str,
    dimensions: &[&str],
    values: &Values,
    about: Attributes,
) -> Result<()> {
    let small = |extent: &u64| if values.shape.len() > 1 { (*extent).min(48) } else { (*extent).max(1) };
    let chunks: Vec<u64> = values.shape.iter().map(small).collect();
    let mut spec = ArraySpec::new(values.dtype.clone(), Grid::new(&values.shape, &chunks)?);
    spec.dimensions = dimensions.iter().map(|name| Some((*name).to_owned())).collect();
    spec.attributes = about;
    if values.shape.len() > 1 {
        let missing = Elements::fixed(f32::NAN.to_ne_bytes().to_vec());
        spec.fill = Fill::Element(missing.clone());
        spec.attributes.set("_FillValue", Values::scalar(values.dtype.clone(), missing)?);
        spec.filters = vec![Filter::new("shuffle"), Filter::new("gzip").with("level", 4)];
    }
    let target = RegionWriter::new(sink.array(path, &spec)?, spec.dtype.clone(), spec.fill.clone());
    let region = Region { start: values.shape.iter().map(|_| 0).collect(), shape: values.shape.clone() };
    target.assign(&region, values)?;
    target.finish()
}

/// Writes `cells.zv`: a few branching cells as lines in space.
pub(super) fn cells(folder: &Path, path: &Path) -> Result<()> {
    let mut grown = Growth::default();
    for (cell, centre) in [[0.0, 0.0, 0.0], [95.0, 30.0, 20.0], [-60.0, 80.0, -25.0]].into_iter().enumerate()
    {
        grown.cell(cell as i64, centre);
    }
    let source = folder.join("cells.npz");
    let (format, variant) = format_named("npz")?;
    let options = CreateOptions::default().with_replace(true).with_variant(variant);
    let mut sink = hyperslab::create(&source, format, &options)?;
    let vertices: Vec<u8> =
        grown.vertices.iter().flatten().flat_map(|at| (*at as f32).to_ne_bytes()).collect();
    let links: Vec<u8> = grown.links.iter().flatten().flat_map(|row| row.to_ne_bytes()).collect();
    let objects: Vec<u8> = grown.objects.iter().flat_map(|id| id.to_ne_bytes()).collect();
    let rows = grown.vertices.len() as u64;
    let pieces = [
        ("/vertices", DType::Float32, vec![rows, 3], vertices),
        ("/links", DType::Int64, vec![grown.links.len() as u64, 2], links),
        ("/object_id", DType::Int64, vec![rows], objects),
    ];
    for (name, dtype, shape, bytes) in pieces {
        let spec = ArraySpec::new(dtype.clone(), Grid::new(&shape, &shape)?);
        let target = RegionWriter::new(sink.array(name, &spec)?, dtype.clone(), spec.fill.clone());
        let region = Region { start: shape.iter().map(|_| 0).collect(), shape: shape.as_slice().into() };
        target.assign(&region, &Values::new(dtype, &shape, Elements::fixed(bytes))?)?;
        target.finish()?;
    }
    sink.commit()?;
    let (format, variant) = format_named("zvf")?;
    let options = ConvertOptions::default().with_replace(true).with_variant(variant);
    convert(&hyperslab::open(&source)?, path, format, &options, &Progress::default())?;
    Ok(())
}

/// Branches that grow randomly but reproducibly.
#[derive(Default)]
struct Growth {
    vertices: Vec<[f64; 3]>,
    links: Vec<[i64; 2]>,
    objects: Vec<i64>,
    state: u64,
}

impl Growth {
    /// A number between -1 and 1.
    fn chance(&mut self) -> f64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as f64 / f64::from(1_u32 << 30) - 1.0
    }

    fn add(&mut self, id: i64, at: [f64; 3], from: Option<i64>) -> i64 {
        let row = self.vertices.len() as i64;
        self.vertices.push(at);
        self.objects.push(id);
        self.links.extend(from.map(|from| [from, row]));
        row
    }

    fn cell(&mut self, id: i64, centre: [f64; 3]) {
        self.state = 7 + id as u64;
        let body = self.add(id, centre, None);
        // The start of each branch, its direction, and how often it may still fork.
        let mut tips = Vec::new();
        for stem in 0..6 {
            let turn = std::f64::consts::TAU * (f64::from(stem) + 0.3 * self.chance()) / 6.0;
            tips.push((body, centre, [turn.cos(), turn.sin(), 0.5 * self.chance()], 4));
        }
        while let Some((mut row, mut at, mut toward, forks)) = tips.pop() {
            for _ in 0..8 + forks * 3 {
                toward.iter_mut().for_each(|part| *part += 0.22 * self.chance());
                let length = toward.iter().map(|part| part * part).sum::<f64>().sqrt().max(1e-6);
                for axis in 0..3 {
                    toward[axis] /= length;
                    at[axis] += toward[axis] * 1.6;
                }
                row = self.add(id, at, Some(row));
            }
            if forks > 0 {
                for side in [-1.0, 1.0] {
                    let (x, y) = (toward[0], toward[1]);
                    let lean = side * (0.45 + 0.25 * self.chance());
                    tips.push((
                        row,
                        at,
                        [x - lean * y, y + lean * x, toward[2] + 0.2 * self.chance()],
                        forks - 1,
                    ));
                }
            }
        }
    }
}
