//! Who signs the requests: where credentials come from, how they are kept fresh, and the signers made
//! from them.
//!
//! [`CredentialsSource`] says where to look, in this order: what the caller gave; the environment; the
//! profile and the services of AWS, which [`chain`] asks with the help of `aws-config`. [`Identity`] keeps
//! what was found: requests take their signer from it without a lock, and new credentials are fetched
//! behind their backs before the old ones expire. [`Clock`] is this machine's time as the server sees it.
//!
//! Nothing is read or sent before the first request needs it, and `aws-config` is not touched where the
//! caller or the environment gave the keys. Secrets live in [`Credentials`] and in the signers made from
//! it, and nowhere else: neither prints them, and no text of a provider reaches an error unless it was
//! freed of what could be one.

mod chain;
mod clock;
mod identity;
mod profile;
mod reason;
mod way;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use zeroize::Zeroize as _;

pub(crate) use clock::{Clock, TOLERATED, describe, seconds_between};
pub(crate) use identity::{Identity, Load, LoadFailure, Loaded, Loading, Refused};
pub(crate) use profile::Profile;

use crate::config::ProxyUrl;
use crate::error::{Error, ErrorKind, Result};

/// Looks up an environment variable: a parameter, so that tests need not change the process's own.
pub(crate) type Variable = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// An access key, and a session token where the key is temporary.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: String,
    pub(crate) session_token: Option<String>,
}

impl Credentials {
    /// A long-term access key.
    pub fn new(access_key_id: impl Into<String>, secret_access_key: impl Into<String>) -> Self {
        Credentials {
            access_key_id: access_key_id.into(),
            secret_access_key: secret_access_key.into(),
            session_token: None,
        }
    }

    /// Adds the session token of a temporary access key.
    pub fn with_session_token(mut self, session_token: impl Into<String>) -> Self {
        self.session_token = Some(session_token.into());
        self
    }
}

/// What is no longer used should not be found in a memory dump.
impl Drop for Credentials {
    fn drop(&mut self) {
        self.secret_access_key.zeroize();
        self.session_token.zeroize();
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key_id", &self.access_key_id)
            .field("secret_access_key", &"redacted")
            .field("session_token", &self.session_token.as_ref().map(|_| "redacted"))
            .finish()
    }
}

/// Where the credentials come from.
#[derive(Debug, Clone)]
pub(crate) enum CredentialsSource {
    Anonymous,
    Static(Credentials),
    /// The environment, and then the chain.
    Default,
}

/// What decides where the chain looks.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChainSettings {
    /// The profile, where one is named.
    pub(crate) profile: Option<String>,
    /// Whether the caller named it: then the keys of the environment are not meant.
    pub(crate) profile_is_explicit: bool,
    /// The region of the token service, where it is decided; else the profile's.
    pub(crate) region: Option<String>,
    /// Whether the services of AWS are reached by their FIPS endpoints.
    pub(crate) use_fips: bool,
    /// Whether they are reached by names that have IPv6 addresses too.
    pub(crate) use_dual_stack: bool,
    /// The proxy that leads to them, and what goes straight all the same.
    pub(crate) https_proxy: Option<ProxyUrl>,
    pub(crate) no_proxy: Option<String>,
    /// The certificate authorities to trust; else the profile's, else the system's.
    pub(crate) ca_bundle: Option<PathBuf>,
}

impl CredentialsSource {
    /// The identity that requests are signed with. Reads variables, and nothing else yet.
    pub(crate) fn identity(&self, settings: ChainSettings, variable: Variable) -> Result<Identity> {
        match self {
            CredentialsSource::Anonymous => Ok(Identity::anonymous()),
            CredentialsSource::Static(credentials) => Ok(Identity::fixed(usable(credentials.clone())?)),
            CredentialsSource::Default => {
                if !settings.profile_is_explicit
                    && let Some(credentials) = from_environment(&variable)?
                {
                    return Ok(Identity::fixed(credentials));
                }
                Ok(Identity::loading(Box::new(chain::Chain::new(settings, variable))))
            }
        }
    }
}

/// The environment's access key; an error where it has half of one.
fn from_environment(variable: &Variable) -> Result<Option<Credentials>> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let missing = match (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY")) {
        (Some(id), Some(secret)) => {
            let session_token = set("AWS_SESSION_TOKEN");
            let credentials = Credentials { access_key_id: id, secret_access_key: secret, session_token };
            return usable(credentials).map(Some);
        }
        (None, None) => return Ok(None),
        (None, _) => "AWS_ACCESS_KEY_ID is not set",
        (_, _) => "AWS_SECRET_ACCESS_KEY is not set",
    };
    Err(Error::new(ErrorKind::Denied, format!("half an access key: {missing} in the environment, the other half is"))
        .with_hint("set both, or neither and use a profile, or ask for unsigned requests (--no-sign-request)"))
}

/// Refuses what could not stand in a header, before it reaches one.
fn usable(credentials: Credentials) -> Result<Credentials> {
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    let token_is_plain = credentials.session_token.as_deref().is_none_or(plain);
    if plain(&credentials.access_key_id) && plain(&credentials.secret_access_key) && token_is_plain {
        return Ok(credentials);
    }
    Err(Error::new(ErrorKind::Config, "the credentials hold a blank, a line break or a character outside ASCII")
        .with_hint("copy the access key, secret and token again, without quotes or line breaks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(name: &'static str, value: &'static str) -> Variable {
        Arc::new(move |asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn debug_shows_no_secret() {
        let credentials = Credentials::new("AKID", "hidden-secret").with_session_token("hidden-token");
        let identity = Identity::fixed(credentials.clone());
        let shown = format!("{credentials:?} {:?} {identity:?}", CredentialsSource::Static(credentials.clone()));
        assert!(!shown.contains("hidden"), "{shown}");
    }

    #[test]
    fn half_an_access_key_says_which_half_is_missing() {
        let source = CredentialsSource::Default;
        let error = source.identity(ChainSettings::default(), only("AWS_ACCESS_KEY_ID", "AKID")).unwrap_err();
        assert!(error.to_string().contains("AWS_SECRET_ACCESS_KEY is not set"), "{error}");
    }

    #[test]
    fn a_secret_with_a_line_break_is_refused_and_not_shown() {
        let source = CredentialsSource::Static(Credentials::new("AKID", "hidden\n"));
        let error = source.identity(ChainSettings::default(), only("", "")).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hidden"));
    }
}
