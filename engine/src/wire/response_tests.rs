use proptest::prelude::*;

use super::*;

fn parse(head: &str) -> Result<Option<(ResponseHead<'_>, usize)>, ResponseError> {
    parse_response(head.as_bytes(), Method::Get)
}

fn whole(head: &str) -> ResponseHead<'_> {
    let (parsed, length) = parse(head).unwrap().unwrap();
    assert_eq!(length, head.len());
    parsed
}

fn refused(headers: &str) -> ResponseError {
    parse(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n")).map(|_| ()).unwrap_err()
}

const RANGED: &str = "HTTP/1.1 206 Partial Content\r\nx-amz-id-2: eftixk72aD6Ap51TnqcoF8eFidJG9Z/2mkiDFu8yU9AS1ed4OpIszj7UDNEHGran\r\n\
    x-amz-request-id: 318BC8BC148832E5\r\nDate: Mon, 28 Oct 2009 22:32:00 GMT\r\nLast-Modified: Wed, 12 Oct 2009 17:50:00 GMT\r\n\
    ETag: \"fba9dede5f27731c9771645a39863328\"\r\nx-amz-version-id: v1\r\nAccept-Ranges: bytes\r\nContent-Range: bytes 0-9/443\r\n\
    Content-Type: text/plain\r\nContent-Length:  10 \r\nx-amz-meta-name: caf\u{e9}\r\nServer: AmazonS3\r\n\r\n";

#[test]
fn a_ranged_get_says_everything_it_should() {
    let head = whole(RANGED);
    assert_eq!(head.status, 206);
    assert!(head.keep_alive);
    assert_eq!(head.body, BodyLength::Length(10));
    assert_eq!(head.content_range, Some(ContentRange { first: 0, last: 9, total: Some(443) }));
    assert_eq!(head.etag, Some("\"fba9dede5f27731c9771645a39863328\""));
    assert_eq!(head.last_modified, Some("Wed, 12 Oct 2009 17:50:00 GMT"));
    assert_eq!(head.date, Some("Mon, 28 Oct 2009 22:32:00 GMT"));
    assert_eq!(head.content_type, Some("text/plain"));
    assert_eq!((head.request_id, head.version_id), (Some("318BC8BC148832E5"), Some("v1")));
    assert_eq!(head.headers().count(), 12);
    assert_eq!(head.header("X-Amz-Meta-Name"), Some("caf\u{e9}".as_bytes()));
    assert_eq!(head.header("absent"), None);
}

#[test]
fn a_head_cut_anywhere_is_not_complete_and_more_bytes_change_nothing() {
    for end in 0..RANGED.len() {
        assert_eq!(parse(&RANGED[..RANGED.floor_char_boundary(end)]), Ok(None), "{end}");
    }
    let with_body = format!("{RANGED}0123456789HTTP/1.1 200 OK\r\n\r\n");
    let (head, length) = parse(&with_body).unwrap().unwrap();
    assert_eq!((head, length), (whole(RANGED), RANGED.len()));
}

#[test]
fn framing_follows_status_method_and_version() {
    for (head, body, keep_alive) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", BodyLength::Length(0), true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nContent-Length: 5\r\n\r\n", BodyLength::Length(5), true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: foo, Close\r\n\r\n", BodyLength::Length(5), false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", BodyLength::Chunked, true),
        ("HTTP/1.1 200 OK\r\n\r\n", BodyLength::UntilClose, false),
        ("HTTP/1.1 204 No Content\r\n\r\n", BodyLength::Length(0), true),
        ("HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", BodyLength::Length(0), true),
        ("HTTP/1.1 100 Continue\r\n\r\n", BodyLength::Length(0), true),
        ("HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\n", BodyLength::Length(5), false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 5\r\nconnection: keep-alive\r\n\r\n", BodyLength::Length(5), true),
    ] {
        let parsed = whole(head);
        assert_eq!((parsed.body, parsed.keep_alive), (body, keep_alive), "{head}");
    }
    let (head, _) = parse_response(b"HTTP/1.1 200 OK\r\ncontent-length: 77\r\n\r\n", Method::Head).unwrap().unwrap();
    assert_eq!((head.body, head.content_length, head.keep_alive), (BodyLength::Length(0), Some(77), true));
}

#[test]
fn ambiguous_framing_is_refused() {
    for headers in [
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: 5, 5\r\n",
        "content-length: -1\r\n",
        "content-length: +1\r\n",
        "content-length: 0x10\r\n",
        "content-length: 1 0\r\n",
        "content-length:\r\n",
        "content-length: 18446744073709551616\r\n",
    ] {
        assert_eq!(refused(headers), ResponseError::ContentLength, "{headers}");
    }
    for headers in [
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding: identity\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
    ] {
        assert_eq!(refused(headers), ResponseError::TransferEncoding, "{headers}");
    }
    assert_eq!(
        parse("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap_err(),
        ResponseError::TransferEncoding
    );
}

#[test]
fn content_ranges_are_checked() {
    let ranged = |value: &str| parse_content_range(value.as_bytes());
    assert_eq!(ranged("bytes 5-5/*"), Some(Ok(ContentRange { first: 5, last: 5, total: None })));
    assert_eq!(ranged("bytes */0"), Some(Err(0)));
    for broken in [
        "",
        "bytes",
        "bytes 0-9",
        "bytes 9-0/10",
        "bytes 0-10/10",
        "bytes */*",
        "bytes -9/10",
        "bytes 0-/10",
        "items 0-9/10",
        "bytes 0-9/10 ",
        "bytes=0-9/10",
        "bytes 0-9,20-29/30",
        "bytes 0-9/18446744073709551616",
    ] {
        assert_eq!(ranged(broken), None, "{broken}");
    }
    assert_eq!(refused("content-range: bytes 1-2/3\r\ncontent-range: bytes 1-2/3\r\n"), ResponseError::ContentRange);
    let head = "HTTP/1.1 416 Range\r\ncontent-range: bytes */0\r\ncontent-length: 0\r\n\r\n";
    assert_eq!((whole(head).unsatisfied_range, whole(head).content_range), (Some(0), None));
    let head = "HTTP/1.1 206 Part\r\ncontent-range: bytes 0--1/0\r\ncontent-length: 0\r\n\r\n";
    assert_eq!((whole(head).unsatisfied_range, whole(head).content_range), (Some(0), None));
}

#[test]
fn a_part_is_told_from_a_whole_object() {
    let is_part = |status: u16, range: &str| {
        let head = format!("HTTP/1.1 {status} Said\r\n{range}content-length: 4\r\n\r\n");
        whole(&head).is_part()
    };
    assert!(is_part(206, "content-range: bytes 2-5/10\r\n"));
    assert!(is_part(206, "content-range: bytes 0-3/4\r\n"));
    assert!(is_part(206, ""));
    assert!(is_part(200, "content-range: bytes 2-5/10\r\n"));
    assert!(is_part(200, "content-range: bytes 0-3/10\r\n"));
    assert!(is_part(200, "content-range: bytes 0-3/*\r\n"));
    assert!(!is_part(200, "content-range: bytes 0-3/4\r\n"));
    assert!(!is_part(200, ""));
}

#[test]
fn what_is_no_response_is_refused_at_once() {
    for junk in [
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\0\0\u{12}\u{4}\0\0\0",
        "HTTP/2 200\r\n\r\n",
        "\u{15}\u{3}\u{1}",
        "SSH-2.0-x\r\n",
    ] {
        assert!(matches!(parse(junk), Err(ResponseError::Syntax(_))), "{junk:?}");
    }
    assert!(matches!(refused("a: b\r\n folded\r\n"), ResponseError::Syntax(_)));
    assert!(matches!(refused("a : b\r\n"), ResponseError::Syntax(_)));
    assert!(matches!(refused("a: b\0\r\n"), ResponseError::Syntax(_)));
    assert_eq!(parse("HTTP/1.1 101 Switching Protocols\r\n\r\n").unwrap_err(), ResponseError::Status(101));
    assert_eq!(parse("HTTP/1.1 000 OK\r\n\r\n").unwrap_err(), ResponseError::Status(0));
}

#[test]
fn a_head_has_limits() {
    let many: String = (0..=MAX_HEADERS).map(|n| format!("a{n}: b\r\n")).collect();
    assert_eq!(refused(&many), ResponseError::TooManyHeaders);
    let long = format!("a: {}\r\n", "b".repeat(MAX_HEAD));
    assert_eq!(refused(&long), ResponseError::TooLong);
    let endless = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(MAX_HEAD));
    assert_eq!(parse(&endless[..MAX_HEAD - 1]), Ok(None));
    assert_eq!(parse(&endless[..MAX_HEAD]), Err(ResponseError::TooLong));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = parse_response(&bytes, Method::Get);
        let mut framed = b"HTTP/1.1 200 OK\r\n".to_vec();
        framed.extend_from_slice(&bytes);
        framed.extend_from_slice(b"\r\n\r\n");
        if let Ok(Some((head, length))) = parse_response(&framed, Method::Get) {
            prop_assert!(length <= framed.len());
            let _ = head.headers().count();
        }
    }

    /// The iterator finds the headers that httparse found.
    #[test]
    fn headers_are_found_again(headers in prop::collection::vec(("[A-Za-z-]{1,20}", "[ -~\u{80}-\u{ff}]{0,30}"), 0..20), lead in 0usize..3) {
        prop_assume!(!headers.iter().any(|(name, _)| ["content-length", "content-range", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own))));
        let mut text = "\r\n".repeat(lead);
        text.push_str("HTTP/1.1 200 OK\r\n");
        for (name, value) in &headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        let (head, length) = parse(&text).unwrap().unwrap();
        prop_assert_eq!(length, text.len());
        let found: Vec<_> = head.headers().map(|(name, value)| (name.to_owned(), value.to_vec())).collect();
        let sent: Vec<_> = headers.iter().map(|(name, value)| (name.clone(), value.trim_ascii().as_bytes().to_vec())).collect();
        prop_assert_eq!(found, sent);
    }
}
