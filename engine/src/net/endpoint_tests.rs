//! Every kind of endpoint against every kind of bucket, as tables.

use super::*;

fn custom(url: &str, style: AddressingStyle) -> Result<Endpoint> {
    Endpoint::new(&Config { endpoint_url: Some(url.to_owned()), addressing_style: style, ..Config::default() })
}

fn aws(region: &str, change: impl FnOnce(&mut Config)) -> Endpoint {
    let mut config = Config { region: region.to_owned(), ..Config::default() };
    change(&mut config);
    Endpoint::new(&config).unwrap()
}

fn place(endpoint: &Endpoint, bucket: &str) -> String {
    let location = endpoint.locate(bucket, None).unwrap();
    assert_eq!(location.host_header, location.authority.host, "443 is not said");
    assert!(location.authority.secure);
    format!("{}{} {} {}", location.host_header, location.path_prefix, location.region, location.service)
}

const DIRECTORY: &str = "data--use1-az4--x-s3";
const POINT: &str = "arn:aws:s3:eu-west-1:123456789012:accesspoint/mine";

#[test]
fn a_bucket_is_a_path_or_a_host() {
    let path = custom("http://h:9000/base/", AddressingStyle::Auto).unwrap().locate("bkt", None).unwrap();
    assert_eq!(path.host_header, "h:9000");
    assert_eq!(path.path_prefix, "/base/bkt");
    let host = custom("http://h", AddressingStyle::Virtual).unwrap().locate("bkt", None).unwrap();
    assert_eq!(host.host_header, "bkt.h");
    assert_eq!(*host.authority, Authority { host: "bkt.h".into(), port: 80, secure: false });
    assert_eq!(host.path_prefix, "");
    let six = custom("http://[::1]:80", AddressingStyle::Auto).unwrap().locate("", None).unwrap();
    assert_eq!(six.host_header, "[::1]");
    assert_eq!(six.authority.host, "::1");
}

#[test]
fn aws_hosts_are_those_of_its_endpoint_rules() {
    let plain = |region| aws(region, |_| {});
    let cases = [
        (plain("us-east-1"), "bkt", "bkt.s3.us-east-1.amazonaws.com us-east-1 s3"),
        (plain("us-east-1"), "", "s3.us-east-1.amazonaws.com us-east-1 s3"),
        (plain("eu-west-1"), "dotted.bkt", "s3.eu-west-1.amazonaws.com/dotted.bkt eu-west-1 s3"),
        (plain("us-east-1"), "Old_Bucket", "s3.us-east-1.amazonaws.com/Old_Bucket us-east-1 s3"),
        (plain("cn-north-1"), "bkt", "bkt.s3.cn-north-1.amazonaws.com.cn cn-north-1 s3"),
        (plain("us-gov-west-1"), "bkt", "bkt.s3.us-gov-west-1.amazonaws.com us-gov-west-1 s3"),
        (plain("us-iso-east-1"), "bkt", "bkt.s3.us-iso-east-1.c2s.ic.gov us-iso-east-1 s3"),
        (plain("us-isob-east-1"), "bkt", "bkt.s3.us-isob-east-1.sc2s.sgov.gov us-isob-east-1 s3"),
        (plain("eusc-de-east-1"), "bkt", "bkt.s3.eusc-de-east-1.amazonaws.eu eusc-de-east-1 s3"),
        (plain("us-east-1"), POINT, "mine-123456789012.s3-accesspoint.eu-west-1.amazonaws.com eu-west-1 s3"),
        (
            plain("us-east-1"),
            DIRECTORY,
            "data--use1-az4--x-s3.s3express-use1-az4.us-east-1.amazonaws.com us-east-1 s3express",
        ),
        (
            aws("us-east-1", |c| c.addressing_style = AddressingStyle::Path),
            "bkt",
            "s3.us-east-1.amazonaws.com/bkt us-east-1 s3",
        ),
        (
            aws("us-east-1", |c| c.use_dualstack_endpoint = true),
            "bkt",
            "bkt.s3.dualstack.us-east-1.amazonaws.com us-east-1 s3",
        ),
        (aws("us-east-1", |c| c.use_fips_endpoint = true), "bkt", "bkt.s3-fips.us-east-1.amazonaws.com us-east-1 s3"),
        (
            aws("us-east-1", |c| (c.use_fips_endpoint, c.use_dualstack_endpoint) = (true, true)),
            "bkt",
            "bkt.s3-fips.dualstack.us-east-1.amazonaws.com us-east-1 s3",
        ),
        (
            aws("us-east-1", |c| (c.use_fips_endpoint, c.use_dualstack_endpoint) = (true, true)),
            POINT,
            "mine-123456789012.s3-accesspoint-fips.dualstack.eu-west-1.amazonaws.com eu-west-1 s3",
        ),
        (
            aws("us-east-1", |c| c.use_fips_endpoint = true),
            DIRECTORY,
            "data--use1-az4--x-s3.s3express-fips-use1-az4.us-east-1.amazonaws.com us-east-1 s3express",
        ),
        (aws("us-east-1", |c| c.use_accelerate_endpoint = true), "bkt", "bkt.s3-accelerate.amazonaws.com us-east-1 s3"),
        (
            aws("us-east-1", |c| (c.use_accelerate_endpoint, c.use_dualstack_endpoint) = (true, true)),
            "bkt",
            "bkt.s3-accelerate.dualstack.amazonaws.com us-east-1 s3",
        ),
    ];
    for (endpoint, bucket, expected) in cases {
        assert_eq!(place(&endpoint, bucket), expected);
    }
}

#[test]
fn combinations_that_aws_does_not_have_are_refused() {
    let both = Config { use_accelerate_endpoint: true, use_fips_endpoint: true, ..Config::default() };
    assert!(Endpoint::new(&both).unwrap_err().to_string().contains("FIPS"));
    for (endpoint, bucket, said) in [
        (aws("cn-north-1", |c| c.use_fips_endpoint = true), "bkt", "no FIPS"),
        (aws("us-east-1", |c| c.use_accelerate_endpoint = true), "dotted.bkt", "no host name"),
        (aws("us-east-1", |c| c.use_accelerate_endpoint = true), DIRECTORY, "buckets only"),
        (aws("us-east-1", |c| c.use_accelerate_endpoint = true), POINT, "buckets only"),
        (aws("us-east-1", |_| {}), "arn:aws:s3:cn-north-1:123456789012:accesspoint/a", "is in aws-cn"),
        (custom("http://127.0.0.1:9", AddressingStyle::Auto).unwrap(), POINT, "is an address"),
    ] {
        let error = endpoint.locate(bucket, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_learned_region_moves_the_host_on_aws_and_the_signature_everywhere() {
    let moved = aws("us-east-1", |_| {}).locate("bkt", Some("eu-north-1")).unwrap();
    assert_eq!((&*moved.host_header, &*moved.region), ("bkt.s3.eu-north-1.amazonaws.com", "eu-north-1"));
    let signed = custom("http://h:9", AddressingStyle::Auto).unwrap().locate("bkt", Some("garage")).unwrap();
    assert_eq!((&*signed.host_header, &*signed.region), ("h:9", "garage"));
    // The ARN says where the access point is; nobody knows better.
    let point = aws("us-east-1", |_| {}).locate(POINT, Some("eu-north-1")).unwrap();
    assert_eq!(point.region, "eu-west-1");
}

#[test]
fn sessions_are_for_directory_buckets_where_they_are_wanted() {
    let in_session = |endpoint: &Endpoint, bucket| endpoint.locate(bucket, None).unwrap().in_session;
    assert!(in_session(&aws("us-east-1", |_| {}), DIRECTORY));
    assert!(!in_session(&aws("us-east-1", |_| {}), "bkt"));
    assert!(!in_session(&aws("us-east-1", |c| c.express_sessions = ExpressSessions::Never), DIRECTORY));
    let mut config = Config { endpoint_url: Some("http://127.0.0.1:9".into()), ..Config::default() };
    assert!(!in_session(&Endpoint::new(&config).unwrap(), DIRECTORY));
    config.express_sessions = ExpressSessions::Always;
    let express = Endpoint::new(&config).unwrap().locate(DIRECTORY, None).unwrap();
    assert!(express.in_session);
    assert_eq!((express.service, &*express.path_prefix), ("s3express", "/data--use1-az4--x-s3"));
}

#[test]
fn an_unusable_url_says_why_and_shows_no_password() {
    for url in ["h:9000", "ftp://h", "http://", "http://h:x", "http://h:99999", "http://h?x", ""] {
        let error = custom(url, AddressingStyle::Auto).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{url}");
    }
    for url in ["http://u:hidden@h", "https://u:hidden@h", "http://u:hid den@h", "u:hidden@h"] {
        let error = custom(url, AddressingStyle::Auto).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hid"), "{error}");
    }
}

#[test]
fn regions_are_read_from_aws_hosts_and_from_no_others() {
    for (host, region) in [
        ("bkt.s3.eu-west-1.amazonaws.com", Some("eu-west-1")),
        ("bkt.s3-us-west-2.amazonaws.com", Some("us-west-2")),
        ("s3.dualstack.ap-south-1.amazonaws.com", Some("ap-south-1")),
        ("bkt.s3.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
        ("bkt.s3.amazonaws.com", None),
        ("bkt.s3.eu-west-1.amazonaws.com.evil.example", None),
        ("s3.eu-west-1.example.com", None),
        ("", None),
    ] {
        assert_eq!(region_of_host(host), region, "{host}");
    }
}

#[test]
fn keys_that_cannot_exist_are_refused() {
    assert!(check_key("").is_err());
    assert!(check_key(&"k".repeat(1025)).is_err());
    assert!(check_key("../e").is_ok());
}

#[test]
fn settings_for_aws_alone_are_refused_by_name_beside_a_url() {
    for name in ["use_fips_endpoint", "use_dualstack_endpoint", "use_accelerate_endpoint"] {
        let mut config = Config { endpoint_url: Some("https://s3.example.com".into()), ..Config::default() };
        config.set(name, "true").unwrap();
        let error = Endpoint::new(&config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(name), "{error}");
    }
}
