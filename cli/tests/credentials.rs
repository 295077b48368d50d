//! Where the command line finds credentials, and what it says when it finds none: against files in a folder of the
//! test's own and servers that play AWS's services. No output may hold a secret; all secrets here say `hidden`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod command;
mod stub;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

use crate::command::text;
use crate::stub::{Asked, Stub};

const EMPTY: &str = "<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated></ListBucketResult>";

/// A machine of one's own: a home folder, an S3 server, and nothing of this one's environment.
struct Machine {
    home: tempfile::TempDir,
    s3: Stub,
    environment: Vec<(String, String)>,
}

impl Machine {
    fn new() -> Machine {
        Machine::with_s3(|_| Some((200, EMPTY.to_owned())))
    }

    fn with_s3(answer: impl Fn(&Asked) -> Option<(u16, String)> + Send + Sync + 'static) -> Machine {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(".aws/sso/cache")).unwrap();
        Machine { home, s3: Stub::start(answer), environment: Vec::new() }.set("AWS_EC2_METADATA_DISABLED", "true")
    }

    fn set(mut self, name: &str, value: impl Into<String>) -> Machine {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    fn file(self, name: &str, content: impl AsRef<[u8]>) -> Machine {
        fs::write(self.path(name), content).unwrap();
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A script that prints what it is told to.
    fn script(self, name: &str, content: &str) -> Machine {
        let machine = self.file(name, format!("#!/bin/sh\n{content}\n"));
        fs::set_permissions(machine.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        machine
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = command::wirespeed();
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
            command.env_remove(name);
        }
        command.env("HOME", self.home.path()).env("AWS_ENDPOINT_URL_S3", &self.s3.url).env_remove("AWS_ENDPOINT_URL");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = command.args(["-vv", "--set", "max_attempts=1"]).args(arguments).output().unwrap();
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(!said.contains("hidden"), "a secret shows: {said}");
        output
    }

    /// Lists a bucket, and returns the one line of the error and how long it took.
    fn fails(&self, arguments: &[&str]) -> (String, Duration) {
        let started = Instant::now();
        let output = self.run(&[arguments, &["ls", "s3://bucket"]].concat());
        let took = started.elapsed();
        let stderr = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{:?} {stderr}", output.status);
        let line = stderr
            .lines()
            .rfind(|line| line.contains("s3://bucket") || line.to_lowercase().contains("error"))
            .unwrap_or_default();
        (line.to_owned(), took)
    }

    /// Lists a bucket, and returns the key that signed the last request.
    fn key(&self, arguments: &[&str]) -> String {
        let output = self.run(&[arguments, &["ls", "s3://bucket"]].concat());
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output.stderr));
        self.s3.keys().pop().unwrap()
    }
}

fn issued(key: &str) -> String {
    format!(
        "{{\"Code\":\"Success\",\"Type\":\"AWS-HMAC\",\"AccessKeyId\":\"{key}\",\"SecretAccessKey\":\"hidden-secret\",\
         \"Token\":\"hidden-token\",\"Expiration\":\"2040-01-01T00:00:00Z\"}}"
    )
}

fn assumed(action: &str, key: &str) -> String {
    format!(
        "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><Credentials>\
         <AccessKeyId>{key}</AccessKeyId><SecretAccessKey>hidden-secret</SecretAccessKey>\
         <SessionToken>hidden-token</SessionToken><Expiration>2040-01-01T00:00:00Z</Expiration></Credentials>\
         <AssumedRoleUser><AssumedRoleId>R:s</AssumedRoleId><Arn>arn:aws:sts::1:assumed-role/r/s</Arn></AssumedRoleUser>\
         </{action}Result><ResponseMetadata><RequestId>R</RequestId></ResponseMetadata></{action}Response>"
    )
}

#[test]
fn a_profile_gives_keys_region_and_endpoint() {
    let machine =
        Machine::new().file(".aws/credentials", "[p]\naws_access_key_id=AKIDP\naws_secret_access_key=hidden\n");
    let config = format!("[profile p]\nregion = eu-north-1\nendpoint_url = {}\n", machine.s3.url);
    let machine = machine.file(".aws/config", config).set("AWS_PROFILE", "p").set("AWS_ENDPOINT_URL_S3", "");
    assert_eq!(machine.key(&[]), "AKIDP");
    assert!(machine.s3.asked()[0].header("authorization").contains("/eu-north-1/s3/"));
    // What is said outside wins.
    machine.key(&["--region", "eu-south-1"]);
    assert!(machine.s3.asked()[1].header("authorization").contains("/eu-south-1/s3/"));
}

#[test]
fn the_environments_keys_win_over_its_profile_and_lose_to_a_named_one() {
    let machine = Machine::new()
        .file(".aws/credentials", "[p]\naws_access_key_id=AKIDP\naws_secret_access_key=hidden\n")
        .set("AWS_ACCESS_KEY_ID", "AKIDENV")
        .set("AWS_SECRET_ACCESS_KEY", "hidden")
        .set("AWS_PROFILE", "p");
    assert_eq!(machine.key(&[]), "AKIDENV");
    assert_eq!(machine.key(&["--set", "profile=p"]), "AKIDP");
}

#[test]
fn what_is_given_whole_needs_no_file() {
    let machine = Machine::new()
        .file(".aws/config", "this is no profile file = hidden\n")
        .set("AWS_ACCESS_KEY_ID", "AKIDENV")
        .set("AWS_SECRET_ACCESS_KEY", "hidden")
        .set("AWS_REGION", "us-east-1");
    assert_eq!(machine.key(&[]), "AKIDENV");
}

#[test]
fn no_credentials_anywhere_is_said_at_once_with_all_that_was_tried() {
    let machine = Machine::new();
    let (error, took) = machine.fails(&[]);
    for tried in [
        "environment: AWS_ACCESS_KEY_ID is not set",
        "profile default: no credentials in it",
        "~/.aws/credentials does not exist",
        "AWS_WEB_IDENTITY_TOKEN_FILE is not set",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI is set",
        "AWS_EC2_METADATA_DISABLED is set",
        "--profile",
        "--no-sign-request",
    ] {
        assert!(error.contains(tried), "{tried} is missing in: {error}");
    }
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert!(machine.s3.asked().is_empty());
}

#[test]
fn a_malformed_or_missing_profile_is_named() {
    let machine =
        Machine::new().file(".aws/credentials", "[default]\naws_access_key_id=A\naws_secret_access_key hidden\n");
    let (error, _) = machine.fails(&[]);
    assert!(error.contains(".aws/credentials on line 3"), "{error}");
    let machine = Machine::new().set("AWS_PROFILE", "nobody");
    let (error, _) = machine.fails(&[]);
    assert!(error.contains("there is no profile \"nobody\""), "{error}");
    let machine = Machine::new();
    fs::create_dir(machine.path(".aws/config")).unwrap();
    let (error, _) = machine.fails(&[]);
    assert!(error.contains("~/.aws/config cannot be read"), "{error}");
}

#[test]
fn a_process_gives_credentials_and_its_output_is_never_quoted() {
    let machine = Machine::new().script(
        "give",
        r#"echo '{"Version":1,"AccessKeyId":"AKIDPROCESS","SecretAccessKey":"hidden","SessionToken":"hidden-token"}'"#,
    );
    let command = |machine: &Machine| format!("[default]\ncredential_process = {}\n", machine.path("give").display());
    let config = command(&machine);
    let machine = machine.file(".aws/config", config);
    assert_eq!(machine.key(&[]), "AKIDPROCESS");
    assert_eq!(machine.s3.asked()[0].header("x-amz-security-token"), "hidden-token");

    let machine = machine.script("give", "echo hidden-out; echo hidden-error >&2; exit 3");
    let (error, _) = machine.fails(&[]);
    assert!(error.contains("the profile default gave no credentials"), "{error}");
    assert!(error.contains("exit status: 3"), "{error}");
    let machine = machine.script("give", "echo '{\"hidden\": hidden'");
    assert!(machine.fails(&[]).0.contains("something else than the JSON"));
}

#[test]
fn credentials_that_the_server_calls_expired_are_fetched_anew_once() {
    let expired = "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>";
    let machine = Machine::with_s3(move |asked| match asked.key() {
        "AKID2" => Some((200, EMPTY.to_owned())),
        _ => Some((400, expired.to_owned())),
    });
    let counter = machine.path("counter").display().to_string();
    let machine = machine.script(
        "give",
        &format!(
            "echo x >> {counter}; n=$(wc -l < {counter} | tr -d ' ')\n\
             echo \"{{\\\"Version\\\":1,\\\"AccessKeyId\\\":\\\"AKID$n\\\",\\\"SecretAccessKey\\\":\\\"hidden\\\",\
             \\\"SessionToken\\\":\\\"hidden\\\",\\\"Expiration\\\":\\\"2040-01-01T00:00:00Z\\\"}}\""
        ),
    );
    let config = format!("[default]\ncredential_process = {}\n", machine.path("give").display());
    let machine = machine.file(".aws/config", config);
    assert_eq!(machine.key(&[]), "AKID2");
    assert_eq!(machine.s3.keys(), ["AKID1", "AKID2"]);
    // Keys that cannot be replaced are not tried twice.
    let machine = machine.set("AWS_ACCESS_KEY_ID", "AKIDENV").set("AWS_SECRET_ACCESS_KEY", "hidden");
    let (error, _) = machine.fails(&[]);
    assert!(error.contains("The provided token has expired"), "{error}");
    assert_eq!(machine.s3.asked().len(), 3);
}

#[test]
fn an_instance_is_asked_with_a_token_and_never_without() {
    let metadata = Stub::start(|asked| {
        let with_token = asked.header("x-aws-ec2-metadata-token") == "session";
        Some(match asked.line.as_str() {
            "PUT /latest/api/token" => (200, "session".to_owned()),
            "GET /latest/meta-data/iam/security-credentials/" if with_token => (200, "role".to_owned()),
            "GET /latest/meta-data/iam/security-credentials/role" if with_token => (200, issued("AKIDIMDS")),
            _ => (401, String::new()),
        })
    });
    let machine = Machine::new()
        .set("AWS_EC2_METADATA_DISABLED", "false")
        .set("AWS_EC2_METADATA_SERVICE_ENDPOINT", &metadata.url);
    assert_eq!(machine.key(&[]), "AKIDIMDS");

    // A service of the first version has no tokens: what it says without one is not taken.
    let old = Stub::start(|asked| {
        Some(if asked.line.starts_with("PUT") { (404, String::new()) } else { (200, issued("AKIDOLD")) })
    });
    let machine =
        Machine::new().set("AWS_EC2_METADATA_DISABLED", "false").set("AWS_EC2_METADATA_SERVICE_ENDPOINT", &old.url);
    let (error, _) = machine.fails(&[]);
    assert!(error.contains("instance metadata:"), "{error}");
    assert!(old.lines().iter().all(|line| line.starts_with("PUT")), "{:?}", old.lines());
}

#[test]
fn a_metadata_service_that_hangs_is_left_within_seconds() {
    let silent = Stub::start(|_| None);
    let machine =
        Machine::new().set("AWS_EC2_METADATA_DISABLED", "false").set("AWS_EC2_METADATA_SERVICE_ENDPOINT", &silent.url);
    let (error, took) = machine.fails(&[]);
    assert!(error.contains("no credentials were found") && error.contains("instance metadata:"), "{error}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(!silent.asked().is_empty());
}

#[test]
fn a_container_is_asked_with_the_token_of_its_file() {
    // EKS Pod Identity and ECS speak alike.
    let agent = Stub::start(|asked| {
        let is_right = asked.header("authorization") == "hidden-bearer";
        Some(if is_right { (200, issued("AKIDPOD")) } else { (401, "{\"code\":\"X\",\"message\":\"no\"}".to_owned()) })
    });
    let machine = Machine::new().file("token", "hidden-bearer");
    let token = machine.path("token").display().to_string();
    let machine = machine
        .set("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{}/v1/credentials", agent.url))
        .set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token);
    assert_eq!(machine.key(&[]), "AKIDPOD");
    assert_eq!(agent.lines(), ["GET /v1/credentials"]);

    let machine = machine.file("token", "hidden-other");
    let (error, took) = machine.fails(&[]);
    assert!(error.contains("the container's credentials service gave no credentials"), "{error}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn settings_that_make_no_sense_are_errors_and_not_panics() {
    for (name, value) in [
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "no slash before it"),
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "credentials"),
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "http://elsewhere.example/x"),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "::"),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/credentials"),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "/credentials"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/does/not/exist"),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "not a URL"),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "::"),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv9"),
        ("AWS_ENDPOINT_URL_STS", "not a URL"),
    ] {
        let machine = Machine::new().set("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r").set(name, value);
        let disabled = if name.starts_with("AWS_EC2") { "false" } else { "true" };
        let machine = machine.file("jwt", "hidden").set("AWS_EC2_METADATA_DISABLED", disabled);
        let jwt = machine.path("jwt").display().to_string();
        let machine = if name.ends_with("STS") { machine.set("AWS_WEB_IDENTITY_TOKEN_FILE", jwt) } else { machine };
        let output = machine.run(&["ls", "s3://bucket"]);
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{name}={value}: {said}");
        assert!(!said.contains("panicked"), "{name}={value}: {said}");
        assert!(said.contains("credentials"), "{name}={value}: {said}");
    }
}

#[test]
fn a_web_identity_is_exchanged_for_a_role() {
    let sts = Stub::start(|asked| {
        let is_right = asked.body.contains("Action=AssumeRoleWithWebIdentity") && asked.body.contains("hidden-jwt");
        Some(if is_right {
            (200, assumed("AssumeRoleWithWebIdentity", "AKIDWEB"))
        } else {
            let denied = "<ErrorResponse><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code>\
                <Message>The token is not valid</Message></Error><RequestId>R</RequestId></ErrorResponse>";
            (400, denied.to_owned())
        })
    });
    let machine = Machine::new().file("jwt", "hidden-jwt");
    let jwt = machine.path("jwt").display().to_string();
    let machine = machine
        .set("AWS_WEB_IDENTITY_TOKEN_FILE", jwt)
        .set("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r")
        .set("AWS_ENDPOINT_URL_STS", &sts.url);
    assert_eq!(machine.key(&[]), "AKIDWEB");
    let machine = machine.file("jwt", "hidden-other");
    let (error, _) = machine.fails(&[]);
    assert!(error.contains("the web identity token gave no credentials"), "{error}");
    assert!(error.contains("InvalidIdentityToken"), "{error}");
}

#[test]
fn a_profile_takes_a_role_with_the_keys_of_another() {
    let sts = Stub::start(|asked| {
        let is_right = asked.body.contains("Action=AssumeRole&") && asked.key() == "AKIDBASE";
        is_right.then(|| (200, assumed("AssumeRole", "AKIDROLE")))
    });
    let config = "[profile base]\naws_access_key_id = AKIDBASE\naws_secret_access_key = hidden\n\
        [profile role]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\nregion = us-east-1\n\
        [profile lost]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = gone\n";
    let machine = Machine::new().file(".aws/config", config).set("AWS_ENDPOINT_URL_STS", &sts.url);
    assert_eq!(machine.key(&["--set", "profile=role"]), "AKIDROLE");
    let (error, _) = machine.fails(&["--set", "profile=lost"]);
    assert!(error.contains("gone"), "{error}");
}

#[test]
fn a_single_sign_on_token_is_exchanged_for_a_role() {
    let portal = Stub::start(|asked| {
        let is_right = asked.header("x-amz-sso_bearer_token") == "hidden-sso-token";
        let body = "{\"roleCredentials\":{\"accessKeyId\":\"AKIDSSO\",\"secretAccessKey\":\"hidden\",\
            \"sessionToken\":\"hidden\",\"expiration\":2208988800000}}";
        Some(if is_right { (200, body.to_owned()) } else { (401, "{\"message\":\"no\"}".to_owned()) })
    });
    let config = "[default]\nsso_session = my-session\nsso_account_id = 123456789012\nsso_role_name = reader\n\
        region = us-east-1\n[sso-session my-session]\nsso_region = us-east-1\n\
        sso_start_url = https://example.awsapps.com/start\n";
    // The name is the SHA-1 of the session's.
    let cache = ".aws/sso/cache/9e28173066ce536e277c5fb355efd9c64f398167.json";
    let token = "{\"accessToken\":\"hidden-sso-token\",\"expiresAt\":\"2040-01-01T00:00:00Z\",\
        \"startUrl\":\"https://example.awsapps.com/start\",\"region\":\"us-east-1\"}";
    let machine = Machine::new().file(".aws/config", config).set("AWS_ENDPOINT_URL_SSO", &portal.url);
    let (error, _) = machine.fails(&[]);
    assert!(error.contains("aws sso login"), "{error}");
    let machine = machine.file(cache, token);
    assert_eq!(machine.key(&[]), "AKIDSSO");
    assert!(portal.lines()[0].contains("role_name=reader"), "{:?}", portal.lines());
}

#[test]
fn a_job_that_nobody_signs_stops_at_its_first_item() {
    let files = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c", "d"] {
        fs::write(files.path().join(name), name).unwrap();
    }
    let folder = files.path().to_str().unwrap();
    let file = format!("{folder}/a");
    for (machine, why, code) in [
        (Machine::new(), "no credentials were found", 3),
        (Machine::new().set("AWS_PROFILE", "nobody"), "there is no profile", 2),
    ] {
        for arguments in [&["cp", "-r", folder, "s3://bucket/p"][..], &["cp", &file, "s3://bucket/a"]] {
            let output = machine.run(arguments);
            let said = text(&output.stderr);
            let told = said.lines().filter(|line| line.contains(why) && !line.contains("WARN")).count();
            assert_eq!((told, output.status.code()), (1, Some(code)), "{said}");
        }
        assert!(machine.s3.asked().is_empty());
    }
}

#[test]
fn the_services_of_credentials_are_reached_through_the_proxy_and_by_the_bundle() {
    let web = |machine: Machine| {
        let machine = machine.file("jwt", "hidden-jwt").set("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r");
        let jwt = machine.path("jwt").display().to_string();
        machine.set("AWS_WEB_IDENTITY_TOKEN_FILE", jwt).set("AWS_REGION", "us-east-1")
    };
    let proxy = Stub::start(|_| Some((403, String::new())));
    let url = proxy.url.replace("http://", "http://user:hidden@");
    let (error, _) = web(Machine::new()).set("HTTPS_PROXY", url).fails(&[]);
    assert!(error.contains("the web identity token gave no credentials"), "{error}");
    let lines = proxy.lines();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.starts_with("CONNECT sts.")), "{lines:?}");

    let machine = web(Machine::new()).file("ca.pem", "nothing");
    let bundle = machine.path("ca.pem").display().to_string();
    let (error, _) = machine.set("AWS_CA_BUNDLE", bundle).fails(&[]);
    assert!(error.contains("the CA bundle") && error.contains("holds no certificate"), "{error}");
}
