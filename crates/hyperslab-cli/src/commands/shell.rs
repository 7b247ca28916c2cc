//! `tet completions` and `tet man`, generated from the same definitions as the help.

use clap::CommandFactory;
use hyperslab::driver::did_you_mean;
use hyperslab::{Error, Result};

use crate::args::{Args, CompletionsArgs, ManArgs};
use crate::{Answer, output};

pub(crate) fn completions(args: &CompletionsArgs) -> Result<Answer> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "tet", &mut script);
    output::print(|out| out.write_all(&script))?;
    Ok(Answer::Yes)
}

pub(crate) fn manual(args: &ManArgs) -> Result<Answer> {
    let command = match &args.command {
        None => Args::command(),
        Some(name) => page_of(name)?,
    };
    let command = command.mut_args(with_long_help);
    let title = command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-");
    let examples = command.get_before_help().map(ToString::to_string);
    let mut page = Vec::new();
    output::print(|out| {
        let source = concat!("tet ", env!("CARGO_PKG_VERSION"));
        clap_mangen::Man::new(command).title(title).source(source).render(&mut page)?;
        out.write_all(&page)?;
        examples.map_or(Ok(()), |examples| write_examples(&examples, out))
    })?;
    Ok(Answer::Yes)
}

/// The command of this name, called as users call it.
fn page_of(name: &str) -> Result<clap::Command> {
    let mut tet = Args::command();
    // Gives commands their full names.
    tet.build();
    let names: Vec<&str> = tet.get_subcommands().map(clap::Command::get_name).collect();
    tet.find_subcommand(name).cloned().ok_or_else(|| {
        Error::invalid(format!("no command {name}{}", did_you_mean(name, names.iter().copied())))
    })
}

/// An option with its short help as the long help, if it has no other: the page omits the short help of options that only the
/// long help lists.
fn with_long_help(arg: clap::Arg) -> clap::Arg {
    match (arg.get_long_help(), arg.get_help().cloned()) {
        (None, Some(help)) => arg.long_help(help),
        _ => arg,
    }
}

/// The examples of the help as a section of the page, line by line.
fn write_examples(examples: &str, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    writeln!(out, ".SH EXAMPLES\n.nf")?;
    for line in examples.lines().filter(|line| line.starts_with(' ')) {
        writeln!(out, "{}", line.replace('\\', "\\\\").replace('-', "\\-"))?;
    }
    writeln!(out, ".fi")
}
