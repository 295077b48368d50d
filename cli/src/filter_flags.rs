//! Flags that choose among what a listing or a walk finds, the same on every verb.
//!
//! `--include` and `--exclude` may be given many times, and their order on the command line counts: as for `aws s3`
//! everything is in at the start, and of the rules that match a name the last one decides. Their patterns are held
//! against what comes after the folder that was named, as in `a/b.txt` of `s3://bucket/folder/a/b.txt`.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use jiff::Timestamp;
use wirespeed_bulk::{Filter, Rule, ShardOptions};

use crate::moment::parse_moment;
use crate::units::parse_size;

const HEADING: &str = "Which of them";

/// Which of the objects or files that are found.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct FilterFlags {
    #[command(flatten)]
    rules: Rules,
    /// Only what was written before: an age as 7d or 12h, or a time as 2026-01-31 or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "AGE", value_parser = parse_moment)]
    older_than: Option<Timestamp>,
    /// Only what was written since then
    #[arg(long, value_name = "AGE", value_parser = parse_moment)]
    newer_than: Option<Timestamp>,
    /// Only what has more bytes, as in 8MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    larger: Option<u64>,
    /// Only what has fewer bytes
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    smaller: Option<u64>,
}

impl FilterFlags {
    /// Whether any of them is given.
    pub(crate) fn given(&self) -> bool {
        let FilterFlags { rules: Rules(rules), older_than, newer_than, larger, smaller } = self;
        !rules.is_empty() || older_than.is_some() || newer_than.is_some() || larger.is_some() || smaller.is_some()
    }

    /// The filter that they stand for.
    pub(crate) fn filter(&self) -> Filter {
        let mut filter = Filter::default();
        for rule in &self.rules.0 {
            filter = match rule {
                Rule::Include(pattern) => filter.include(pattern),
                Rule::Exclude(pattern) => filter.exclude(pattern),
            };
        }
        if let Some(moment) = self.older_than {
            filter = filter.older_than(moment);
        }
        if let Some(moment) = self.newer_than {
            filter = filter.newer_than(moment);
        }
        if let Some(bytes) = self.larger {
            filter = filter.larger(bytes);
        }
        if let Some(bytes) = self.smaller {
            filter = filter.smaller(bytes);
        }
        filter
    }

    /// The same in the plain data of a shard's spec.
    pub(crate) fn tell(&self, options: &mut ShardOptions) {
        options.rules.clone_from(&self.rules.0);
        options.older_than = self.older_than.map(|moment| moment.to_string());
        options.newer_than = self.newer_than.map(|moment| moment.to_string());
        options.larger = self.larger;
        options.smaller = self.smaller;
    }
}

/// `--include` and `--exclude`, in the order given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rules(Vec<Rule>);

// By hand: the derived form keeps no order between two flags.
impl Args for Rules {
    fn augment_args(command: Command) -> Command {
        let rule = |name: &'static str, help: &'static str| {
            Arg::new(name).long(name).value_name("PATTERN").action(ArgAction::Append).help(help).help_heading(HEADING)
        };
        command
            .arg(rule(
                "exclude",
                "Leave out what matches: `*` is any text, also over `/`, `?` one character, [a-z] one of these",
            ))
            .arg(rule(
                "include",
                "Take in again what matches; of --exclude and --include the last that matches decides",
            ))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Rules::augment_args(command)
    }
}

impl FromArgMatches for Rules {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Rules, Error> {
        let of = |name: &str, make: fn(String) -> Rule| {
            let places = matches.indices_of(name).into_iter().flatten();
            let patterns = matches.get_many::<String>(name).into_iter().flatten();
            places.zip(patterns.cloned().map(make)).collect::<Vec<_>>()
        };
        let mut rules = of("exclude", Rule::Exclude);
        rules.extend(of("include", Rule::Include));
        rules.sort_by_key(|(place, _)| *place);
        Ok(Rules(rules.into_iter().map(|(_, rule)| rule).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Rules::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        filter: FilterFlags,
    }

    fn flags(words: &[&str]) -> FilterFlags {
        Line::try_parse_from([&["x"], words].concat()).unwrap().filter
    }

    #[test]
    fn rules_keep_the_order_of_the_command_line() {
        let given = flags(&["--exclude", "*", "--include=*.txt", "--larger", "1KiB", "--exclude", "a*"]);
        let rules = [Rule::Exclude("*".into()), Rule::Include("*.txt".into()), Rule::Exclude("a*".into())];
        assert_eq!(given.rules.0, rules);
        assert_eq!(given.larger, Some(1024));
        assert!(given.given());
    }

    #[test]
    fn no_flag_is_no_filter() {
        assert!(!flags(&[]).given());
        for one in [["--exclude", "a"], ["--include", "a"], ["--older-than", "1d"], ["--smaller", "1"]] {
            assert!(flags(&one).given(), "{one:?}");
        }
    }

    #[test]
    fn the_last_rule_that_matches_decides() {
        let filter = flags(&["--exclude", "*", "--include", "*.txt", "--exclude", "secret/*"]).filter();
        for (key, wanted) in [("a.txt", true), ("d/a.txt", true), ("a.bin", false), ("secret/a.txt", false)] {
            assert_eq!(filter.wants(key, Some(1), None), wanted, "{key}");
        }
    }
}
