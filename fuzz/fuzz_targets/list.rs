//! Listings: no key that the document does not hold, and no page that is shorter than it is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_fuzz::wire::xml::parse_list_objects_v2;

/// How often `needle` stands in `text`.
fn count(text: &str, needle: &str) -> usize {
    text.matches(needle).count()
}

/// Whether the text stands in the document as it is, or may be written in it in another way: with
/// references, encoded, or in pieces.
fn stands_in(document: &str, text: &str) -> bool {
    document.contains(text)
        || document.contains(['&', '%', '+', '\r'])
        || document.contains("<!")
        || document.contains("<?")
}

fuzz_target!(|data: &[u8]| {
    let Ok(page) = parse_list_objects_v2(data) else { return };
    let document = std::str::from_utf8(data).expect("a document that was read is UTF-8");
    for object in &page.objects {
        assert!(!object.key.is_empty());
        assert!(stands_in(document, &object.key), "{:?} came from nowhere", object.key);
        assert!(object.etag.as_deref().is_none_or(|etag| stands_in(document, etag)));
    }
    for prefix in &page.prefixes {
        assert!(stands_in(document, prefix), "{prefix:?} came from nowhere");
    }
    // No object without an element of its own, and none left out of a document without anything odd.
    assert!(page.objects.len() <= count(document, "Contents"));
    assert!(!page.is_truncated || page.next_continuation_token.is_some());
    // A document that is cut is an error, never a shorter listing.
    let end = document.trim_end().len();
    for cut in [end / 2, end.saturating_sub(1)] {
        assert!(parse_list_objects_v2(&data[..cut]).is_err(), "a cut document was taken for a whole one");
    }
});
