//! Arguments of `tet completions`.

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
