//! `tet demo`: creates small samples and walks through the commands.

mod samples;

use std::path::{Path, PathBuf};

use clap::Parser;
use hyperslab::{DType, Elements, Error, Result, Values, export};

use crate::args::{Args, DemoArgs};
use crate::{Answer, output, paint};

/// Days, rows and columns of the sample: a year of a small temperature field.
const SHAPE: [u64; 3] = [24, 36, 72];

/// The default folder of the samples.
pub(super) fn default_folder() -> PathBuf {
    std::env::temp_dir().join("hyperslab-demo")
}

pub(crate) fn run(args: &DemoArgs) -> Result<Answer> {
    let folder = args.folder.clone().unwrap_or_else(default_folder);
    std::fs::create_dir_all(&folder).map_err(|source| Error::io(folder.display().to_string(), source))?;
    let sample = folder.join("field.npy");
    say("A sample: temperature over 24 months, 36 latitudes and 72 longitudes.")?;
    export::write(&field()?, &sample, true)?;
    walk(&folder, &sample)
}

fn walk(folder: &Path, sample: &Path) -> Result<Answer> {
    let at = |name: &str| folder.join(name);
    let (tet, zarr, tiledb, damaged) =
        (at("field.tet"), at("field.zarr"), at("field.tiledb"), at("damaged.tet"));
    let chunks = ["convert", "--force", "--chunks", "8,12,24", "--filter", "zstd:3"];
    step("Convert it to a compressed, chunked file.", &chunks, &[sample, &tet])?;
    step("List its contents.", &["info"], &[&tet])?;
    step("Show where its chunks are.", &["info", "--chunks", "-n", "4"], &[&tet])?;
    step("Read a slice, as in NumPy.", &["read", "{}", "[0, ::6, ::12]"], &[&tet])?;
    step(
        "Compute the mean over months and longitudes, with at most one chunk in memory.",
        &["query", "{}", "--mean", "0,2"],
        &[&tet],
    )?;
    step("Convert between formats.", &["convert", "--force"], &[&tet, &zarr])?;
    step("Convert to a third format.", &["convert", "--force"], &[&zarr, &tiledb])?;
    step("Compare the values.", &["diff"], &[&tet, &tiledb])?;
    step("Check it for damage.", &["verify", "--deep"], &[&tet])?;
    damage(&tet, &damaged)?;
    say("\nA truncated copy, as after a full disk:")?;
    step("Check what is wrong with it.", &["verify"], &[&damaged])?;
    step("Repair it.", &["repair"], &[&damaged])?;
    let (climate, cells) = (at("climate.nc"), at("cells.zv"));
    samples::climate(&climate)?;
    samples::cells(folder, &cells)?;
    say(
        "\nTwo more samples: a year of weather with coordinates and a gap, and nerve cells as lines in space.",
    )?;
    step("Draw a map of July.", &["plot", "{}", "/temperature", "time=2024-07"], &[&climate])?;
    output::print(|out| {
        writeln!(out, "\nThe samples are in {}. Try next:", paint::strong(folder.display()))?;
        for next in ["info --json", "read", "query --max 0", "plot '[0]'", "info --all"] {
            let (command, rest) = next.split_once(' ').unwrap_or((next, ""));
            let text = format!("tet {command} {} {rest}", tet.display());
            writeln!(out, "  {}", paint::command(text.trim_end()))?;
        }
        writeln!(out, "  {}", paint::command("tet --help"))?;
        writeln!(out, "\nView them:")?;
        let mut looks = vec![
            format!("tet plot {} /temperature -o months.png", climate.display()),
            format!("tet plot {} /temperature 'lat~47' 'lon~8'", climate.display()),
            format!("tet plot {} -o cells.png", cells.display()),
        ];
        if cfg!(feature = "serve") {
            looks.push(format!("tet serve {} --open", folder.display()));
        }
        for look in looks {
            writeln!(out, "  {}", paint::command(look))?;
        }
        Ok(())
    })?;
    Ok(Answer::Yes)
}

/// A copy without the end of its footer: the arrays are intact, the metadata is not.
fn damage(whole: &Path, damaged: &Path) -> Result<()> {
    let failed = |source| Error::io(damaged.display().to_string(), source);
    let mut bytes = std::fs::read(whole).map_err(failed)?;
    bytes.truncate(bytes.len() - 40);
    std::fs::write(damaged, bytes).map_err(failed)
}

fn say(text: &str) -> Result<()> {
    output::print(|out| writeln!(out, "{text}"))
}

/// Shows a command and runs it. `{}` is replaced by the first path; without it, the paths come last.
fn step(title: &str, words: &[&str], paths: &[&Path]) -> Result<Answer> {
    let mut line: Vec<PathBuf> = Vec::new();
    let mut used = false;
    for word in words {
        if *word == "{}" {
            used = true;
            line.push(paths[0].to_owned());
        } else {
            line.push(word.into());
        }
    }
    if !used {
        line.extend(paths.iter().map(|path| (*path).to_owned()));
    }
    let shown: Vec<String> = line
        .iter()
        .map(|word| {
            let word = word.display().to_string();
            if word.contains([' ', '[']) { format!("'{word}'") } else { word }
        })
        .collect();
    output::print(|out| {
        writeln!(out, "\n{}\n{}", paint::strong(title), paint::command(format!("$ tet {}", shown.join(" "))))
    })?;
    let words = std::iter::once(PathBuf::from("tet")).chain(line);
    let args = Args::try_parse_from(words).map_err(|error| Error::invalid(error.to_string()))?;
    super::run(args)
}

/// Warm in the middle, cold at the poles, a little warmer in summer.
fn field() -> Result<Values> {
    let [months, rows, columns] = SHAPE;
    let mut bytes = Vec::new();
    for month in 0..months {
        for row in 0..rows {
            for column in 0..columns {
                let latitude = (row as f32 + 0.5) / rows as f32 * 180.0 - 90.0;
                let season = (month as f32 / 12.0 * std::f32::consts::TAU).cos() * latitude.signum();
                let land = (column as f32 / 9.0).sin();
                let kelvin = 300.0 - latitude.abs() * 0.6 - season * 8.0 + land;
                bytes.extend_from_slice(&((kelvin * 10.0).round() / 10.0).to_ne_bytes());
            }
        }
    }
    Values::new(DType::Float32, &SHAPE, Elements::fixed(bytes))
}
