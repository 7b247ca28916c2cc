//! Writers of geometry files.

use hyperslab::geometry;
use hyperslab::{GeometryQuery, Result};

use super::{How, Places, Scale, Work, Writer, write_points};

/// The extensions and names of the targets.
const FILES: [(&str, &str); 3] = [("ply", "x.ply"), ("obj", "x.obj"), ("json geometry", "x.json")];

/// Writes points generated from a seed.
fn write(places: &Places, scale: Scale, seed: u64, replace: bool) -> Result<()> {
    let store = places.sources.join(format!("points-{seed}.zv"));
    if !store.exists() {
        let inner = Places { target: store.clone(), sources: places.sources.clone() };
        write_points(&inner, How::New, seed, 0, scale)?;
    }
    let selected = hyperslab::open(&store)?.geometry("/")?.query(&GeometryQuery::default())?;
    geometry::write(&selected, &places.target, replace)
}

/// Writers of new files and of replaced files.
pub(super) fn all() -> Vec<Writer> {
    let writer = |verb: &str, (name, target): (&str, &'static str), before: Work, replace: bool| Writer {
        name: format!("{verb} {name}"),
        target,
        peer: "bytes",
        before,
        write: Box::new(move |places, scale| write(places, scale, 21, replace)),
        again: Box::new(|places, scale| write(places, scale, 22, true)),
        is_new: !replace,
    };
    FILES
        .into_iter()
        .flat_map(|file| {
            [
                writer("new", file, Box::new(|_, _| Ok(())), false),
                writer("replace", file, Box::new(|places, scale| write(places, scale, 23, false)), true),
            ]
        })
        .collect()
}
