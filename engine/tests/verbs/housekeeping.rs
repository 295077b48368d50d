//! Uploads that were left, lists of buckets, and presigned URLs.

use std::io::{Read, Write};
use std::time::Duration;

use wirespeed::{Client, ErrorKind, Method};

use super::script::{Act, Script};
use super::{AWKWARD, start};

fn answer(body: &str) -> Vec<Act> {
    vec![Act::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
}

#[tokio::test]
async fn uploads_that_were_left_are_found_and_aborted() {
    let script = Script::start(|asked| match asked.method() {
        "DELETE" => vec![Act::Send(b"HTTP/1.1 204 N\r\n\r\n".to_vec())],
        _ if asked.target().contains("upload-id-marker=u%2F1") => answer(
            "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>\
             <Upload><Key>b</Key><UploadId>u2</UploadId></Upload></ListMultipartUploadsResult>",
        ),
        _ => answer(
            "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker>\
             <NextUploadIdMarker>u/1</NextUploadIdMarker>\
             <Upload><Key>a</Key><UploadId>u/1</UploadId></Upload></ListMultipartUploadsResult>",
        ),
    });
    let client = script.client();
    let mut pages = client.list_uploads("bucket").prefix("p").request_payer().pages();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        for upload in page.unwrap().uploads {
            client.abort_upload("bucket", &upload.key, &upload.upload_id).await.unwrap();
            found.push(upload.key);
        }
    }
    assert_eq!(found, ["a", "b"]);
    let asked = script.asked();
    assert!(asked.iter().any(|asked| asked.method() == "DELETE" && asked.target() == "/bucket/a?uploadId=u%2F1"));
}

#[tokio::test]
async fn an_upload_on_a_real_server_is_listed_until_it_is_aborted() {
    let (origin, client) = start().await;
    let (mut feed, source) = tokio::io::duplex(1 << 20);
    let uploading = tokio::spawn({
        let client = client.clone();
        async move { client.put("bucket", "left").reader(source).await }
    });
    let content = super::bytes(20 << 20);
    tokio::io::copy(&mut &content[..], &mut feed).await.unwrap();
    let upload = loop {
        let page = client.list_uploads("bucket").pages().next().await.unwrap().unwrap();
        if let Some(upload) = page.uploads.into_iter().next() {
            break upload;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(upload.key, "left");
    client.abort_upload("bucket", &upload.key, &upload.upload_id).await.unwrap();
    assert_eq!(origin.open_uploads("bucket"), []);
    let gone = client.abort_upload("bucket", &upload.key, &upload.upload_id).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    drop(feed);
    assert!(uploading.await.unwrap().is_err());
}

#[tokio::test]
async fn the_parts_of_an_upload_are_listed_with_what_is_needed_to_complete_it() {
    let (_origin, client) = start().await;
    let upload = client.raw(Method::Post, "bucket", "key").query("uploads", "").send().await.unwrap();
    let upload = String::from_utf8(upload.body.to_vec()).unwrap();
    let id = upload.split_once("<UploadId>").and_then(|(_, rest)| rest.split_once("</UploadId>")).unwrap().0;
    let mut etags = Vec::new();
    for number in [1_u64, 2, 4] {
        let put =
            client.raw(Method::Put, "bucket", "key").query("partNumber", number.to_string()).query("uploadId", id);
        etags.push(put.body(super::bytes(number)).send().await.unwrap().header("etag").unwrap().to_owned());
    }
    let mut pages = client.list_parts("bucket", "key", id).page_size(2).pages();
    let (mut found, mut count) = (Vec::new(), 0);
    while let Some(page) = pages.next().await {
        found.extend(page.unwrap().parts.into_iter().map(|part| (part.number, part.size, part.etag)));
        count += 1;
    }
    let expected: Vec<_> = [1, 2, 4].into_iter().zip(etags).map(|(n, etag)| (n as u32, n, etag)).collect();
    assert_eq!((found, count), (expected, 2));

    client.abort_upload("bucket", "key", id).await.unwrap();
    let gone = client.list_parts("bucket", "key", id).pages().next().await.unwrap().unwrap_err();
    assert_eq!((gone.kind(), gone.key()), (ErrorKind::NotFound, Some("key")));
}

#[tokio::test]
async fn buckets_are_listed_by_prefix_and_page_with_servers_that_know_neither() {
    let (_origin, client) = start().await;
    for bucket in ["logs-1", "logs-2", "zoo"] {
        client.create_bucket(bucket).await.unwrap();
    }
    let names = |buckets: Vec<wirespeed::ListedBucket>| buckets.into_iter().map(|b| b.name).collect::<Vec<_>>();
    assert_eq!(names(client.list_buckets().prefix("logs-").page_size(1).await.unwrap()), ["logs-1", "logs-2"]);

    let script = Script::start(|asked| {
        let token = if asked.target().contains("continuation-token=t1") { "" } else { "t1" };
        answer(&format!(
            "<ListAllMyBucketsResult><Buckets><Bucket><Name>b{}</Name></Bucket></Buckets>\
             <ContinuationToken>{token}</ContinuationToken></ListAllMyBucketsResult>",
            asked.index
        ))
    });
    assert_eq!(names(script.client().list_buckets().page_size(1).await.unwrap()), ["b0", "b1"]);
    assert!(script.asked()[1].target().contains("max-buckets=1"));
}

/// Sends one request as anybody could who has the URL; status and body.
fn send(method: &str, url: &str, headers: &str, body: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, target) = rest.split_at(rest.find('/').unwrap());
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    write!(stream, "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{headers}{length}Connection: close\r\n\r\n{body}")
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    (status, body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_presigned_url_does_what_it_says_and_nothing_else() {
    let (_origin, client) = start().await;
    for key in AWKWARD {
        let put = client.presign("bucket", key).content_type("text/plain").put().await.unwrap();
        assert_eq!(send("PUT", &put, "Content-Type: text/plain\r\n", "content").0, 200, "{put}");
        assert_eq!(send("PUT", &put, "Content-Type: text/html\r\n", "content").0, 403, "another content type");
        let get = client.presign("bucket", key).expires_in(Duration::from_secs(60)).get().await.unwrap();
        assert_eq!(send("GET", &get, "", ""), (200, "content".to_owned()), "{get}");
        assert_eq!(send("DELETE", &get, "", "").0, 403, "another method");
        assert_eq!(send("HEAD", &client.presign("bucket", key).head().await.unwrap(), "", "").0, 200);
        assert_eq!(send("DELETE", &client.presign("bucket", key).delete().await.unwrap(), "", "").0, 204);
        assert_eq!(send("GET", &get, "", "").0, 404, "it is gone");
        assert!(!format!("{put}{get}").contains("secret"), "{put} {get}");
    }
}

#[tokio::test]
async fn a_url_that_could_not_work_is_refused() {
    let (origin, client) = start().await;
    for time in [Duration::ZERO, Duration::from_millis(999), Duration::from_secs(7 * 86_400 + 1)] {
        let refused = client.presign("bucket", "key").expires_in(time).get().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{time:?}");
    }
    let anonymous = Client::builder().endpoint_url(origin.endpoint()).region("us-east-1").anonymous().build().unwrap();
    let refused = anonymous.presign("bucket", "key").get().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Config);
    assert!(refused.to_string().contains("no credentials"), "{refused}");
    let url = client.presign("bucket", "key").version("v 1").response_content_type("a/b").get().await.unwrap();
    assert!(url.contains("versionId=v%201") && url.contains("response-content-type=a%2Fb"), "{url}");
}

#[tokio::test]
async fn keys_that_a_passing_fault_kept_are_deleted_after_all() {
    let script = Script::start(|asked| match asked.index {
        0 => answer(
            "<DeleteResult><Error><Key>a</Key><Code>InternalError</Code></Error>\
             <Error><Key>b</Key><Code>AccessDenied</Code></Error>\
             <Error><Key>c</Key><VersionId>v</VersionId><Code>SlowDown</Code></Error>\
             <Deleted><Key>d</Key></Deleted></DeleteResult>",
        ),
        1 => answer(
            "<DeleteResult><Error><Key>a</Key><Code>ServiceUnavailable</Code></Error>\
             <Deleted><Key>c</Key><VersionId>v</VersionId></Deleted></DeleteResult>",
        ),
        _ => answer("<DeleteResult><Deleted><Key>a</Key></Deleted></DeleteResult>"),
    });
    let keys = ["a", "b", "d"].map(str::to_owned).to_vec();
    let versions = [("c".to_owned(), "v".to_owned())];
    let failures = script.client().delete_many("bucket", keys).versions(versions).await.unwrap();
    assert_eq!(failures.iter().map(|failure| &*failure.key).collect::<Vec<_>>(), ["b"]);
    let bodies: Vec<_> = script.asked().into_iter().map(|asked| String::from_utf8(asked.body).unwrap()).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies[1].contains("<Key>a<") && bodies[1].contains("<VersionId>v<") && !bodies[1].contains("<Key>d<"));
    assert!(bodies[2].contains("<Key>a<") && !bodies[2].contains("<Key>c<"));

    let script =
        Script::start(|_| answer("<DeleteResult><Error><Key>a</Key><Code>InternalError</Code></Error></DeleteResult>"));
    let failures = script.client().delete_many("bucket", vec!["a".to_owned()]).await.unwrap();
    assert_eq!((failures.len(), script.asked().len()), (1, 3), "the policy bounds the attempts");
}
