//! The answer to CreateSession: credentials for one directory bucket, good for some minutes.

use std::fmt;

use jiff::Timestamp;

use super::list::timestamp;
use super::reader::{Cursor, XmlError};

/// Credentials for one directory bucket.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionCredentials {
    /// The access key's id.
    pub access_key_id: String,
    /// The secret access key.
    pub secret_access_key: String,
    /// What goes into `x-amz-s3session-token`.
    pub session_token: String,
    /// When they stop being accepted; `None` also for a time that can't be read.
    pub expiration: Option<Timestamp>,
}

impl fmt::Debug for SessionCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCredentials").field("expiration", &self.expiration).finish_non_exhaustive()
    }
}

/// Reads the answer to `CreateSession`.
///
/// # Errors
/// [`XmlError`] when a key, secret or token is missing.
pub fn parse_create_session(xml: &[u8]) -> Result<SessionCredentials, XmlError> {
    let mut cursor = Cursor::open(xml, "CreateSessionResult")?;
    let mut session = None;
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Credentials" => session = Some(read_credentials(&mut cursor)?),
            _ => cursor.skip()?,
        }
    }
    cursor.finish()?;
    session.ok_or(XmlError::Missing("Credentials"))
}

fn read_credentials(cursor: &mut Cursor<'_>) -> Result<SessionCredentials, XmlError> {
    let (mut id, mut secret, mut token, mut expiration) = (None, None, None, None);
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "AccessKeyId" => id = Some(cursor.text()?),
            "SecretAccessKey" => secret = Some(cursor.text()?),
            "SessionToken" => token = Some(cursor.text()?),
            "Expiration" => expiration = timestamp(cursor.short_text()?),
            _ => cursor.skip()?,
        }
    }
    let present = |text: Option<String>, name| text.filter(|text| !text.is_empty()).ok_or(XmlError::Missing(name));
    Ok(SessionCredentials {
        access_key_id: present(id, "AccessKeyId")?,
        secret_access_key: present(secret, "SecretAccessKey")?,
        session_token: present(token, "SessionToken")?,
        expiration,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_and_not_shown() {
        let xml = br#"<?xml version="1.0" encoding="UTF-8"?>
<CreateSessionResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Credentials><SessionToken>hidden-t</SessionToken>
<SecretAccessKey>hidden-s</SecretAccessKey><AccessKeyId>hidden-k</AccessKeyId><Expiration>2024-01-29T18:53:01Z</Expiration>
</Credentials></CreateSessionResult>"#;
        let session = parse_create_session(xml).unwrap();
        assert_eq!(
            (&*session.access_key_id, &*session.secret_access_key, &*session.session_token),
            ("hidden-k", "hidden-s", "hidden-t")
        );
        assert_eq!(session.expiration.unwrap().to_string(), "2024-01-29T18:53:01Z");
        assert!(!format!("{session:?}").contains("hidden"));
    }

    #[test]
    fn a_session_without_its_token_is_none() {
        let xml = b"<CreateSessionResult><Credentials><AccessKeyId>k</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
            </Credentials></CreateSessionResult>";
        assert_eq!(parse_create_session(xml), Err(XmlError::Missing("SessionToken")));
        assert_eq!(parse_create_session(b"<CreateSessionResult/>"), Err(XmlError::Missing("Credentials")));
    }
}
