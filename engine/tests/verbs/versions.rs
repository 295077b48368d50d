//! Versions: listed, named, deleted; and the outcomes of deletes.

use super::script::{Act, Script};

fn answer(body: &str) -> Vec<Act> {
    vec![Act::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
}

#[tokio::test]
async fn versions_are_listed_page_by_page() {
    let script = Script::start(|asked| {
        if asked.target().contains("key-marker=a%2Bb") {
            return answer(
                "<ListVersionsResult><IsTruncated>false</IsTruncated><DeleteMarker><Key>c</Key>\
                 <VersionId>v1</VersionId><IsLatest>true</IsLatest></DeleteMarker></ListVersionsResult>",
            );
        }
        answer(
            "<ListVersionsResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
             <NextKeyMarker>a%2Bb</NextKeyMarker><NextVersionIdMarker>v2</NextVersionIdMarker>\
             <Version><Key>a%2Bb</Key><VersionId>v2</VersionId><IsLatest>true</IsLatest><Size>3</Size></Version>\
             </ListVersionsResult>",
        )
    });
    let mut pages = script.client().list("bucket").prefix("p").versions();
    let first = pages.next().await.unwrap().unwrap();
    assert_eq!((first.versions[0].key.as_str(), first.versions[0].size), ("a+b", 3));
    let second = pages.next().await.unwrap().unwrap();
    assert!(second.versions[0].is_delete_marker && second.versions[0].is_latest);
    assert!(pages.next().await.is_none());
    let asked = script.asked();
    assert!(asked[0].target().contains("versions=") && asked[0].target().contains("prefix=p"));
    assert!(asked[1].target().contains("version-id-marker=v2"), "{}", asked[1].target());
}

#[tokio::test]
async fn a_delete_says_what_became_of_the_object() {
    let script = Script::start(|asked| {
        let answer = if asked.target().contains("versionId") {
            "HTTP/1.1 204 N\r\nx-amz-version-id: v1\r\n\r\n"
        } else {
            "HTTP/1.1 204 N\r\nx-amz-version-id: m1\r\nx-amz-delete-marker: true\r\n\r\n"
        };
        vec![Act::Send(answer.as_bytes().to_vec())]
    });
    let client = script.client();
    let marked = client.delete("bucket", "key").await.unwrap();
    assert_eq!((marked.delete_marker, marked.version_id.as_deref()), (true, Some("m1")));
    let removed = client.delete("bucket", "key").version("v1").if_match("\"e\"").await.unwrap();
    assert_eq!((removed.delete_marker, removed.version_id.as_deref()), (false, Some("v1")));
    let asked = script.asked();
    assert_eq!(asked[1].target(), "/bucket/key?versionId=v1");
    assert_eq!(asked[1].header("if-match"), Some("\"e\""));
}

#[tokio::test]
async fn versions_are_deleted_in_batches_and_failures_name_them() {
    let script = Script::start(|asked| match asked.method() {
        "POST" => answer(
            "<DeleteResult><Deleted><Key>a</Key></Deleted>\
             <Error><Key>b</Key><VersionId>v9</VersionId><Code>AccessDenied</Code></Error></DeleteResult>",
        ),
        _ => vec![Act::Send(b"HTTP/1.1 204 N\r\n\r\n".to_vec())],
    });
    let versions = [("b", "v9"), ("odd\u{1}", "v3")].map(|(key, id)| (key.to_owned(), id.to_owned()));
    let delete = script.client().delete_many("bucket", vec!["a".to_owned()]).versions(versions).expected_owner("7");
    let failures = delete.await.unwrap();
    assert_eq!((failures[0].key.as_str(), failures[0].version_id.as_deref()), ("b", Some("v9")));
    let asked = script.asked();
    let batch = asked.iter().find(|asked| asked.method() == "POST").unwrap();
    let body = String::from_utf8(batch.body.clone()).unwrap();
    assert!(body.contains("<Object><Key>a</Key></Object><Object><Key>b</Key><VersionId>v9</VersionId></Object>"));
    let alone = asked.iter().find(|asked| asked.method() == "DELETE").unwrap();
    assert_eq!(alone.target(), "/bucket/odd%01?versionId=v3");
    assert!(asked.iter().all(|asked| asked.header("x-amz-expected-bucket-owner") == Some("7")));
}
