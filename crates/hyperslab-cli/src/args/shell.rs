//! Arguments of `tet completions` and `tet man`.

use clap::Args as ClapArgs;
use clap_complete::Shell;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet completions bash > ~/.local/share/bash-completion/completions/tet
  tet completions zsh > ~/.zfunc/_tet")]
pub(crate) struct CompletionsArgs {
    /// Shell
    pub(crate) shell: Shell,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet man | man -l -
  tet man convert | man -l -")]
pub(crate) struct ManArgs {
    /// Command, such as info or convert [default: an overview of all]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
}
