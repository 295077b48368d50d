//! `wirespeed manual`: the manual pages, one a verb, from the one definition of the command line and the engine's list of
//! settings.
//!
//! Sections of examples, exit codes and the like are set as they stand in `--help`, line by line: their columns mean
//! something.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory as _, ValueHint};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use wirespeed::CONFIG_KEYS;

use crate::arguments::Cli;
use crate::failure::{Exit, Failure};
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  wirespeed manual | man -l -                      the program as a whole
  wirespeed manual cp | man -l -                   one verb
  wirespeed manual --folder ~/.local/share/man/man1    all of them, as files";

/// Print a manual page, or write all of them as files
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The verb; without it the program as a whole
    #[arg(conflicts_with = "folder")]
    verb: Vec<String>,
    /// Write every page into this folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

/// Runs `manual`.
pub(crate) fn run(output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    let program = program();
    if let Some(folder) = &arguments.folder {
        fs::create_dir_all(folder).map_err(|source| Failure::local("make the folder", folder, source))?;
        write_all(&program, folder)?;
        return Ok(Exit::Done);
    }
    let mut command = &program;
    for verb in &arguments.verb {
        command = command
            .find_subcommand(verb)
            .ok_or_else(|| Failure::Usage(format!("`{verb}` is no verb; `wirespeed --help` lists them")))?;
    }
    output.document(&rendered(command)?)?;
    Ok(Exit::Done)
}

/// The definition with every verb's full name and the global flags where they apply. The verb `help` is no page.
fn program() -> Command {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    program
}

fn write_all(command: &Command, folder: &Path) -> Result<(), Failure> {
    let path = folder.join(Man::new(command.clone()).get_filename());
    fs::write(&path, rendered(command)?).map_err(|source| Failure::local("write", &path, source))?;
    command.get_subcommands().try_for_each(|verb| write_all(verb, folder))
}

fn rendered(command: &Command) -> Result<Vec<u8>, Failure> {
    page(command).map_err(|source| Failure::Local { what: "cannot render the manual page".to_owned(), source })
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let is_program = command.get_name() == "wirespeed";
    let source = concat!("wirespeed ", env!("CARGO_PKG_VERSION"));
    // Pages are the same whenever they are made. An empty date would be left out, and what follows take its place.
    let man = Man::new(command.clone()).date(" ").source(source).manual("wirespeed manual");
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    if let Some(text) = command.get_after_help() {
        as_in_help(&text.to_string(), &mut rest);
    }
    if is_program {
        settings(&mut rest);
    } else {
        rest.control("SH", ["SEE ALSO"]).text([bold("wirespeed"), roman("(1)")]);
    }
    rest.to_writer(&mut page)?;
    Ok(page)
}

/// Paragraphs of the help's end: `Title:` with indented lines below is a section of its own, set line by line.
fn as_in_help(text: &str, page: &mut Roff) {
    let mut in_notes = false;
    for paragraph in text.split("\n\n") {
        let (first, below) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        let title = first.strip_suffix(':').filter(|_| !below.is_empty() && below.lines().all(|l| l.starts_with("  ")));
        if let Some(title) = title {
            in_notes = false;
            page.control("SH", [title.to_uppercase().as_str()]).control("nf", []);
            for line in below.lines() {
                page.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            page.control("fi", []);
            continue;
        }
        if in_notes {
            page.control("PP", []);
        } else {
            page.control("SH", ["NOTES"]);
        }
        in_notes = true;
        for line in paragraph.lines() {
            page.text([roman(line)]);
        }
    }
}

/// What `--set` takes, and the environment variable of each.
fn settings(page: &mut Roff) {
    page.control("SH", ["SETTINGS"]);
    page.text([roman("For --set NAME=VALUE, or from the environment; a flag wins over the environment.")]);
    for key in CONFIG_KEYS {
        page.control("TP", []);
        let environment = match key.environment {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        page.text([bold(key.name), roman(environment)]);
        page.text([roman(key.help)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(command: &Command) -> String {
        // Dashes and quotes are written so that they stay what they are.
        String::from_utf8(page(command).unwrap()).unwrap().replace("\\-", "-").replace("\\*(Aq", "'")
    }

    #[test]
    fn every_verb_has_a_page_with_its_flags_and_examples() {
        let program = program();
        for verb in program.get_subcommands() {
            let page = text(verb);
            assert!(page.starts_with(".ie"), "{page}");
            assert!(page.contains(&format!(".TH wirespeed-{} 1", verb.get_name())), "{page}");
            assert!(page.contains(".SH EXAMPLES\n.nf\n"), "{page}");
            for flag in verb.get_arguments().filter(|flag| !flag.is_hide_set()).filter_map(|flag| flag.get_long()) {
                assert!(page.contains(&format!("--{flag}")), "{} has no --{flag}", verb.get_name());
            }
        }
    }

    #[test]
    fn the_programs_page_has_verbs_settings_and_exit_codes() {
        let program = program();
        let page = text(&program);
        for verb in program.get_subcommands() {
            assert!(page.contains(&format!("wirespeed-{}(1)", verb.get_name())), "{}", verb.get_name());
        }
        for key in CONFIG_KEYS {
            assert!(page.contains(key.name) && page.contains(key.help), "{}", key.name);
        }
        assert!(page.contains(".SH \"EXIT CODES\"\n.nf\n0    all done\n"), "{page}");
    }
}
