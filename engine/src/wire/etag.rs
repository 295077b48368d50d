//! Entity tags: which of them can pin a version of an object.

/// Whether `etag` is a strong, quoted entity tag that `If-Match` can carry back byte for byte.
///
/// Weak tags (`W/"…"`), tags without quotes and tags with bytes that a header can't carry are not: reads of
/// such objects are pinned by version id or by comparing `Last-Modified` and size.
pub fn is_strong(etag: &str) -> bool {
    let Some(opaque) = etag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return false;
    };
    // RFC 9110, section 8.8.3: etagc is any visible character but the double quote.
    opaque.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')
}

#[cfg(test)]
mod tests {
    use super::is_strong;

    #[test]
    fn only_quoted_and_unweakened_tags_are_strong() {
        for strong in [r#""d41d8cd98f00b204e9800998ecf8427e""#, r#""abc-12""#, r#""""#] {
            assert!(is_strong(strong), "{strong}");
        }
        for not in ["", "\"", "abc", r#"W/"abc""#, r#""abc"#, r#"abc""#, r#""a"b""#, "\"a b\"", "\"é\""] {
            assert!(!is_strong(not), "{not}");
        }
    }
}
