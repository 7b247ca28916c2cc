//! `tet read`: values of a selection, to the terminal or a file.

use hyperslab::{Error, Node, OpenOptions, Result, Values, export};

use crate::args::ReadArgs;
use crate::{Answer, address, output, paint, pretty};

pub(crate) fn run(args: &ReadArgs) -> Result<Answer> {
    let (node, selection) = address::node_and_selection(&args.what)?;
    let mut options = super::open_options(&args.open)?;
    if let Some(memory) = &args.memory {
        options = OpenOptions { memory: pretty::parse_bytes(memory)?, ..options };
    }
    let store = hyperslab::open_with(&args.open.path, &options)?;
    let node = address::chosen_node(&store, node)?;
    let values = match store.node(&node)? {
        Node::Array(array) => store.reader(array).read(&selection)?,
        other => {
            return Err(Error::invalid(format!(
                "{node} is a {}, which has no values of its own",
                other.kind()
            )));
        }
    };
    match &args.output {
        Some(path) => export::write(&values, path, args.force)?,
        None if args.json => {
            output::print(|out| export::write_json(&values, &mut &mut *out).map_err(std::io::Error::other))?
        }
        None => show(&values, args.full)?,
    }
    Ok(Answer::Yes)
}

fn show(values: &Values, full: bool) -> Result<()> {
    output::print(|out| {
        pretty::write_values(values, full, out)?;
        let about = format!("{} {}", values.dtype, pretty::shape(&values.shape));
        writeln!(out, "{}", paint::dim(about))
    })
}
