//! `tet references`: the locations of a file's chunks, as a Zarr store for other programs.

use hyperslab::Result;
use hyperslab::references::{self, Options};

use crate::args::ReferencesArgs;
use crate::{Answer, output};

pub(crate) fn run(args: &ReferencesArgs) -> Result<Answer> {
    let store = super::open(&args.open)?;
    let mut options = Options::new(&store);
    options.url = args.url.clone().unwrap_or(options.url);
    options.inline_limit = args.inline_limit.unwrap_or(options.inline_limit);
    match &args.output {
        Some(target) => super::write_at(target, args.force, &args.open, |target, force| {
            references::write(&store, &options, target, force)
        })?,
        None => output::print_json(&references::to_json(&store, &options)?)?,
    }
    Ok(Answer::Yes)
}
