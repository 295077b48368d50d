//! `wirespeed cp`: between this machine and S3, one object or a whole tree.
//!
//! Owns which way a copy goes and what its two ends mean; `download` and `upload` do the two ways. Refuses S3 to S3,
//! local to local, a tree without `--recursive`, and streams where a tree is meant.

mod download;
mod under_way;
mod upload;
mod walk;

use clap::Args;

use self::under_way::UnderWay;
use crate::cat;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::tally::{Item, Tally};
use crate::uri::Location;

const EXAMPLES: &str = "\
Examples:
  wirespeed cp s3://bucket/big.bin .                    keeps the name
  wirespeed cp report.pdf s3://bucket/reports/          keeps the name
  wirespeed cp report.pdf s3://bucket/reports/may.pdf
  wirespeed cp --recursive s3://bucket/photos ./photos  all under photos/
  wirespeed cp --recursive ./photos s3://bucket/photos
  wirespeed cp s3://bucket/big.tar - | tar x            to standard output

Files appear under their names when they are whole. A key that would leave the target folder (`../x`, `/x`, through a
symbolic link) is refused, the rest goes on, and the exit code is 1.";

/// Copy objects to files and files to objects
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket/key or a path
    #[arg(value_parser = location())]
    source: Location,
    /// s3://bucket/key, a path, or - for standard output
    #[arg(value_parser = location())]
    destination: Location,
    /// Copy everything under the source
    #[arg(long, short)]
    recursive: bool,
}

fn location() -> impl clap::builder::TypedValueParser<Value = Location> {
    use clap::builder::TypedValueParser as _;
    clap::builder::OsStringValueParser::new().try_map(Location::parse)
}

/// Runs `cp`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let usage = |message: String| Err(Failure::Usage(message));
    match (&arguments.source, &arguments.destination, arguments.recursive) {
        (Location::S3(uri), Location::Local(folder), true) => download::many(context, uri, folder).await,
        (Location::S3(uri), _, false) if uri.is_prefix() => {
            usage(format!("`{uri}` names no object; give the whole key, or add --recursive for all under it"))
        }
        (Location::S3(uri), Location::Local(path), false) => download::one(context, uri, path).await,
        (Location::S3(uri), Location::Standard, false) => {
            cat::to_stdout(context, uri).await?;
            Ok(Exit::Done)
        }
        (Location::Local(folder), Location::S3(uri), true) => upload::many(context, folder, uri).await,
        (Location::Local(path), Location::S3(uri), false) => upload::one(context, path, uri).await,
        (_, Location::Standard, true) | (Location::Standard, _, true) => {
            usage("a stream holds one object; leave out --recursive or name a folder".to_owned())
        }
        (Location::Standard, _, false) => {
            usage("reading from standard input is not supported; write it to a file and copy that".to_owned())
        }
        (Location::S3(_), Location::S3(_), _) => {
            usage("copying from S3 to S3 is not supported; copy to a local path first".to_owned())
        }
        (Location::Local(_), Location::Local(_) | Location::Standard, _) => {
            usage("neither end is on S3; write that end as s3://bucket/key".to_owned())
        }
    }
}

/// Enters what the engine took and never answered for, once its call has ended.
fn account_for_lost<I: Send + 'static>(under_way: UnderWay<I, Item>, tally: &mut Tally<'_>) -> Result<(), Failure> {
    let lost = under_way.end();
    lost.items.iter().try_for_each(|item| tally.lost(item))?;
    if lost.cut_short {
        return Err(Failure::Lost(
            "the copy ended before everything was found: the tasks that did it ended in a panic, a fault of wirespeed; \
             run it again, and report the fault"
                .to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Form, Output};
    use crate::tally::Operation;

    /// The account of a job of three items, of which `done` had outcomes when the engine's call ended.
    async fn account(done: usize, complete: bool) -> Result<Exit, Failure> {
        let output = Output::new(Form { json: false, quiet: true });
        let mut tally = Tally::start(&output, Operation::Upload);
        let (mut under_way, stream) = UnderWay::new();
        for number in 0..3 {
            let item = Item { source: number.to_string(), destination: None, size: None, etag: None };
            under_way.add(number, item);
        }
        under_way.hand_over().await;
        if complete {
            under_way.complete();
        }
        drop(stream);
        (0..done).filter_map(|index| under_way.take(index)).for_each(|item| tally.done(&item));
        let stopped = account_for_lost(under_way, &mut tally).err();
        tally.finish(stopped)
    }

    #[tokio::test]
    async fn what_was_lost_is_never_a_success() {
        assert_eq!(account(3, true).await.unwrap(), Exit::Done);
        assert_eq!(account(2, true).await.unwrap(), Exit::Partial);
        assert_eq!(account(0, true).await.unwrap(), Exit::Failed);
        assert_eq!(account(3, false).await.unwrap_err().exit(), Exit::Failed, "not all was found");
    }
}
