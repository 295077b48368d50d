use super::*;

#[test]
fn every_setting_reads_back_what_it_shows() {
    let config = Config {
        endpoint_url: Some("http://h:1".into()),
        profile: Some("p".into()),
        use_fips_endpoint: true,
        express_sessions: ExpressSessions::Always,
        ..Config::default()
    };
    let mut again = Config::default();
    for (name, value) in config.entries() {
        again.set(name, &value).unwrap();
    }
    assert_eq!(again, config);
}

#[test]
fn what_was_set_wins_over_the_environment() {
    let mut config = Config::default();
    config.set("region", "eu-west-1").unwrap();
    let variable = |name: &str| match name {
        "AWS_REGION" => Some("us-west-2".to_owned()),
        "WIRESPEED_PART_SIZE" => Some("16MiB".to_owned()),
        _ => None,
    };
    config.fill_from_environment(|name| name == "region", variable).unwrap();
    assert_eq!(config.region, "eu-west-1");
    assert_eq!(config.part_size, 16 * MIB);
}

#[test]
fn a_profile_decides_what_nothing_else_did() {
    let mut config = Config::default();
    let property = |name: &str| match name {
        "region" => Some("eu-south-1".to_owned()),
        "endpoint_url" => Some("http://h:1".to_owned()),
        "services.s3.endpoint_url" => Some("http://h:2".to_owned()),
        "s3.addressing_style" => Some("virtual".to_owned()),
        "use_fips_endpoint" => Some("True".to_owned()),
        "ca_bundle" => Some("/ca.pem".to_owned()),
        "max_attempts" => Some("3".to_owned()),
        _ => None,
    };
    config.fill_from_profile(|name| name == "region", property, "the profile p").unwrap();
    assert_eq!(config.region, "us-east-1");
    assert_eq!(config.endpoint_url.as_deref(), Some("http://h:2"));
    assert_eq!(config.addressing_style, AddressingStyle::Virtual);
    assert!(config.use_fips_endpoint);
    assert_eq!((config.ca_bundle, config.max_attempts), (Some("/ca.pem".into()), 3));
    let wrong = |name: &str| (name == "s3.addressing_style").then(|| "round".to_owned());
    let error = Config::default().fill_from_profile(|_| false, wrong, "the profile p").unwrap_err().to_string();
    assert!(error.contains("s3.addressing_style of the profile p cannot be \"round\""), "{error}");
    for (name, _) in PROFILE_KEYS {
        assert!(CONFIG_KEYS.iter().any(|key| key.name == *name), "{name}");
    }
}

#[test]
fn checksums_are_turned_off_in_the_words_of_other_clients() {
    let mut config = Config::default();
    let variable = |name: &str| name.starts_with("AWS_RE").then(|| "WHEN_REQUIRED".to_owned());
    config.fill_from_environment(|name| name == "region", variable).unwrap();
    assert_eq!((config.checksum_algorithm, config.verify_checksums), (None, false));
    config.set("checksum_algorithm", "SHA256").unwrap();
    assert_eq!(config.checksum_algorithm, Some(ChecksumAlgorithm::Sha256));
    assert!(config.set("checksum_algorithm", "md5").is_err());
}

#[test]
fn a_bad_value_names_the_variable_and_what_it_may_be() {
    let mut config = Config::default();
    let variable = |name: &str| (name == "WIRESPEED_CONCURRENCY").then(|| "many".to_owned());
    let error = config.fill_from_environment(|_| false, variable).unwrap_err().to_string();
    assert!(error.contains("WIRESPEED_CONCURRENCY cannot be \"many\""), "{error}");
    assert!(error.contains("from 1 to 10000"), "{error}");
    assert!(config.set("part_size", "8 quarks").is_err());
    assert!(config.set("no_such", "1").unwrap_err().to_string().contains("part_size"));
}

#[test]
fn configured_urls_are_ignored_where_the_environment_says_so_and_named_ones_are_not() {
    let variable = |name: &str| match name {
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS" => Some("true".to_owned()),
        "AWS_ENDPOINT_URL_S3" => Some("http://h:1".to_owned()),
        _ => None,
    };
    let mut config = Config::default();
    let taken = config.fill_from_environment(|_| false, variable).unwrap();
    assert_eq!(config.endpoint_url, None);
    assert!(taken.contains(&"endpoint_url"), "a profile does not decide it either");
    config.set("endpoint_url", "http://h:2").unwrap();
    config.fill_from_environment(|name| name == "endpoint_url", variable).unwrap();
    assert_eq!(config.endpoint_url.as_deref(), Some("http://h:2"));
}
