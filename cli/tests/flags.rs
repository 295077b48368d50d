//! What the flags make of a request, as a server sees it; and that no key of the customer's is ever shown.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod command;
mod server;

use std::fs;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::command::{process, text, wirespeed};
use crate::server::{Answer, Server};

/// Thirty-two bytes, in base64.
const KEY: &str = "dGhlLWN1c3RvbWVycy1rZXktdGhhdC1zaG93cy1ub3Q=";

fn run(server: &Server, arguments: &[&str]) -> Output {
    wirespeed().args(["--endpoint-url", &server.endpoint, "--set", "max_attempts=1"]).args(arguments).output().unwrap()
}

fn done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn each_flag_is_a_header() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.txt");
    fs::write(&file, "content").unwrap();
    let server = Server::start(|_| Some(Answer::new(200, "")));
    let flags = [
        "--content-encoding=gzip",
        "--content-disposition=inline",
        "--content-language=de",
        "--cache-control=no-cache",
        "--expires=2015-10-21T07:28:00Z",
        "--website-redirect=/other",
        "--metadata=Name=v 1,b=2",
        "--tagging=k=v&k%262=w",
        "--storage-class=STANDARD_IA",
        "--acl=bucket-owner-full-control",
        "--sse=aws:kms",
        "--sse-kms-key-id=alias/mine",
        "--request-payer",
        "--expected-bucket-owner=123456789012",
        "--if-none-match",
    ];
    let mut arguments = vec!["cp", file.to_str().unwrap(), "s3://bucket/k"];
    arguments.extend(flags);
    done(&run(&server, &arguments));
    let head = server.head("PUT /bucket/k").to_ascii_lowercase();
    for header in [
        "content-type: text/plain",
        "content-encoding: gzip",
        "content-disposition: inline",
        "content-language: de",
        "cache-control: no-cache",
        "expires: wed, 21 oct 2015 07:28:00 gmt",
        "x-amz-website-redirect-location: /other",
        "x-amz-meta-name: v 1",
        "x-amz-meta-b: 2",
        "x-amz-tagging: k=v&k%262=w",
        "x-amz-storage-class: standard_ia",
        "x-amz-acl: bucket-owner-full-control",
        "x-amz-server-side-encryption: aws:kms",
        "x-amz-server-side-encryption-aws-kms-key-id: alias/mine",
        "x-amz-request-payer: requester",
        "x-amz-expected-bucket-owner: 123456789012",
        "if-none-match: *",
    ] {
        assert!(head.contains(&format!("\r\n{header}\r\n")), "no {header} in {head}");
    }
}

#[test]
fn a_key_of_the_customers_travels_and_is_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (file, key) = (folder.path().join("f"), folder.path().join("key"));
    fs::write(&file, "content").unwrap();
    fs::write(&key, "the-customers-key-that-shows-not").unwrap();
    let (file, from_file) = (file.to_str().unwrap(), format!("fileb://{}", key.display()));
    let target = folder.path().join("target");
    let server = Server::start(|asked| {
        Some(match asked.line.split(' ').next() {
            Some("GET") => Answer::part(b"content", asked),
            Some("PUT") if asked.head.contains("copy-source") => {
                Answer::new(200, "<CopyObjectResult><ETag>\"e\"</ETag></CopyObjectResult>")
            }
            _ => Answer::new(200, ""),
        })
    });
    for (arguments, request, header) in [
        (vec!["cp", file, "s3://bucket/up"], "PUT /bucket/up", "x-amz-server-side-encryption-customer-key: "),
        (vec!["cat", "s3://bucket/down"], "GET /bucket/down", "x-amz-server-side-encryption-customer-key: "),
        (
            vec!["cp", "s3://bucket/file", target.to_str().unwrap()],
            "GET /bucket/file",
            "x-amz-server-side-encryption-customer-key: ",
        ),
        (vec!["stat", "s3://bucket/stat"], "HEAD /bucket/stat", "x-amz-server-side-encryption-customer-key: "),
    ] {
        for given in [KEY, &from_file] {
            let output =
                run(&server, &[&["-vv"], &arguments[..], &["--sse-c", "AES256", "--sse-c-key", given]].concat());
            done(&output);
            let head = server.head(request).to_ascii_lowercase();
            assert!(head.contains(&format!("{header}{}", KEY.to_ascii_lowercase())), "{arguments:?}: {head}");
            let shown = text(&output.stderr) + &text(&output.stdout);
            assert!(!shown.contains(KEY) && !shown.contains("shows-not"), "{arguments:?}: {shown}");
        }
    }
    let keys =
        ["--sse-c", "AES256", "--sse-c-key", KEY, "--sse-c-copy-source", "AES256", "--sse-c-copy-source-key", KEY];
    let output = run(&server, &[&["-vv", "cp", "s3://bucket/a", "s3://bucket/copied"], &keys[..]].concat());
    done(&output);
    assert!(server.head("HEAD /bucket/a").contains(KEY), "the source's key reads its size");
    let head = server.head("PUT /bucket/copied").to_ascii_lowercase();
    assert!(head.contains("x-amz-copy-source-server-side-encryption-customer-key: "), "{head}");
    assert!(!text(&output.stderr).contains(KEY));
}

#[test]
fn versions_are_listed_read_and_deleted() {
    let server = Server::start(|asked| {
        let versions = "<ListVersionsResult><IsTruncated>false</IsTruncated>\
            <DeleteMarker><Key>k</Key><VersionId>v3</VersionId><IsLatest>true</IsLatest></DeleteMarker>\
            <Version><Key>k</Key><VersionId>v2</VersionId><IsLatest>false</IsLatest><Size>7</Size></Version>\
            <Version><Key>k</Key><VersionId>v1</VersionId><IsLatest>false</IsLatest><Size>5</Size></Version>\
            <Version><Key>k2</Key><VersionId>v9</VersionId><IsLatest>true</IsLatest><Size>1</Size></Version>\
            </ListVersionsResult>";
        Some(match asked.line.as_str() {
            line if line.contains("versions=") => Answer::new(200, versions),
            line if line.starts_with("GET ") => Answer::part(b"content", asked),
            line if line.starts_with("POST ") => {
                let deleted =
                    |(key, version)| format!("<Deleted><Key>{key}</Key><VersionId>{version}</VersionId></Deleted>");
                let all = [("k", "v1"), ("k", "v2"), ("k", "v3"), ("k2", "v9")].map(deleted).concat();
                Answer::new(200, format!("<DeleteResult>{all}</DeleteResult>"))
            }
            _ => Answer::new(200, ""),
        })
    });
    let listed = text(&run(&server, &["ls", "--all-versions", "s3://bucket/k"]).stdout);
    assert!(listed.lines().next().unwrap().contains("DELETED v3 k"), "{listed}");
    assert!(listed.lines().nth(1).unwrap().ends_with(" 7 v2 k"), "{listed}");
    let rows = text(&run(&server, &["--json", "ls", "--all-versions", "s3://bucket/k"]).stdout);
    let row: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!((&row["is_latest"], &row["is_delete_marker"]), (&true.into(), &true.into()));

    done(&run(&server, &["cat", "--version-id", "v2", "s3://bucket/k"]));
    assert_eq!(server.count("GET /bucket/k?versionId=v2"), 1, "{:?}", server.lines());
    done(&run(&server, &["stat", "--version-id", "v2", "s3://bucket/s"]));
    assert_eq!(server.count("HEAD /bucket/s?versionId=v2"), 1);
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/k");
    done(&run(&server, &["cp", "--version-id", "v2", "s3://bucket/k", target.to_str().unwrap()]));
    assert_eq!(fs::read(&target).unwrap(), b"content");
    done(&run(&server, &["rm", "--version-id", "v1", "s3://bucket/k"]));
    assert_eq!(server.count("DELETE /bucket/k?versionId=v1"), 1);

    let told = run(&server, &["rm", "--all-versions", "--dryrun", "s3://bucket/k"]);
    let told = text(&told.stdout);
    let expected = ["v3", "v2", "v1"].map(|id| format!("(dryrun) delete: s3://bucket/k (version {id})"));
    assert_eq!(told.lines().collect::<Vec<_>>(), expected, "the key alone, not what begins with it");
    assert_eq!(server.count("POST "), 0);
    let deleted = run(&server, &["rm", "--all-versions", "--recursive", "s3://bucket"]);
    done(&deleted);
    assert_eq!(text(&deleted.stdout).lines().count(), 4);
    assert_eq!(server.count("POST "), 1, "{:?}", server.lines());
}

#[test]
fn an_upload_that_cannot_be_aborted_is_named_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    fs::write(&file, vec![7; 24 << 20]).unwrap();
    let file = file.to_str().unwrap();
    // The server starts an upload and then says nothing more.
    let server = Server::start(|asked| {
        asked.line.starts_with("POST ").then(|| {
            Answer::new(200, "<InitiateMultipartUploadResult><UploadId>u-1</UploadId></InitiateMultipartUploadResult>")
        })
    });
    let child = process()
        .args(["--endpoint-url", &server.endpoint, "--part-size", "8MiB", "cp", file, "s3://bucket/a key"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    server.wait_for("PUT /bucket/a%20key?");
    let signalled = Instant::now();
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let (took, stderr) = (signalled.elapsed(), text(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(server.count("DELETE /bucket/a%20key?uploadId=u-1") > 0, "it was tried: {:?}", server.lines());
    assert!(stderr.contains("wirespeed uploads abort 's3://bucket/a key' --upload-id u-1"), "{stderr}");
}

#[test]
fn an_upload_that_fails_and_cannot_be_aborted_is_named_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    fs::write(&file, vec![7; 24 << 20]).unwrap();
    let server = Server::start(|asked| {
        Some(match asked.line.starts_with("POST ") {
            true => Answer::new(
                200,
                "<InitiateMultipartUploadResult><UploadId>u-1</UploadId></InitiateMultipartUploadResult>",
            ),
            false => Answer::refusal(403, "AccessDenied"),
        })
    });
    let output = run(&server, &["--json", "cp", file.to_str().unwrap(), "s3://bucket/k"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("wirespeed uploads abort s3://bucket/k --upload-id u-1"), "{stderr}");
    let error: serde_json::Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert_eq!(error["error"]["upload_id"], "u-1");
}

#[test]
fn a_key_in_the_place_of_the_algorithm_is_not_quoted() {
    let server = Server::start(|_| Some(Answer::new(200, "")));
    for flags in [["--sse-c", KEY, "--sse-c-key", KEY], ["--sse-c-copy-source", KEY, "--sse-c-copy-source-key", KEY]] {
        let output = run(&server, &[&["cp", "s3://bucket/a", "s3://bucket/b"], &flags[..]].concat());
        let shown = text(&output.stderr) + &text(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{shown}");
        assert!(shown.contains("AES256") && !shown.contains(KEY), "{shown}");
    }
    let output = run(&server, &["cat", "s3://bucket/a", "--sse-c", KEY]);
    assert!(!text(&output.stderr).contains(KEY), "{}", text(&output.stderr));
    assert!(server.lines().is_empty());
}

#[test]
fn what_kms_is_told_are_headers_and_needs_kms() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    fs::write(&file, "content").unwrap();
    let server = Server::start(|_| Some(Answer::new(200, "")));
    let flags = ["--sse-kms-encryption-context", "{\"a\":\"b\"}", "--bucket-key-enabled", "--if-match", "\"e\""];
    let cp = ["cp", file.to_str().unwrap(), "s3://bucket/k"];
    done(&run(&server, &[&cp, &flags[..], &["--sse", "aws:kms"]].concat()));
    let head = server.head("PUT /bucket/k").to_ascii_lowercase();
    for header in [
        "x-amz-server-side-encryption-context: eyjhijoiyij9",
        "x-amz-server-side-encryption-bucket-key-enabled: true",
        "if-match: \"e\"",
    ] {
        assert!(head.contains(&format!("\r\n{header}\r\n")), "no {header} in {head}");
    }
    let output = run(&server, &[&cp, &flags[..], &["--sse", "AES256"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let output = run(&server, &[&cp[..], &["--if-none-match=\"e\""]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn a_download_can_be_held_against_an_etag() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/target");
    let server = Server::start(|asked| {
        let is_known = asked.head.to_ascii_lowercase().contains("if-none-match: \"e\"");
        Some(if is_known { Answer::new(304, "") } else { Answer::part(b"content", asked) })
    });
    let target = target.to_str().unwrap();
    for (verb, number, target) in [("cp", 1, Some(target)), ("cat", 2, None), ("cp", 3, Some("-"))] {
        let read = |key: &str, flag: &str| {
            let uri = format!("s3://bucket/{key}{number}");
            let arguments: Vec<&str> = [verb, &uri].into_iter().chain(target).chain([flag]).collect();
            run(&server, &arguments)
        };
        let output = read("known", "--if-none-match=\"e\"");
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        done(&read("held", "--if-match=\"e\""));
        let head = server.head(&format!("GET /bucket/held{number}")).to_ascii_lowercase();
        assert!(head.contains("\r\nif-match: \"e\"\r\n"), "{head}");
    }
    let output = run(&server, &["cp", "-r", "s3://bucket/k", target, "--if-match", "x"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn a_version_that_is_not_there_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/target");
    let server = Server::start(|_| Some(Answer::new(404, "")));
    let cp = ["cp", "s3://bucket/k", target.to_str().unwrap(), "--version-id", "v"];
    assert_eq!(run(&server, &cp).status.code(), Some(3));
    assert!(!folder.path().join("new").exists());
}

const MARKERS: &str = "<ListBucketResult><IsTruncated>false</IsTruncated>\
    <Contents><Key>photos/</Key><Size>0</Size></Contents>\
    <Contents><Key>photos/may/</Key><Size>0</Size></Contents>\
    <Contents><Key>photos/may/a</Key><Size>3</Size></Contents></ListBucketResult>";

#[test]
fn a_copy_on_the_server_skips_what_stands_for_a_folder_and_guards_both_buckets() {
    let server = Server::start(|asked| {
        Some(match asked.line.split(' ').next() {
            Some("GET") => Answer::new(200, MARKERS),
            _ => Answer::new(200, "<CopyObjectResult><ETag>\"e\"</ETag></CopyObjectResult>"),
        })
    });
    let cp = ["cp", "-r", "s3://bucket/photos/", "s3://other"];
    let flags = ["--website-redirect=/x", "--expected-bucket-owner=123456789012"];
    let output = run(&server, &[&cp, &flags[..]].concat());
    done(&output);
    assert_eq!(text(&output.stderr).matches("stands for a folder").count(), 2, "{}", text(&output.stderr));
    assert_eq!(server.lines().iter().filter(|line| line.starts_with("PUT")).count(), 1, "{:?}", server.lines());
    let head = server.head("PUT /other/may/a").to_ascii_lowercase();
    for header in [
        "x-amz-website-redirect-location: /x",
        "x-amz-expected-bucket-owner: 123456789012",
        "x-amz-source-expected-bucket-owner: 123456789012",
    ] {
        assert!(head.contains(&format!("\r\n{header}\r\n")), "no {header} in {head}");
    }
    let cp = ["cp", "-r", "s3://bucket/photos/", "s3://third"];
    done(&run(&server, &[&cp, &flags[..], &["--expected-source-bucket-owner=210987654321"]].concat()));
    let head = server.head("PUT /third/may/a").to_ascii_lowercase();
    assert!(head.contains("x-amz-expected-bucket-owner: 123456789012"), "{head}");
    assert!(head.contains("x-amz-source-expected-bucket-owner: 210987654321"), "{head}");
    let output = run(&server, &[&cp[..], &["--checksum", "sha256"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn an_upload_that_is_gone_counts_as_aborted() {
    let listed = "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated><Upload><Key>k</Key>\
        <UploadId>id</UploadId></Upload></ListMultipartUploadsResult>";
    let server = Server::start(move |asked| {
        let is_listing = asked.line.starts_with("GET");
        Some(if is_listing { Answer::new(200, listed) } else { Answer::refusal(404, "NoSuchUpload") })
    });
    done(&run(&server, &["uploads", "abort", "s3://bucket/k"]));
    done(&run(&server, &["uploads", "abort", "s3://bucket/k", "--upload-id", "id"]));
}

#[test]
fn the_bare_scheme_lists_the_buckets() {
    let buckets = "<ListAllMyBucketsResult><Buckets><Bucket><Name>mine</Name></Bucket></Buckets>\
        </ListAllMyBucketsResult>";
    let server = Server::start(move |_| Some(Answer::new(200, buckets)));
    let output = run(&server, &["ls", "s3://"]);
    done(&output);
    assert!(text(&output.stdout).contains("mine"));
    assert_eq!(run(&server, &["ls", "s3:///key"]).status.code(), Some(2));
}
