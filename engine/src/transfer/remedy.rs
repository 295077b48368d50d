//! What can be put right after a refusal, so that the same request succeeds: once, and for all requests.
//!
//! A bucket in another region, a clock that is wrong, credentials that have expired: what is learned is
//! kept by the bucket's place, the client's clock and the identity, and the request is sent again. It says
//! so by [`Retry::Remedied`]; where nothing could be put right, the error says why.

use std::sync::Arc;
use std::time::SystemTime;

use super::Engine;
use super::place::Standing;
use super::refusal::Failure;
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
}

/// A request as it was sent.
pub(super) struct Sent<'a> {
    pub(super) subject: &'a Subject,
    pub(super) standing: Arc<Standing>,
    pub(super) signed_at: SystemTime,
}

impl Engine {
    /// Puts right what can be, and says so in the failure.
    pub(super) async fn remedied(&self, remedy: Remedy, failure: Failure, sent: &Sent<'_>) -> Failure {
        let standing = &sent.standing;
        let again = |failure: Failure| Failure { retry: Retry::Remedied, ..failure };
        match remedy {
            Remedy::Region(region) => {
                if sent.subject.place.redirect(&region, standing) {
                    return again(failure);
                }
                let here = &standing.location.region;
                let message = if *here == region {
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
