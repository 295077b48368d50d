//! `mv`, `rm` and `sync --delete` against answers that say success and prove nothing: nothing is lost, and nothing is
//! called deleted that may be there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod command;
mod server;

use std::fs;
use std::process::Output;

use crate::command::{text, wirespeed};
use crate::server::{Answer, Asked, Server};

fn run(server: &Server, arguments: &[&str]) -> Output {
    let settings = ["--endpoint-url", &server.endpoint, "--concurrency", "4", "--set", "max_attempts=2"];
    wirespeed().args(settings).arg("--no-sign-request").args(arguments).output().unwrap()
}

/// Answers a listing with one object of 7 bytes and the rest with `answer`.
fn listed(asked: &Asked, answer: impl Fn(&str, &str) -> Answer) -> Option<Answer> {
    let (method, target) = asked.line.split_once(' ').unwrap();
    Some(match method {
        "GET" if target.contains("list-type=2") => Answer::new(
            200,
            "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>in/a</Key><Size>7</Size>\
             <ETag>&quot;e&quot;</ETag></Contents></ListBucketResult>",
        ),
        method => answer(method, target),
    })
}

#[test]
fn a_file_stays_where_its_upload_is_not_proven() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    for (what, put, head) in [
        ("a page", Answer::page as fn() -> Answer, None),
        ("no ETag", || Answer::bare(200, ""), None),
        ("no object afterwards", || Answer::new(200, ""), Some((404, 0))),
        ("another size afterwards", || Answer::new(200, ""), Some((200, 6))),
    ] {
        fs::write(&file, "content").unwrap();
        let server = Server::start(move |asked| {
            Some(match (asked.line.split(' ').next(), head) {
                (Some("HEAD"), Some((status, size))) => Answer::new(status, vec![0; size]),
                (Some("PUT"), _) => put(),
                _ => Answer::new(204, ""),
            })
        });
        let output = run(&server, &["mv", file.to_str().unwrap(), "s3://bucket/f"]);
        assert_eq!(fs::read(&file).unwrap(), b"content", "{what}: the file is still there");
        assert_ne!(output.status.code(), Some(0), "{what}: {}", text(&output.stdout));
        assert!(text(&output.stderr).contains("s3://bucket/f"), "{what}: {}", text(&output.stderr));
    }
    let server = Server::start(|asked| {
        Some(if asked.line.starts_with("HEAD") { Answer::new(200, "content") } else { Answer::new(200, "") })
    });
    let output = run(&server, &["mv", file.to_str().unwrap(), "s3://bucket/f"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!file.exists(), "what a HEAD confirms is moved");
    assert_eq!((server.count("PUT"), server.count("HEAD")), (1, 1));
}

#[test]
fn an_object_stays_where_what_was_read_is_not_it() {
    for (what, get) in [
        ("a page", Answer::page as fn() -> Answer),
        ("no ETag", || Answer::bare(200, "content")),
        ("another size", || Answer::new(200, "cont")),
    ] {
        for source in [&["s3://bucket/in/a"][..], &["--recursive", "s3://bucket/in"]] {
            if what == "another size" && source.len() == 1 {
                continue; // Nobody knows the size of what was not listed.
            }
            let folder = tempfile::tempdir().unwrap();
            let server = Server::start(move |asked| {
                listed(asked, |method, _| if method == "GET" { get() } else { Answer::new(204, "") })
            });
            let target = folder.path().to_str().unwrap();
            let output = run(&server, &[&["mv"], source, &[target]].concat());
            assert_ne!(output.status.code(), Some(0), "{what} {source:?}: {}", text(&output.stdout));
            let deleted = server.count("DELETE") + server.count("POST");
            assert_eq!(deleted, 0, "{what} {source:?}: {:?}", server.lines());
        }
    }
}

#[test]
fn an_object_stays_where_its_copy_is_not_proven() {
    for (what, copy) in [
        ("a page", Answer::page as fn() -> Answer),
        ("nothing", || Answer::new(200, "")),
        ("no ETag", || Answer::new(200, "<CopyObjectResult/>")),
        ("another ETag", || Answer::new(200, "<CopyObjectResult><ETag>\"x\"</ETag></CopyObjectResult>")),
    ] {
        let server = Server::start(move |asked| {
            listed(asked, |method, _| match method {
                "PUT" => copy(),
                "HEAD" => Answer::new(404, ""),
                _ => Answer::new(204, ""),
            })
        });
        let output = run(&server, &["mv", "--recursive", "s3://bucket/in", "s3://bucket/out"]);
        assert_eq!(output.status.code(), Some(3), "{what}: {}", text(&output.stderr));
        assert_eq!(server.count("DELETE") + server.count("POST"), 0, "{what}: {:?}", server.lines());
    }
    // The entity tag of the source is proof.
    let server = Server::start(|asked| {
        listed(asked, |method, _| match method {
            "PUT" => Answer::new(200, "<CopyObjectResult><ETag>\"e\"</ETag></CopyObjectResult>"),
            _ => Answer::new(200, "<DeleteResult><Deleted><Key>in/a</Key></Deleted></DeleteResult>"),
        })
    });
    let output = run(&server, &["mv", "--recursive", "s3://bucket/in", "s3://bucket/out"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!((server.count("HEAD"), server.count("PUT"), server.count("POST")), (0, 1, 1));
}

#[test]
fn a_deletion_that_nobody_confirms_is_not_called_done() {
    for (what, answer) in [
        ("a page", Answer::page as fn() -> Answer),
        ("no names", || Answer::new(200, "<DeleteResult/>")),
        ("another document", || Answer::new(200, "<html><body>Welcome</body></html>")),
    ] {
        let alone = |method: &str| method == "DELETE";
        let server = Server::start(move |asked| {
            listed(asked, |method, _| if alone(method) { Answer::page() } else { answer() })
        });
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().to_str().unwrap();
        for arguments in [
            &["rm", "--recursive", "s3://bucket/in"][..],
            &["sync", source, "s3://bucket/in", "--delete"],
            &["rb", "--force", "s3://bucket"],
        ] {
            let output = run(&server, arguments);
            assert_ne!(output.status.code(), Some(0), "{what} {arguments:?}: {}", text(&output.stdout));
            assert!(!text(&output.stdout).contains("delete: s3://bucket/in/a\n"), "{}", text(&output.stdout));
        }
    }
    let server = Server::start(|_| Some(Answer::page()));
    let output = run(&server, &["rm", "s3://bucket/in/a"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
}

#[test]
fn a_page_is_no_empty_source_of_a_sync() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("keep"), "x").unwrap();
    let server = Server::start(|_| Some(Answer::page()));
    let output = run(&server, &["sync", "--delete", "s3://bucket/in", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(folder.path().join("keep").exists());
}
