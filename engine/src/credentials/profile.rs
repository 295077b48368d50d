//! The AWS configuration files: one profile's settings and keys.
//!
//! `aws-config` reads the format; this room finds the files, and refuses what its reader would pass over:
//! a file that cannot be read, or is not text. A missing file is no error, a missing profile is one only
//! for whoever named it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_runtime::env_config::property::PropertiesKey;
use aws_runtime::env_config::section::EnvConfigSections;
use aws_types::os_shim_internal::{Env, Fs};

use super::{Credentials, Variable};
use crate::error::{Error, ErrorKind, Result};

/// Properties of a profile that give credentials in some other way than by keys.
const OTHER_SOURCES: &[&str] = &[
    "role_arn",
    "credential_source",
    "web_identity_token_file",
    "sso_session",
    "sso_start_url",
    "sso_account_id",
    "login_session",
    "credential_process",
];

/// The files as they are, and one profile of them.
#[derive(Debug)]
pub(crate) struct Profile {
    name: String,
    config: ProfileFile,
    credentials: ProfileFile,
    sections: EnvConfigSections,
    files: Option<EnvConfigFiles>,
}

/// One of the two files.
#[derive(Debug)]
struct ProfileFile {
    /// As a person would write it.
    shown: String,
    path: Option<PathBuf>,
    exists: bool,
}

impl Profile {
    /// Reads the files, and takes the profile of that name, or `default`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] where a file cannot be read or makes no sense, or where there is no profile
    /// of the name given.
    pub(crate) async fn read(name: Option<&str>, variable: &Variable) -> Result<Profile> {
        let config = ProfileFile::find("AWS_CONFIG_FILE", "~/.aws/config", variable);
        let credentials = ProfileFile::find("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", variable);
        let selected = name.unwrap_or("default").to_owned();
        let mut profile =
            Profile { name: selected, config, credentials, sections: EnvConfigSections::default(), files: None };
        let mut files = EnvConfigFiles::builder();
        for (file, kind) in [
            (&mut profile.config, EnvConfigFileKind::Config),
            (&mut profile.credentials, EnvConfigFileKind::Credentials),
        ] {
            file.check()?;
            if let Some(path) = file.path.as_ref().filter(|_| file.exists) {
                files = files.with_file(kind, path);
            }
        }
        if profile.config.exists || profile.credentials.exists {
            let files = files.build();
            let selected = Cow::Owned(profile.name.clone());
            let read = aws_config::profile::load(&Fs::real(), &Env::from_slice(&[]), &files, Some(selected)).await;
            profile.sections = read.map_err(|error| malformed(&error))?;
            profile.files = Some(files);
        }
        if name.is_some() && profile.sections.get_profile(&profile.name).is_none() {
            let message = format!("there is no profile {:?} ({})", profile.name, profile.places());
            return Err(Error::new(ErrorKind::Config, message)
                .with_hint("check --profile or AWS_PROFILE; in the config file it stands as [profile NAME]"));
        }
        Ok(profile)
    }

    /// The profile's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The files to hand to `aws-config`; `None` where there are none.
    pub(super) fn files(&self) -> Option<EnvConfigFiles> {
        self.files.clone()
    }

    /// A property, by the names of `PROFILE_KEYS`.
    pub(crate) fn property(&self, name: &str) -> Option<String> {
        match name.split_once('.') {
            None => self.sections.get(name).map(str::to_owned),
            Some(("services", property)) => {
                let section = self.sections.get("services")?;
                let (service, property) = property.split_once('.')?;
                let key = PropertiesKey::builder()
                    .section_key("services")
                    .section_name(section)
                    .property_name(service)
                    .sub_property_name(property)
                    .build()
                    .ok()?;
                self.sections.other_sections().get(&key).map(|value| value.as_str().to_owned())
            }
            // Indented properties stand in their parent's value, one a line.
            Some((parent, property)) => self.sections.get(parent)?.lines().find_map(|line| {
                let (name, value) = line.split_once('=')?;
                (name.trim() == property).then(|| value.trim().to_owned())
            }),
        }
    }

    /// The profile's own keys, where nothing else in it says where credentials come from.
    pub(super) fn keys(&self) -> Option<Credentials> {
        if OTHER_SOURCES.iter().any(|name| self.sections.get(name).is_some()) {
            return None;
        }
        let id = self.sections.get("aws_access_key_id")?;
        let secret = self.sections.get("aws_secret_access_key")?;
        Some(Credentials {
            access_key_id: id.to_owned(),
            secret_access_key: secret.to_owned(),
            session_token: self.sections.get("aws_session_token").filter(|token| !token.is_empty()).map(str::to_owned),
        })
    }

    /// Whether the profile says anything of credentials.
    pub(super) fn has_credentials(&self) -> bool {
        let keys = ["aws_access_key_id", "aws_secret_access_key"];
        keys.iter().chain(OTHER_SOURCES).any(|name| self.sections.get(name).is_some())
    }

    /// What was looked through, for a person.
    pub(crate) fn places(&self) -> String {
        let place = |file: &ProfileFile| {
            if file.exists { format!("{} was read", file.shown) } else { format!("{} does not exist", file.shown) }
        };
        format!("{}, {}", place(&self.config), place(&self.credentials))
    }
}

impl ProfileFile {
    fn find(named_by: &str, usual: &str, variable: &Variable) -> ProfileFile {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let shown = set(named_by).unwrap_or_else(|| usual.to_owned());
        let path = match shown.strip_prefix("~/") {
            Some(rest) => set("HOME").or_else(|| set("USERPROFILE")).map(|home| Path::new(&home).join(rest)),
            None => Some(PathBuf::from(&shown)),
        };
        ProfileFile { shown, path, exists: false }
    }

    /// Whether the file is there; an error where it is and cannot be used.
    fn check(&mut self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let content = match std::fs::read(path) {
            Ok(content) => content,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return Err(Error::new(ErrorKind::Config, format!("{} cannot be read: {error}", self.shown))
                    .with_hint("make it a file that you may read, or name another (AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE)"));
            }
        };
        self.exists = true;
        match std::str::from_utf8(&content) {
            Ok(_) => Ok(()),
            Err(error) => {
                let line = content[..error.valid_up_to()].iter().filter(|&&b| b == b'\n').count() + 1;
                Err(Error::new(ErrorKind::Config, format!("{}, line {line}: this is not UTF-8", self.shown))
                    .with_hint("save the file as text"))
            }
        }
    }
}

/// The reader's error names file and line and quotes nothing.
fn malformed(error: &(dyn std::error::Error + 'static)) -> Error {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    Error::new(ErrorKind::Config, message).with_hint("correct that line of the file")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    struct Files {
        folder: tempfile::TempDir,
    }

    impl Files {
        fn new(config: &[u8], credentials: &[u8]) -> Files {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join(".aws")).unwrap();
            for (name, content) in [("config", config), ("credentials", credentials)] {
                if !content.is_empty() {
                    std::fs::write(folder.path().join(".aws").join(name), content).unwrap();
                }
            }
            Files { folder }
        }

        async fn read(&self, name: Option<&str>) -> Result<Profile> {
            let home = self.folder.path().to_str().unwrap().to_owned();
            let variable: Variable = Arc::new(move |name| (name == "HOME").then(|| home.clone()));
            Profile::read(name, &variable).await
        }
    }

    #[tokio::test]
    async fn settings_come_from_the_profile_and_its_services() {
        let config = b"[default]\nregion = eu-west-3\n[profile p]\nregion = eu-west-1\nservices = mine\n\
            s3 =\n  addressing_style = path\n  use_dualstack_endpoint=true\n\
            [services mine]\ns3 =\n  endpoint_url = http://h:1\n";
        let files = Files::new(config, b"");
        let profile = files.read(Some("p")).await.unwrap();
        assert_eq!(profile.property("region").as_deref(), Some("eu-west-1"));
        assert_eq!(profile.property("s3.addressing_style").as_deref(), Some("path"));
        assert_eq!(profile.property("s3.use_dualstack_endpoint").as_deref(), Some("true"));
        assert_eq!(profile.property("services.s3.endpoint_url").as_deref(), Some("http://h:1"));
        assert_eq!(profile.property("endpoint_url"), None);
        assert!(!profile.has_credentials());
        let default = files.read(None).await.unwrap();
        assert_eq!(default.property("region").as_deref(), Some("eu-west-3"));
    }

    #[tokio::test]
    async fn keys_are_the_profiles_unless_it_names_another_source() {
        let credentials = b"[default]\naws_access_key_id = A\naws_secret_access_key = s\naws_session_token = t\n\
            [role]\naws_access_key_id = A\naws_secret_access_key = s\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = default\n";
        let files =
            Files::new(b"", b"[default]\naws_access_key_id = A\naws_secret_access_key = s\naws_session_token =\n");
        assert_eq!(files.read(None).await.unwrap().keys(), Some(Credentials::new("A", "s")), "an empty token is none");
        let files = Files::new(b"", credentials);
        let keys = files.read(None).await.unwrap().keys().unwrap();
        assert_eq!(keys, Credentials::new("A", "s").with_session_token("t"));
        assert_eq!(files.read(Some("role")).await.unwrap().keys(), None);
    }

    #[tokio::test]
    async fn a_missing_file_is_none_and_a_missing_profile_an_error() {
        let files = Files::new(b"", b"");
        let profile = files.read(None).await.unwrap();
        assert_eq!(profile.places(), "~/.aws/config does not exist, ~/.aws/credentials does not exist");
        let error = files.read(Some("nobody")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("there is no profile \"nobody\""), "{error}");
    }

    #[tokio::test]
    async fn what_makes_no_sense_is_named_by_file_and_line_and_not_quoted() {
        for (content, line) in [
            (&b"[default]\nregion = a\naws_secret_access_key hidden\n"[..], 3),
            (b"aws_secret_access_key = hidden\n", 1),
            (b"[default\nregion = a\n", 1),
            (b"[default]\nregion = \xff\xfe hidden\n", 2),
        ] {
            let error = Files::new(content, b"").read(None).await.unwrap_err();
            let said = format!("{error} {error:?}");
            assert_eq!(error.kind(), ErrorKind::Config, "{said}");
            assert!(said.contains("config") && said.contains(&format!("line {line}")), "{said}");
            assert!(!said.contains("hidden"), "{said}");
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_is_an_error() {
        // A folder in the place of the file: root may read any file.
        let files = Files::new(b"", b"");
        std::fs::create_dir(files.folder.path().join(".aws/credentials")).unwrap();
        let error = files.read(None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("~/.aws/credentials cannot be read"), "{error}");
    }
}
