//! The checksum that a head tells: a value of the head's own, of a kind that was named.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_fuzz::wire::checksum::Checksum;
use wirespeed_fuzz::wire::request::Method;
use wirespeed_fuzz::wire::response::parse_response;

fuzz_target!(|data: &[u8]| {
    let mut text = b"HTTP/1.1 200 OK\r\n".to_vec();
    text.extend_from_slice(data);
    text.extend_from_slice(b"\r\n\r\n");
    let Ok(Some((head, _))) = parse_response(&text, Method::Get) else { return };
    let Some(checksum) = Checksum::in_head(&head) else { return };
    let header = head.header(checksum.algorithm.header()).expect("a checksum has its header");
    assert!(
        head.headers().any(|(name, value)| name.eq_ignore_ascii_case(checksum.algorithm.header())
            && value == checksum.value.as_bytes()),
        "{checksum:?} is not {header:?}"
    );
    // What is composite never passes for the sum of the bytes.
    if checksum.value.contains('-') {
        assert!(checksum.composite);
    }
});
