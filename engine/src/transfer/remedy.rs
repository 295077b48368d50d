//! What can be put right after a refusal, so that the same request succeeds: once, and for all requests.
//!
//! A bucket in another region, a clock that is wrong, credentials that have expired: what is learned is
//! kept by the bucket's place, the client's clock and the identity, and the request is sent again. It says
//! so by [`Retry::Remedied`]; where nothing could be put right, the error says why.

use std::sync::Arc;
use std::time::SystemTime;

use super::Engine;
use super::place::Standing;
use super::refusal::{Failure, UNSAID, UNSAID_HINT};
use super::request::Subject;
use crate::credentials::describe;
use crate::error::{Error, ErrorKind};
use crate::pace::Retry;

/// What might help.
pub(super) enum Remedy {
    /// To send it to the region that the bucket is in.
    Region(String),
    /// To sign it for the server's time.
    Clock(SystemTime),
    /// To sign it with newer credentials.
    Credentials,
    /// The server did not say what is wrong, as it cannot in the answer to a HEAD: newer credentials might
    /// help.
    Unsaid,
}

/// A request as it was sent.
pub(super) struct Sent<'a> {
    pub(super) subject: &'a Subject,
    pub(super) standing: Arc<Standing>,
    pub(super) signed_at: SystemTime,
    /// Whether something has been put right for it before.
    pub(super) is_remedied: bool,
}

impl Engine {
    /// Puts right what can be, and says so in the failure.
    pub(super) async fn remedied(&self, remedy: Remedy, failure: Failure, sent: &Sent<'_>) -> Failure {
        let standing = &sent.standing;
        let again = |failure: Failure| Failure { retry: Retry::Remedied, ..failure };
        match remedy {
            // The region is right: what is wrong is something else.
            Remedy::Region(region)
                if failure.error.status() == Some(400)
                    && failure.error.code().is_none_or(str::is_empty)
                    && region == standing.location.region =>
            {
                self.unsaid(failure, sent).await
            }
            Remedy::Unsaid => self.unsaid(failure, sent).await,
            Remedy::Region(region) => {
                if sent.subject.place.redirect(&region, standing) {
                    return again(failure);
                }
                let here = &standing.location.region;
                let message = if sent.subject.bucket.starts_with("arn:") {
                    format!("the server names the region {region}, and the ARN {here}")
                } else if *here == region {
                    format!("the server says that the bucket is in the region {region}, where the request was sent")
                } else {
                    format!("the bucket is in the region {region}; {here}, where a first redirect led, sent it on")
                };
                Failure { error: restated(&failure, ErrorKind::Config, message, SET_REGION), ..failure }
            }
            Remedy::Clock(_) if standing.signer.is_none() => failure,
            Remedy::Clock(server) => {
                if self.clock.correct(server, sent.signed_at) {
                    return again(failure);
                }
                // It did not help, and may have been wrong.
                self.clock.forget_correction();
                let message = format!("{}, and the server refuses its time also when corrected", describe(server));
                Failure { error: restated(&failure, ErrorKind::Denied, message, SET_CLOCK), ..failure }
            }
            Remedy::Credentials => {
                if standing.replace_credentials(self.clock.now()).await {
                    again(failure)
                } else {
                    failure
                }
            }
        }
    }

    /// A refusal without a reason: once with newer credentials, if there are any.
    async fn unsaid(&self, failure: Failure, sent: &Sent<'_>) -> Failure {
        if !sent.is_remedied
            && sent.standing.signer.is_some()
            && sent.standing.replace_credentials(self.clock.now()).await
        {
            return Failure { retry: Retry::Remedied, ..failure };
        }
        Failure { error: restated(&failure, ErrorKind::Config, UNSAID.to_owned(), UNSAID_HINT), ..failure }
    }
}

const SET_REGION: &str = "set --region to where the bucket is";
const SET_CLOCK: &str = "set this machine's clock";

/// The same refusal in other words.
fn restated(failure: &Failure, kind: ErrorKind, message: String, hint: &'static str) -> Error {
    let refused = &failure.error;
    Error::new(kind, message)
        .with_response(
            refused.status().unwrap_or_default(),
            refused.code().map(str::to_owned),
            refused.request_id().map(str::to_owned),
        )
        .with_hint(hint)
}
