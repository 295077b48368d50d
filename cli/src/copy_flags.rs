//! Flags that only a copy from S3 to S3 has, spelled as `aws s3 cp` spells them where it has them.
//!
//! Owns which of its source's properties a copy takes. Refuses flags that a copy would silently ignore.

use clap::{Args, ValueEnum};
use wirespeed::{CopyDirective, SseCustomerKey};

use crate::access::Access;
use crate::customer_key::CopySourceKey;
use crate::failure::Failure;
use crate::write_flags::WriteFlags;

/// What a copy takes from its source, and how that is read.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options for S3 to S3")]
pub(crate) struct CopyFlags {
    /// Whether type, headers and metadata come from the source or from the flags
    #[arg(long, value_name = "DIRECTIVE", value_parser = ["COPY", "REPLACE"])]
    metadata_directive: Option<String>,
    /// What comes from the source: nothing; type, headers and metadata; or tags too
    #[arg(long, value_name = "PROPERTIES")]
    copy_props: Option<CopyProps>,
    /// Refuse a source bucket that does not belong to this account [default: that of --expected-bucket-owner]
    #[arg(long, value_name = "ACCOUNT", value_parser = crate::access::account)]
    expected_source_bucket_owner: Option<String>,
    #[command(flatten)]
    source_key: CopySourceKey,
}

/// What a copy takes from its source, as `aws s3 cp --copy-props` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CopyProps {
    None,
    MetadataDirective,
    Default,
}

impl CopyFlags {
    /// Whether any of them is given.
    pub(crate) fn given(&self) -> bool {
        let owner = self.expected_source_bucket_owner.is_some();
        self.metadata_directive.is_some() || self.copy_props.is_some() || owner || self.source_key.given()
    }

    /// Where the copy takes its description from, and where its tags.
    pub(crate) fn directives(&self, write: &WriteFlags) -> Result<(CopyDirective, CopyDirective), Failure> {
        let metadata = match (self.metadata_directive.as_deref(), self.copy_props) {
            (Some("REPLACE"), _) | (None, Some(CopyProps::None)) => CopyDirective::Replace,
            _ => CopyDirective::Copy,
        };
        if metadata == CopyDirective::Copy && write.describes() {
            return Err(Failure::Usage(
                "a copy takes type, headers and metadata from its source; to give it others, add --metadata-directive \
                 REPLACE"
                    .to_owned(),
            ));
        }
        let tags = match self.copy_props {
            None | Some(CopyProps::Default) if !write.tags() => CopyDirective::Copy,
            _ => CopyDirective::Replace,
        };
        Ok((metadata, tags))
    }

    /// Who pays for what is asked of the source, and who must own it.
    pub(crate) fn source_access(&self, access: &Access) -> Access {
        let owner = self.expected_source_bucket_owner.clone();
        Access { expected_bucket_owner: owner.or_else(|| access.expected_bucket_owner.clone()), ..access.clone() }
    }

    /// The key that opens the source.
    pub(crate) fn source_key(&self) -> Result<Option<SseCustomerKey>, Failure> {
        self.source_key.read()
    }

    /// The flags again, as words of a command; a key that is no file's is left out, see
    /// [`CustomerKey::words`](crate::customer_key::CustomerKey::words).
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let props = self.copy_props.and_then(|props| props.to_possible_value());
        for (flag, value) in [
            ("--metadata-directive", self.metadata_directive.clone()),
            ("--copy-props", props.map(|props| props.get_name().to_owned())),
            ("--expected-source-bucket-owner", self.expected_source_bucket_owner.clone()),
        ] {
            words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
        }
        words.extend(self.source_key.words());
        words
    }
}
