//! The command line's surface: global flags and the list of verbs. Each verb's own arguments live in its module.
//!
//! The derive below is the one definition that serves parsing, `--help`, the manual and the completions:
//! `Cli::command()` hands it out whole.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Args, Parser, Subcommand, ValueHint};

use crate::bulk::run_flags::{RunFlags, TreeFlags};
use crate::checksum_flags::ChecksumFlags;
use crate::{
    bench, cat, completions, cp, diff, du, find, ls, manual, mb, mv, pipe, plan, presign, rb, rm, run, run_shard, stat,
    sync, tree, uploads,
};

const EXIT_CODES: &str = "\
Exit codes:
  0    all done
  1    some items failed or were refused, the rest was done; `ls`, `find` and the like: nothing found
  2    the command line or the configuration makes no sense
  3    the operation failed as a whole: no such bucket or key, denied, unreachable, disk full
  4    another run holds the file that --lock names; nothing was done
  130  interrupted by Ctrl-C (143: by SIGTERM); no half file is left

Credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, from a profile (--profile,
AWS_PROFILE), or from the services of AWS that the machine runs in, in this order.

Examples:
  wirespeed ls s3://bucket/photos/
  wirespeed cp --recursive s3://bucket/photos ./photos
  wirespeed cp backup.tar s3://bucket/backups/
  wirespeed sync ./site s3://bucket/site --delete
  wirespeed --endpoint-url http://localhost:9000 mb s3://bucket
  wirespeed bench get s3://bucket/big.bin --sink memory --rounds 20";

/// Moves data to and from S3 at the speed of the wire
#[derive(Debug, Parser)]
#[command(name = "wirespeed", version, after_help = EXIT_CODES, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every verb takes, before or after its name.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Address of the S3 service, as in http://localhost:9000
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) endpoint_url: Option<String>,
    /// Region that requests are signed for
    #[arg(long, global = true)]
    pub(crate) region: Option<String>,
    /// Profile of ~/.aws/config and ~/.aws/credentials to use
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// PEM file of the certificate authorities to trust, instead of the system's
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ca_bundle: Option<PathBuf>,
    /// Accept any certificate: whoever stands in between can read and change everything
    #[arg(long, global = true)]
    pub(crate) no_verify_ssl: bool,
    /// Reach AWS by names that have IPv6 addresses too
    #[arg(long, global = true)]
    pub(crate) dualstack: bool,
    /// Reach AWS by its FIPS endpoints
    #[arg(long, global = true)]
    pub(crate) use_fips: bool,
    /// Send requests without a signature, for public buckets
    #[arg(long, global = true)]
    pub(crate) no_sign_request: bool,
    /// Sign heads but not bodies, which saves a SHA-256 over every upload
    #[arg(long, global = true)]
    pub(crate) unsigned_payload: bool,
    /// Requests in flight
    #[arg(long, global = true, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) concurrency: Option<u32>,
    /// Bytes a request when an object is moved in parts, as in 8MiB
    #[arg(long, global = true, value_name = "SIZE")]
    pub(crate) part_size: Option<String>,
    /// Memory for data in flight, as in 512MiB
    #[arg(long, global = true, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Any other setting of the engine, as in --set max_attempts=3 (repeatable; `bench --json` lists them all)
    #[arg(long, global = true, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Print JSON lines
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print errors only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Tell of retries and trouble on standard error (twice: of every request)
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Global {
    /// Whether any of them is about how the service is reached, and not about what is printed.
    pub(crate) fn is_about_client(&self) -> bool {
        let Global { endpoint_url, region, profile, ca_bundle, no_verify_ssl, dualstack, use_fips, .. } = self;
        let Global { no_sign_request, unsigned_payload, concurrency, part_size, memory, set, verbose, .. } = self;
        [endpoint_url, region, profile, part_size, memory].into_iter().any(Option::is_some)
            || (ca_bundle.is_some() || concurrency.is_some() || !set.is_empty() || *verbose > 0)
            || [no_verify_ssl, dualstack, use_fips, no_sign_request, unsigned_payload].into_iter().any(|flag| *flag)
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ls(ls::Arguments),
    Diff(diff::Arguments),
    Du(du::Arguments),
    Tree(tree::Arguments),
    Find(find::Arguments),
    // Its flags are many, and there is one of it.
    Cp(Box<cp::Arguments>),
    Mv(Box<mv::Arguments>),
    Sync(Box<sync::Arguments>),
    Pipe(Box<pipe::Arguments>),
    Cat(cat::Arguments),
    Rm(rm::Arguments),
    Stat(stat::Arguments),
    Presign(presign::Arguments),
    Uploads(uploads::Arguments),
    Run(run::Arguments),
    Plan(Box<plan::Arguments>),
    RunShard(run_shard::Arguments),
    Mb(mb::Arguments),
    Rb(rb::Arguments),
    Bench(bench::Arguments),
    Completions(completions::Arguments),
    Manual(manual::Arguments),
}

impl Command {
    /// The settings of the engine that the verb's own flags stand for.
    pub(crate) fn settings(&self) -> Vec<(&'static str, &str)> {
        let checksum = match self {
            Command::Cp(arguments) => Some(arguments.copying.checksum.clone()),
            Command::Mv(arguments) => Some(arguments.copying.checksum.clone()),
            Command::Sync(arguments) => Some(arguments.checksums.plain()),
            Command::Pipe(arguments) => Some(arguments.checksum.clone()),
            _ => None,
        };
        let checksum = checksum.unwrap_or_else(ChecksumFlags::default);
        let mut settings: Vec<(&'static str, &str)> = checksum.settings().collect();
        settings.extend(self.run_flags().into_iter().flat_map(RunFlags::settings));
        settings
    }

    /// Whether standard error shows progress: always, never, or where it is a terminal.
    pub(crate) fn progress(&self) -> Option<bool> {
        self.run_flags().and_then(RunFlags::progress)
    }

    /// Whether a table of the requests is printed at the end.
    pub(crate) fn wants_request_table(&self) -> bool {
        self.run_flags().is_some_and(|flags| flags.stat)
    }

    /// The file in which what is half done is named, so that it stays when the command is stopped.
    pub(crate) fn state(&self) -> Option<&Path> {
        self.tree_flags().and_then(|flags| flags.state.as_deref())
    }

    fn run_flags(&self) -> Option<&RunFlags> {
        match self {
            Command::Cp(arguments) => Some(&arguments.copying.run),
            Command::Mv(arguments) => Some(&arguments.copying.run),
            Command::Sync(arguments) => Some(&arguments.run),
            Command::Rm(arguments) => Some(&arguments.run),
            _ => None,
        }
    }

    fn tree_flags(&self) -> Option<&TreeFlags> {
        match self {
            Command::Cp(arguments) => Some(&arguments.copying.tree),
            Command::Mv(arguments) => Some(&arguments.copying.tree),
            Command::Sync(arguments) => Some(&arguments.tree),
            _ => None,
        }
    }

    /// Whether it reads standard input.
    pub(crate) fn reads_stdin(&self) -> bool {
        match self {
            Command::Cp(arguments) => arguments.reads_stdin(),
            Command::Mv(arguments) => arguments.reads_stdin(),
            Command::Sync(arguments) => arguments.reads_stdin(),
            Command::Pipe(_) => true,
            Command::Plan(arguments) => arguments.reads_stdin(),
            Command::RunShard(arguments) => arguments.reads_stdin(),
            _ => false,
        }
    }
}

/// Optional values that `aws s3` takes apart from their flag. Any other word behind such a flag is an argument of its own.
const VALUES_APART: [(&str, &[&str]); 3] =
    [("--sse", &["AES256", "aws:kms"]), ("--request-payer", &["requester"]), ("--if-none-match", &["*"])];

/// Joins an optional value to its flag with `=`, which the parser requires, where it is one of those that can be meant.
pub(crate) fn joined(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut ended = false;
    for word in words {
        let flag = joined.last().and_then(|last| VALUES_APART.iter().find(|(flag, _)| last == flag));
        match (flag, joined.last_mut()) {
            (Some((_, values)), Some(last)) if !ended && values.iter().any(|value| word == *value) => {
                last.push("=");
                last.push(word);
            }
            _ => {
                ended |= word == "--";
                joined.push(word);
            }
        }
    }
    joined
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.replace('-', "_"), value.to_owned())),
        _ => Err("write it as NAME=VALUE, as in max_attempts=3".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri::Location;
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_flags_go_before_and_after_the_verb() {
        for line in [
            ["wirespeed", "--json", "--part-size", "8MiB", "ls", "s3://b"],
            ["wirespeed", "ls", "--json", "s3://b", "--part-size", "8MiB"],
        ] {
            let cli = Cli::try_parse_from(line).unwrap();
            assert!(cli.global.json);
            assert_eq!(cli.global.part_size.as_deref(), Some("8MiB"));
        }
    }

    #[test]
    fn an_optional_value_is_one_of_a_few_words_or_needs_an_equals_sign() {
        let parse = |words: &[&str]| {
            let words = ["wirespeed", "cp"].iter().chain(words).map(OsString::from);
            let Command::Cp(arguments) = Cli::try_parse_from(joined(words)).unwrap().command else { panic!() };
            arguments.copying
        };
        for flag in ["--if-none-match", "--sse", "--request-payer"] {
            let copying = parse(&[flag, "FILE", "s3://b/k"]);
            assert_eq!(copying.source, Location::Local("FILE".into()), "{flag}");
        }
        for (words, etag) in [
            (&["--if-none-match", "FILE", "s3://b/k"][..], "*"),
            (&["--if-none-match", "*", "FILE", "s3://b/k"], "*"),
            (&["--if-none-match=*", "FILE", "s3://b/k"], "*"),
            (&["--if-none-match=\"e\"", "s3://b/k", "FILE"], "\"e\""),
            (&["FILE", "s3://b/k", "--if-none-match"], "*"),
        ] {
            assert_eq!(parse(words).write.if_none_match.as_deref(), Some(etag), "{words:?}");
        }
        for words in [["--sse", "aws:kms", "FILE", "s3://b/k"], ["--request-payer", "requester", "FILE", "s3://b/k"]] {
            assert_eq!(parse(&words).source, Location::Local("FILE".into()), "{words:?}");
        }
        assert_eq!(joined(["--", "--sse", "AES256"].map(OsString::from)).len(), 3);
        // Every optional value needs it, but those that may be a key by mistake, which no error may quote.
        let command = Cli::command();
        for verb in command.get_subcommands() {
            for argument in
                verb.get_arguments().filter(|argument| argument.get_num_args().is_some_and(|n| n.min_values() == 0))
            {
                let takes_key = argument.get_id().as_str().starts_with("sse_c");
                let takes_value = argument.get_action().takes_values();
                assert!(
                    !takes_value || takes_key || argument.is_require_equals_set(),
                    "{} {argument}",
                    verb.get_name()
                );
            }
        }
    }

    #[test]
    fn every_verb_teaches_by_example() {
        let command = Cli::command();
        for verb in command.get_subcommands() {
            let help = verb.clone().render_long_help().to_string();
            assert!(help.contains(&format!("wirespeed {}", verb.get_name())), "{}", verb.get_name());
        }
    }

    #[test]
    fn settings() {
        assert_eq!(setting("max-attempts=3"), Ok(("max_attempts".to_owned(), "3".to_owned())));
        assert_eq!(setting("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(setting("a").is_err() && setting("=a").is_err());
    }
}
