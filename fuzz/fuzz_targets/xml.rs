//! Every other document: read or refused, never a panic, and what is written is read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_fuzz::wire::xml::{
    CompletedUpload, check_empty, is_representable, parse_complete_multipart, parse_copy_result, parse_create_session,
    parse_delete_result, parse_error, parse_initiate_multipart, parse_list_buckets, parse_list_parts,
    parse_list_uploads, parse_list_versions, parse_tagging, write_delete_objects,
};

/// Returns whether the document begins as a web page does.
fn is_html(data: &[u8]) -> bool {
    let begins =
        |with: &[u8]| data.trim_ascii_start().get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with));
    begins(b"<html>") || begins(b"<!doctype")
}

fuzz_target!(|data: &[u8]| {
    if let Some(error) = parse_error(data) {
        assert!(!error.code.is_empty() && !error.to_string().chars().any(char::is_control));
    }
    if check_empty(data).is_ok() {
        assert!(!is_html(data), "a page was taken for success");
    }
    if let Ok(result) = parse_delete_result(data) {
        assert!(result.deleted.iter().all(|(key, _)| !key.is_empty()));
    }
    let _ = parse_list_buckets(data);
    if let Ok(id) = parse_initiate_multipart(data) {
        assert!(!id.is_empty());
    }
    if let Ok(CompletedUpload::Done { etag, .. }) = parse_complete_multipart(data) {
        assert!(!etag.is_empty() && !is_html(data));
    }
    if let Ok(copied) = parse_copy_result(data) {
        assert!(!copied.etag.is_empty() && !is_html(data));
    }
    if let Ok(page) = parse_list_parts(data) {
        assert!(page.parts.iter().all(|part| part.number > 0 && !part.etag.is_empty()));
    }
    let _ = parse_list_uploads(data);
    let _ = parse_list_versions(data);
    let _ = parse_tagging(data);
    if let Ok(session) = parse_create_session(data) {
        assert!(
            !format!("{session:?}").contains(&format!("{:?}", session.secret_access_key))
                || session.secret_access_key.len() < 8
        );
    }
    let Ok(key) = std::str::from_utf8(data) else { return };
    if key.is_empty() || !is_representable(key) {
        return;
    }
    let mut request = Vec::new();
    write_delete_objects(&mut request, [(key, None)].into_iter()).expect("a representable key");
    // The answer names the key as the request does: it must come back as it was.
    let text = String::from_utf8(request).expect("what is written is UTF-8");
    let written = text.split_once("<Key>").and_then(|(_, rest)| rest.split_once("</Key>")).expect("a key").0;
    let answer = format!(
        "<DeleteResult><Error><Key>{written}</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>"
    );
    let result = parse_delete_result(answer.as_bytes()).expect("an answer with the key as we write it");
    assert_eq!(result.failures[0].key, key);
});
