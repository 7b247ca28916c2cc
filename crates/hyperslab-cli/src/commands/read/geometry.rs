//! Prints geometries as a summary or JSON, or writes them to a file.

use hyperslab::geometry::{self, GeometryReader, Selected, parse_box};
use hyperslab::{Error, GeometryQuery, Result, Selection};

use crate::args::ReadArgs;
use crate::commands::{self, rows};
use crate::{output, paint};

pub(super) fn put(reader: &GeometryReader, args: &ReadArgs, selection: &Selection) -> Result<()> {
    if *selection != Selection::all() {
        return Err(Error::invalid(
            "a geometry has no positions; select with --box, --object, --group or --level",
        ));
    }
    let query = GeometryQuery {
        level: args.level,
        region: args.region.as_deref().map(parse_box).transpose()?,
        objects: args.object.clone(),
        groups: args.group.clone(),
        attributes: args.columns.clone(),
    };
    let selected = reader.query(&query)?;
    match &args.output {
        Some(path) => commands::write_at(path, args.force, &args.open, |path, force| {
            geometry::write(&selected, path, force)
        }),
        None if args.json => output::print(|out| {
            serde_json::to_writer(&mut *out, &selected.to_json())?;
            writeln!(out)
        }),
        None => show(&selected, args.full),
    }
}

fn show(selected: &Selected, full: bool) -> Result<()> {
    rows::show(selected.rows()?, full)?;
    output::print(|out| {
        let width = selected.data.links.as_ref().and_then(|links| links.shape.get(1)).copied();
        let links = match width {
            Some(2) => format!(", {} edges", selected.links()),
            Some(3) => format!(", {} triangles", selected.links()),
            Some(_) => format!(", {} links", selected.links()),
            None => String::new(),
        };
        let objects = selected.data.objects.len();
        let about = format!(
            "{}: {} vertices{links}, {objects} object{}",
            selected.kinds.join(", "),
            selected.vertices(),
            if objects == 1 { "" } else { "s" }
        );
        writeln!(out, "{}", paint::dim(about))
    })
}
