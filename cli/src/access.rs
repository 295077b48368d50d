//! Flags about the bucket itself, on every verb that touches objects: who pays, and who must own it.

use clap::Args;

/// Who pays for the requests, and who must own the bucket.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Access {
    /// Agree to pay for the requests, as buckets whose requesters pay demand
    #[arg(long, value_name = "PAYER", num_args = 0..=1, require_equals = true, default_missing_value = "requester")]
    #[arg(value_parser = ["requester"])]
    pub(crate) request_payer: Option<String>,
    /// Refuse a bucket that does not belong to this account
    #[arg(long, value_name = "ACCOUNT", value_parser = account)]
    pub(crate) expected_bucket_owner: Option<String>,
}

impl Access {
    /// The builder with these wishes in it.
    pub(crate) fn on<B: HasAccess>(&self, mut builder: B) -> B {
        if self.request_payer.is_some() {
            builder = builder.payer();
        }
        if let Some(owner) = &self.expected_bucket_owner {
            builder = builder.owner(owner);
        }
        builder
    }

    /// The flags again, as words of a command.
    pub(crate) fn words(&self) -> Vec<String> {
        let payer = self.request_payer.as_ref().map(|payer| format!("--request-payer={payer}"));
        let owner = self.expected_bucket_owner.as_ref().map(|owner| format!("--expected-bucket-owner={owner}"));
        payer.into_iter().chain(owner).collect()
    }
}

pub(crate) fn account(text: &str) -> Result<String, String> {
    if text.len() == 12 && text.bytes().all(|digit| digit.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    Err("an account is 12 digits".to_owned())
}

/// A builder of the engine whose requests can carry these wishes.
pub(crate) trait HasAccess: Sized {
    /// Agrees to pay.
    fn payer(self) -> Self;
    /// Names the owner.
    fn owner(self, account: &str) -> Self;
}

macro_rules! has_access {
    ($($builder:ident),+) => {$(
        impl HasAccess for wirespeed::$builder {
            fn payer(self) -> Self {
                self.request_payer()
            }

            fn owner(self, account: &str) -> Self {
                self.expected_owner(account)
            }
        }
    )+};
}

// A request as it is written has no methods for this.
impl HasAccess for wirespeed::Raw {
    fn payer(self) -> Self {
        self.header("x-amz-request-payer", "requester")
    }

    fn owner(self, account: &str) -> Self {
        self.header("x-amz-expected-bucket-owner", account)
    }
}

has_access!(AbortUpload, Delete, DeleteMany, Get, GetMany, Head, List, ListUploads, PutOptions);
