//! Where credentials are looked for when nobody gave any: profile, web identity, container, instance.
//!
//! The order is that of AWS's own clients. Each provider is `aws-config`'s; walking them is this room's,
//! so that the error can say of each why it had nothing, and so that each has its own bound in time. The
//! first that is set up decides: if it fails, that is the error, and the next is not asked, or a
//! misspelt role would silently become the machine's own.
//!
//! Providers are made anew for every fetch: a refresh sees files that have changed since.

use std::time::Duration;

use aws_config::ecs::EcsCredentialsProvider;
use aws_config::imds;
use aws_config::imds::credentials::ImdsCredentialsProvider;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::web_identity_token::WebIdentityTokenCredentialsProvider;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::provider::ProvideCredentials;
use aws_credential_types::provider::error::CredentialsError;

use super::identity::{Load, LoadFailure, Loaded, Loading};
use super::reason::reason;
use super::{ChainSettings, Credentials, Profile, Variable, usable, way};
use crate::error::{Error, ErrorKind};

/// A profile may ask for a role by way of a token service, or start a process that asks a person.
const PROFILE_PATIENCE: Duration = Duration::from_secs(30);
const WEB_IDENTITY_PATIENCE: Duration = Duration::from_secs(15);
const CONTAINER_PATIENCE: Duration = Duration::from_secs(6);
const INSTANCE_PATIENCE: Duration = Duration::from_secs(5);

/// The metadata service is one hop away: who does not answer within this is not there.
const INSTANCE_CONNECT: Duration = Duration::from_secs(1);
/// The same on a machine that says it is none of EC2's.
const ELSEWHERE_CONNECT: Duration = Duration::from_millis(300);

const HINT: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile (--profile, AWS_PROFILE), \
     or ask for unsigned requests (--no-sign-request)";

/// The providers in their order.
pub(super) struct Chain {
    settings: ChainSettings,
    variable: Variable,
}

impl Chain {
    pub(super) fn new(settings: ChainSettings, variable: Variable) -> Chain {
        Chain { settings, variable }
    }

    async fn walk(&self) -> Result<Loaded, LoadFailure> {
        let named = self.settings.profile.as_deref();
        let profile = Profile::read(named, &self.variable).await.map_err(from_error)?;
        let mut tried = match self.settings.profile_is_explicit {
            true => vec!["environment: not looked at, because a profile was named".to_owned()],
            false => vec!["environment: AWS_ACCESS_KEY_ID is not set".to_owned()],
        };
        let profile_name = profile.name().to_owned();
        if let Some(keys) = profile.keys() {
            let credentials = usable(keys).map_err(from_error)?;
            let source = format!("the profile {profile_name}");
            return Ok(Loaded { credentials, expires_at: None, fetched_at: None, in_session: false, source });
        }
        let config = self.provider_config(&profile)?;
        if profile.has_credentials()
            && let Some(files) = profile.files()
        {
            let provider = ProfileFileCredentialsProvider::builder()
                .configure(&config)
                .profile_files(files)
                .profile_name(profile_name.clone())
                .build();
            let asked = Asked { name: format!("the profile {profile_name}"), patience: PROFILE_PATIENCE };
            return match asked.of(&provider).await? {
                Ok(loaded) => Ok(loaded),
                // It says how, so it was meant to work.
                Err(why) => Err(asked.failed(ErrorKind::Config, &why)),
            };
        }
        tried.push(format!("profile {profile_name}: no credentials in it ({})", profile.places()));

        if !self.is_set("AWS_WEB_IDENTITY_TOKEN_FILE") {
            tried.push("web identity: AWS_WEB_IDENTITY_TOKEN_FILE is not set".to_owned());
        } else {
            let provider = WebIdentityTokenCredentialsProvider::builder().configure(&config).build();
            let asked = Asked { name: "the web identity token".to_owned(), patience: WEB_IDENTITY_PATIENCE };
            match asked.of(&provider).await? {
                Ok(loaded) => return Ok(loaded),
                Err(why) => tried.push(format!("web identity: {why}")),
            }
        }

        let container = ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"];
        if !container.iter().any(|name| self.is_set(name)) {
            tried.push(format!("container: neither {} nor {} is set", container[0], container[1]));
        } else {
            let provider = EcsCredentialsProvider::builder().configure(&config).build();
            let asked = Asked { name: "the container's credentials service".to_owned(), patience: CONTAINER_PATIENCE };
            match asked.of(&provider).await? {
                Ok(loaded) => return Ok(loaded),
                Err(why) => tried.push(format!("container: {why}")),
            }
        }

        tried.push(match self.instance(&config).await? {
            Ok(loaded) => return Ok(loaded),
            Err(why) => format!("instance metadata: {why}"),
        });
        let message = format!("no credentials were found; tried {}", tried.join("; "));
        Err(LoadFailure { kind: ErrorKind::Denied, message, hint: Some(HINT), refusal: None })
    }

    /// The instance's metadata service: the one provider that nothing need be set up for, so that its
    /// silence is no failure.
    async fn instance(&self, config: &ProviderConfig) -> Result<Result<Loaded, String>, LoadFailure> {
        if (self.variable)("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(Err("AWS_EC2_METADATA_DISABLED is set".to_owned()));
        }
        let is_named = self.is_set("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let connect = if is_named || may_be_ec2() { INSTANCE_CONNECT } else { ELSEWHERE_CONNECT };
        let client = imds::Client::builder()
            .configure(config)
            .connect_timeout(connect)
            .read_timeout(INSTANCE_CONNECT)
            .operation_attempt_timeout(INSTANCE_CONNECT * 2)
            .operation_timeout(INSTANCE_PATIENCE)
            .max_attempts(2)
            .build();
        let provider = ImdsCredentialsProvider::builder().configure(config).imds_client(client).build();
        match tokio::time::timeout(INSTANCE_PATIENCE, provider.provide_credentials()).await {
            Ok(Ok(found)) => loaded(&found, "the instance metadata service").map(Ok),
            Ok(Err(error)) => Ok(Err(reason(&error))),
            Err(_) => Ok(Err(format!("no answer within {} s", INSTANCE_PATIENCE.as_secs()))),
        }
    }

    fn provider_config(&self, profile: &Profile) -> Result<ProviderConfig, LoadFailure> {
        let region = self.settings.region.clone().or_else(|| profile.property("region"));
        let says_yes = |name: &str| profile.property(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let config = ProviderConfig::without_region()
            .with_behavior_version(Some(BehaviorVersion::latest()))
            .with_region(Some(Region::new(region.unwrap_or_else(|| "us-east-1".to_owned()))))
            .with_use_fips(Some(self.settings.use_fips || says_yes("use_fips_endpoint")))
            .with_use_dual_stack(Some(self.settings.use_dual_stack || says_yes("use_dualstack_endpoint")));
        way::onto(config, &self.settings, profile).map_err(from_error)
    }

    fn is_set(&self, name: &str) -> bool {
        (self.variable)(name).is_some_and(|value| !value.is_empty())
    }
}

impl Load for Chain {
    fn load(&self) -> Loading<'_> {
        Box::pin(self.walk())
    }
}

/// One provider that was set up by somebody.
struct Asked {
    name: String,
    patience: Duration,
}

impl Asked {
    /// The provider's credentials, or why it has none and the next may be asked.
    async fn of(&self, provider: &impl ProvideCredentials) -> Result<Result<Loaded, String>, LoadFailure> {
        match tokio::time::timeout(self.patience, provider.provide_credentials()).await {
            Ok(Ok(found)) => loaded(&found, &self.name).map(Ok),
            Ok(Err(error)) => match &error {
                CredentialsError::CredentialsNotLoaded(_) => Ok(Err(reason(&error))),
                CredentialsError::InvalidConfiguration(_) => Err(self.failed(ErrorKind::Config, &reason(&error))),
                CredentialsError::ProviderTimedOut(_) => Err(self.failed(ErrorKind::Timeout, &reason(&error))),
                _ => Err(self.failed(ErrorKind::Denied, &reason(&error))),
            },
            Err(_) => {
                let why = format!("no answer within {} s", self.patience.as_secs());
                Err(self.failed(ErrorKind::Timeout, &why))
            }
        }
    }

    fn failed(&self, kind: ErrorKind, why: &str) -> LoadFailure {
        LoadFailure {
            kind,
            message: format!("{} gave no credentials: {why}", self.name),
            hint: Some("check its settings (for SSO: aws sso login), or give credentials in another way"),
            refusal: None,
        }
    }
}

fn loaded(found: &aws_credential_types::Credentials, source: &str) -> Result<Loaded, LoadFailure> {
    let credentials = usable(Credentials {
        access_key_id: found.access_key_id().to_owned(),
        secret_access_key: found.secret_access_key().to_owned(),
        session_token: found.session_token().filter(|token| !token.is_empty()).map(str::to_owned),
    })
    .map_err(from_error)?;
    Ok(Loaded {
        credentials,
        expires_at: found.expiry(),
        fetched_at: None,
        in_session: false,
        source: source.to_owned(),
    })
}

fn from_error(error: Error) -> LoadFailure {
    LoadFailure { kind: error.kind(), message: error.to_string(), hint: None, refusal: None }
}

/// Whether this machine says that it is one of EC2's, or does not say. The vendor is that of the DMI
/// tables; Xen instances have their maker's name there.
fn may_be_ec2() -> bool {
    match std::fs::read_to_string("/sys/class/dmi/id/sys_vendor") {
        Ok(vendor) => ["amazon", "xen"].iter().any(|maker| vendor.to_ascii_lowercase().contains(maker)),
        Err(_) => true,
    }
}
