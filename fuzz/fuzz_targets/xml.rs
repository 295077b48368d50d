//! Every other document: read or refused, never a panic, and what is written is read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_fuzz::wire::xml::{
    is_representable, parse_complete_multipart, parse_copy_object, parse_copy_part, parse_create_session,
    parse_delete_result, parse_error, parse_initiate_multipart, parse_list_buckets, parse_list_parts,
    parse_list_uploads, parse_list_versions, parse_tagging, write_delete_objects,
};

fuzz_target!(|data: &[u8]| {
    let _ = parse_error(data);
    let _ = parse_delete_result(data);
    let _ = parse_list_buckets(data);
    if let Ok(id) = parse_initiate_multipart(data) {
        assert!(!id.is_empty());
    }
    let _ = parse_complete_multipart(data);
    let _ = parse_copy_object(data);
    let _ = parse_copy_part(data);
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
    write_delete_objects(&mut request, [(key, None)].into_iter(), true).expect("a representable key");
    // The answer names the key as the request does: it must come back as it was.
    let text = String::from_utf8(request).expect("what is written is UTF-8");
    let written = text.split_once("<Key>").and_then(|(_, rest)| rest.split_once("</Key>")).expect("a key").0;
    let answer = format!(
        "<DeleteResult><Error><Key>{written}</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>"
    );
    let failures = parse_delete_result(answer.as_bytes()).expect("an answer with the key as we write it");
    assert_eq!(failures[0].key, key);
});
