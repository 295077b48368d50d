//! `wirespeed completions`: what a shell needs to complete verbs, flags and their values, from the one definition.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::arguments::Cli;
use crate::failure::{Exit, Failure};
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  wirespeed completions bash > ~/.local/share/bash-completion/completions/wirespeed
  wirespeed completions zsh > ~/.zfunc/_wirespeed          with ~/.zfunc in $fpath
  wirespeed completions fish > ~/.config/fish/completions/wirespeed.fish
  wirespeed completions powershell >> $PROFILE
  wirespeed completions elvish >> ~/.config/elvish/rc.elv";

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Which shell
    shell: Shell,
}

/// Runs `completions`.
pub(crate) fn run(output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "wirespeed", &mut script);
    output.document(&script)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, ValueEnum as _};

    /// Verbs and long flags, those of nested verbs included.
    fn words(command: &Command, into: &mut Vec<String>) {
        into.extend(command.get_arguments().filter_map(|flag| flag.get_long()).map(str::to_owned));
        for verb in command.get_subcommands() {
            into.push(verb.get_name().to_owned());
            words(verb, into);
        }
    }

    #[test]
    fn every_shell_learns_every_verb_and_flag() {
        let mut expected = Vec::new();
        words(&Cli::command(), &mut expected);
        assert!(expected.iter().any(|word| word == "recursive") && expected.iter().any(|word| word == "stat"));
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "wirespeed", &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in &expected {
                assert!(script.contains(word.as_str()), "{shell} does not know {word}");
            }
        }
    }
}
