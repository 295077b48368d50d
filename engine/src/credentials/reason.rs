//! Why a provider had no credentials, in words that hold no secret.
//!
//! Providers quote what they were told: a process its output, a service its answer. Of a process only
//! its exit status is taken; of everything else the messages, up to the first brace (what follows may be a
//! request, printed field by field) and with every long opaque word left out.

use std::error::Error as _;

use aws_credential_types::provider::error::CredentialsError;

/// The longest reason that is told, in characters.
const LONGEST: usize = 400;

/// A word of letters, digits and base64 marks as long as this may be a key, a signature or a token: an
/// AWS secret has 40, an access key id 20.
const OPAQUE: usize = 32;

/// The provider's own account of what went wrong.
pub(super) fn reason(error: &CredentialsError) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        let text = match text.split_once('{') {
            Some((before, _)) => format!("{before}…"),
            None => text,
        };
        if !text.is_empty() && !said.iter().any(|earlier| earlier.contains(&text)) {
            said.push(text);
        }
        source = cause.source();
    }
    tell(&said.join(": "))
}

fn tell(text: &str) -> String {
    if let Some(status) = text.split_once("external process exited with code ").map(|(_, rest)| rest) {
        let status = status.split(". Stderr").next().unwrap_or_default();
        return format!("the credential_process failed ({}); run it by hand to see why", without_secrets(status));
    }
    if text.contains("external process") && text.contains("could not") {
        return "the credential_process printed something else than the JSON document it should".to_owned();
    }
    let mut told = without_secrets(text);
    if let Some((cut, _)) = told.char_indices().nth(LONGEST) {
        told.truncate(cut);
        told.push('…');
    }
    if told.is_empty() { "it does not say why".to_owned() } else { told }
}

/// The text on one line, every long opaque word replaced.
fn without_secrets(text: &str) -> String {
    let is_opaque = |b: char| b.is_ascii_alphanumeric() || matches!(b, '+' | '/' | '=' | '_' | '-' | '.' | '%');
    let mut told = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if is_opaque(c) {
            word.push(c);
            continue;
        }
        // Of words this long, those with a digit: paths and class names seldom have one.
        let hides = word.len() >= OPAQUE && word.bytes().any(|b| b.is_ascii_digit());
        told.push_str(if hides { "…" } else { &word });
        word.clear();
        if c.is_whitespace() || c.is_control() {
            if !told.ends_with(' ') {
                told.push(' ');
            }
        } else {
            told.push(c);
        }
    }
    told.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_quoted_by_its_exit_status_alone() {
        let said = "Error retrieving credentials: external process exited with code exit status: 3. \
                    Stderr: the token is hidden-marker";
        let told = reason(&CredentialsError::provider_error(said));
        assert_eq!(told, "the credential_process failed (exit status: 3); run it by hand to see why");
        let said = "Error retrieving credentials from external process, could not parse response: hidden-marker";
        assert!(!reason(&CredentialsError::provider_error(said)).contains("hidden"));
    }

    #[test]
    fn long_opaque_words_are_left_out_and_short_ones_stay() {
        let said =
            "ExpiredTokenException: Token wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\nexpired at 2024-01-01T00:00:00Z";
        let told = reason(&CredentialsError::provider_error(said));
        assert_eq!(told, "ExpiredTokenException: Token … expired at 2024-01-01T00:00:00Z");
        let role = "not authorized to assume arn:aws:iam::123456789012:role/reader";
        assert_eq!(reason(&CredentialsError::provider_error(role)), role);
    }

    #[test]
    fn what_is_printed_field_by_field_is_not_told() {
        let said = "failed to apply endpoint to request `Request { body: SdkBody { inner: b\"Token=hidden\" } }`";
        let told = reason(&CredentialsError::provider_error(said));
        assert_eq!(told, "failed to apply endpoint to request `Request …");
    }

    #[test]
    fn a_long_story_is_cut() {
        let told = reason(&CredentialsError::provider_error("ä ".repeat(1000)));
        assert!(told.chars().count() <= LONGEST + 1);
    }
}
