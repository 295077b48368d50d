//! Response heads: what comes first never contradicts what comes with more bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_fuzz::wire::request::Method;
use wirespeed_fuzz::wire::response::{BodyLength, parse_response};

fuzz_target!(|data: &[u8]| {
    for method in [Method::Get, Method::Head] {
        let whole = parse_response(data, method);
        if let Ok(Some((head, length))) = &whole {
            assert!(*length <= data.len());
            assert!((100..=999).contains(&head.status) && head.status != 101);
            if method == Method::Head {
                assert_eq!(head.body, BodyLength::Length(0));
            }
            if let BodyLength::Length(body) = head.body {
                assert!(body == 0 || head.content_length == Some(body));
            }
            if let Some(range) = head.content_range {
                assert!(range.first <= range.last);
                assert!(range.total.is_none_or(|total| range.last < total));
            }
            // Every value stands in the input.
            for (name, value) in head.headers() {
                assert!(name.is_empty() || data.windows(name.len()).any(|seen| seen == name.as_bytes()));
                assert!(value.is_empty() || data.windows(value.len()).any(|seen| seen == value));
            }
            // What follows the head changes nothing of it.
            let (again, same) = parse_response(&data[..*length], method).unwrap().unwrap();
            assert_eq!(same, *length);
            assert_eq!(format!("{again:?}"), format!("{head:?}"));
            // What is cut off is incomplete, and no other answer.
            for cut in 0..*length {
                assert!(matches!(parse_response(&data[..cut], method), Ok(None)), "{cut} bytes were enough");
            }
        }
        if let Ok(None) = whole {
            for cut in 0..data.len() {
                assert!(matches!(parse_response(&data[..cut], method), Ok(None)), "{cut} bytes said more");
            }
        }
    }
});
