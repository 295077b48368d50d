//! Who signs the requests: static credentials, the environment's, or nobody.
//!
//! Secrets live in [`Credentials`] and in the signer made from it, and nowhere else: neither prints
//! them. The wider chain (profiles, web identity, instance metadata) takes the place of
//! [`CredentialsSource::Environment`] and refreshes what [`CredentialsSource::resolve`] returns.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

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
    Environment,
}

impl CredentialsSource {
    /// The credentials to sign with; `None` when requests go unsigned.
    ///
    /// `variable` looks up an environment variable: a parameter, so that tests need not change the
    /// process's own.
    pub(crate) fn resolve(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Credentials>> {
        match self {
            CredentialsSource::Anonymous => Ok(None),
            CredentialsSource::Static(credentials) => Ok(Some(usable(credentials.clone())?)),
            CredentialsSource::Environment => {
                let set = |name: &str| variable(name).filter(|value| !value.is_empty());
                match (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY")) {
                    (Some(id), Some(secret)) => Ok(Some(usable(Credentials {
                        access_key_id: id,
                        secret_access_key: secret,
                        session_token: set("AWS_SESSION_TOKEN"),
                    })?)),
                    (id, secret) => {
                        let missing = match (id, secret) {
                            (None, None) => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set",
                            (None, _) => "AWS_ACCESS_KEY_ID is not set",
                            (_, _) => "AWS_SECRET_ACCESS_KEY is not set",
                        };
                        Err(Error::new(ErrorKind::Denied, format!("no credentials: {missing} in the environment"))
                            .with_hint("set both, or ask for unsigned requests (--no-sign-request)"))
                    }
                }
            }
        }
    }
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

    #[test]
    fn debug_shows_no_secret() {
        let credentials = Credentials::new("AKID", "hidden-secret").with_session_token("hidden-token");
        let shown = format!("{credentials:?} {:?}", CredentialsSource::Static(credentials.clone()));
        assert!(!shown.contains("hidden"), "{shown}");
    }

    #[test]
    fn absent_credentials_say_what_to_set() {
        let error = CredentialsSource::Environment
            .resolve(|name| (name == "AWS_ACCESS_KEY_ID").then(|| "AKID".to_owned()))
            .unwrap_err();
        assert!(error.to_string().contains("AWS_SECRET_ACCESS_KEY is not set"), "{error}");
    }

    #[test]
    fn a_secret_with_a_line_break_is_refused_and_not_shown() {
        let error = CredentialsSource::Static(Credentials::new("AKID", "hidden\n")).resolve(|_| None).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hidden"));
    }
}
