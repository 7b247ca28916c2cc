//! `tet completions` and `tet man`, generated from the same definitions as the help.

use clap::CommandFactory;
use hyperslab::Result;

use crate::args::{Args, CompletionsArgs};
use crate::{Answer, output};

pub(crate) fn completions(args: &CompletionsArgs) -> Result<Answer> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "tet", &mut script);
    output::print(|out| out.write_all(&script))?;
    Ok(Answer::Yes)
}

pub(crate) fn manual() -> Result<Answer> {
    output::print(|out| {
        let mut page = Vec::new();
        clap_mangen::Man::new(Args::command()).render(&mut page)?;
        out.write_all(&page)
    })?;
    Ok(Answer::Yes)
}
