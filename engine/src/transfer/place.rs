//! Where a bucket is and who signs for it, as far as is known by now.
//!
//! A [`Place`] is what a client knows of one bucket; all requests for the bucket share it. A request takes
//! the place's [`Standing`] from an atomic pointer, without a lock and without asking anybody, for as long
//! as the credentials in it are the current ones. Otherwise, and before the first request, it is settled
//! anew: the profile is read where it may decide something, credentials are fetched, a session is opened
//! for a directory bucket, and what a redirect has taught is heeded.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::OnceCell;

use super::Engine;
use super::request::{Call, Subject};
use crate::config::Config;
use crate::credentials::{Credentials, Identity, Load, LoadFailure, Loaded, Loading, Profile, Refused, Variable};
use crate::error::{Error, ErrorKind, Result};
use crate::net::{Endpoint, Location};
use crate::wire::request::Method;
use crate::wire::sign::Signer;
use crate::wire::xml::parse_create_session;

/// More buckets than this are not remembered one by one: a client of so many forgets them all at once
/// and learns again.
const MOST_PLACES: usize = 1024;

/// How long a session lasts that does not say.
const SESSION_LIFE: Duration = Duration::from_secs(300);

/// The answer to CreateSession is under 4 KiB: tokens are long.
const SESSION_ANSWER: usize = 64 << 10;

/// The buckets of a client, and the endpoint that they are on.
pub(crate) struct Places {
    endpoint: OnceCell<Endpoint>,
    buckets: ArcSwap<HashMap<Arc<str>, Arc<Place>>>,
    /// What the builder and the environment decided; a profile decides the rest.
    decided: Vec<String>,
    variable: Variable,
}

impl Places {
    /// Places on `endpoint`; `None` where a profile must be read first.
    pub(crate) fn new(endpoint: Option<Endpoint>, decided: Vec<String>, variable: Variable) -> Places {
        Places { endpoint: OnceCell::new_with(endpoint), buckets: ArcSwap::default(), decided, variable }
    }

    /// The bucket's place; an empty name is the service itself.
    pub(crate) fn of(&self, bucket: &str) -> Arc<Place> {
        if let Some(known) = self.buckets.load().get(bucket) {
            return Arc::clone(known);
        }
        let name: Arc<str> = bucket.into();
        let place = Arc::new(Place::new(Arc::clone(&name), true));
        let mut kept = Arc::clone(&place);
        self.buckets.rcu(|known| {
            if let Some(first) = known.get(&name) {
                kept = Arc::clone(first);
                return Arc::clone(known);
            }
            kept = Arc::clone(&place);
            let mut more = if known.len() < MOST_PLACES { HashMap::clone(known) } else { HashMap::new() };
            more.insert(Arc::clone(&name), Arc::clone(&place));
            Arc::new(more)
        });
        kept
    }

    /// The endpoint, after the profile was read where it may decide something; `heed` is given what else
    /// it decides.
    async fn endpoint(&self, config: &Config, heed: impl FnOnce(&Config)) -> Result<&Endpoint> {
        self.endpoint
            .get_or_try_init(|| async {
                let profile = Profile::read(config.profile.as_deref(), &self.variable).await?;
                let mut config = config.clone();
                let source = format!("the profile {}", profile.name());
                let is_decided = |name: &str| self.decided.iter().any(|decided| decided == name);
                config.fill_from_profile(is_decided, |name| profile.property(name), &source)?;
                let endpoint = Endpoint::new(&config)?;
                heed(&config);
                Ok(endpoint)
            })
            .await
    }
}

/// What is known of one bucket.
pub(crate) struct Place {
    bucket: Arc<str>,
    standing: ArcSwapOption<Standing>,
    /// The region that a redirect named.
    region: ArcSwapOption<String>,
    /// The identity of the bucket's sessions, where it is a directory bucket.
    session: OnceLock<Arc<Identity>>,
    /// Whether sessions may be used: not for the requests that open them, or that make the bucket.
    with_sessions: bool,
}

/// Where requests for a bucket go now, and who signs them.
pub(crate) struct Standing {
    pub(crate) location: Location,
    /// `None` for an anonymous client.
    pub(crate) signer: Option<Arc<Signer>>,
    /// Whose signer it is, and of which generation.
    identity: Arc<Identity>,
    generation: u64,
    /// When to look whether the identity has newer credentials.
    look_again: Option<SystemTime>,
}

impl Standing {
    /// Whether it can be used at `now` without a look at anything else.
    fn holds(&self, now: SystemTime) -> bool {
        self.identity.generation() == self.generation && self.look_again.is_none_or(|at| now < at)
    }

    /// Replaces credentials that the server says have expired; whether there are others now.
    pub(super) async fn replace_credentials(&self, now: SystemTime) -> bool {
        self.identity.replace(self.generation, now).await
    }
}

impl Place {
    fn new(bucket: Arc<str>, with_sessions: bool) -> Place {
        Place {
            bucket,
            standing: ArcSwapOption::empty(),
            region: ArcSwapOption::empty(),
            session: OnceLock::new(),
            with_sessions,
        }
    }

    /// A place of its own for requests that must not be signed with a session's credentials.
    pub(crate) fn without_sessions(bucket: &str) -> Arc<Place> {
        Arc::new(Place::new(bucket.into(), false))
    }

    /// The bucket's name.
    pub(crate) fn bucket(&self) -> &Arc<str> {
        &self.bucket
    }

    /// The standing to use at `now`, if it is settled.
    pub(super) fn settled(&self, now: SystemTime) -> Option<Arc<Standing>> {
        self.standing.load_full().filter(|standing| standing.holds(now))
    }

    /// The bucket is in `region`: whether the request that was sent by `standing` should be sent again.
    pub(super) fn redirect(&self, region: &str, standing: &Standing) -> bool {
        // An access point's ARN says where it is.
        if standing.location.region == region || self.bucket.starts_with("arn:") {
            return false;
        }
        match self.region.load_full() {
            // Another request has been redirected since this one was sent. Whoever settled the place
            // at that moment may have put the old standing back.
            Some(learned) if *learned != standing.location.region => {
                self.standing.store(None);
                true
            }
            Some(_) => false,
            None => {
                tracing::debug!(bucket = &*self.bucket, region, "the bucket is in another region");
                self.region.store(Some(Arc::new(region.to_owned())));
                self.standing.store(None);
                true
            }
        }
    }
}

impl Engine {
    /// Whether requests are signed.
    pub(crate) fn signs(&self) -> bool {
        !self.identity.is_anonymous()
    }

    /// The endpoint. What else a profile decides takes effect with it, before anything is sent.
    async fn endpoint(&self) -> Result<&Endpoint> {
        let heed = |config: &Config| {
            self.pace.retries.set_max_attempts(config.max_attempts);
            if let Some(bundle) = &config.ca_bundle {
                self.connections.fill_bundle(bundle);
            }
        };
        self.places.endpoint(&self.config, heed).await
    }

    /// The region of the endpoint, which a new bucket is made in.
    pub(crate) async fn region(&self) -> Result<String> {
        Ok(self.endpoint().await?.region().to_owned())
    }

    /// Whether the endpoint is AWS itself.
    pub(crate) async fn is_aws(&self) -> Result<bool> {
        Ok(self.endpoint().await?.is_aws())
    }

    /// Where the subject's requests go and who signs them.
    ///
    /// # Errors
    /// Those of the settings, the profile and the providers of credentials.
    pub(crate) async fn standing(self: &Arc<Engine>, subject: &Subject) -> Result<Arc<Standing>> {
        let now = self.clock.now();
        match subject.place.settled(now) {
            Some(standing) => Ok(standing),
            None => self.settle_place(&subject.place, now).await.map_err(|error| match error.kind() {
                // What a server said to the opening of a session is about its bucket.
                ErrorKind::Config | ErrorKind::Denied if error.status().is_none() => error.about_client(),
                _ => error,
            }),
        }
    }

    async fn settle_place(self: &Arc<Engine>, place: &Arc<Place>, now: SystemTime) -> Result<Arc<Standing>> {
        let endpoint = self.endpoint().await?;
        let learned = place.region.load_full();
        let mut location = endpoint.locate(&place.bucket, learned.as_deref().map(String::as_str))?;
        location.in_session &= place.with_sessions && self.signs();
        let identity =
            if location.in_session { place.session.get_or_init(|| self.session(place)) } else { &self.identity };
        let current = identity.current(now).await?;
        let (generation, look_again) = match &current {
            Some(current) => (current.generation(), current.refresh_at()),
            None => (0, None),
        };
        if let Some(standing) = place.standing.load_full()
            && standing.generation == generation
            && standing.location == location
        {
            // A refresh is due and under way: what there is stays.
            return Ok(standing);
        }
        let signer = current.map(|current| current.signer(&location.region, location.service));
        let standing = Arc::new(Standing { location, signer, identity: Arc::clone(identity), generation, look_again });
        place.standing.store(Some(Arc::clone(&standing)));
        Ok(standing)
    }

    fn session(self: &Arc<Engine>, place: &Arc<Place>) -> Arc<Identity> {
        let opener = Sessions { engine: Arc::downgrade(self), place: Place::without_sessions(&place.bucket) };
        Arc::new(Identity::loading(Box::new(opener)))
    }
}

/// Opens sessions with a directory bucket: CreateSession.
struct Sessions {
    engine: Weak<Engine>,
    place: Arc<Place>,
}

impl Sessions {
    async fn open(&self) -> Result<Loaded> {
        let Some(engine) = self.engine.upgrade() else {
            return Err(Error::new(ErrorKind::Cancelled, "the client is gone"));
        };
        let subject = Subject::at("create session", &self.place);
        // Without a mode the session may do what the credentials may, reading only among it.
        let call = Call { query: &[("session", "")], ..Call::new(Method::Get) };
        let read = |document: Vec<u8>, ()| parse_create_session(&document);
        let session = engine.ask(&subject, &call, SESSION_ANSWER, |_| (), read).await?;
        Ok(Loaded {
            credentials: Credentials {
                access_key_id: session.access_key_id,
                secret_access_key: session.secret_access_key,
                session_token: Some(session.session_token),
            },
            expires_at: Some(session.expiration.map_or_else(|| engine.clock.now() + SESSION_LIFE, SystemTime::from)),
            fetched_at: Some(engine.clock.now()),
            in_session: true,
            source: format!("a session with {}", self.place.bucket),
        })
    }
}

impl Load for Sessions {
    fn load(&self) -> Loading<'_> {
        Box::pin(async {
            self.open().await.map_err(|error| match error.status() {
                Some(status) => LoadFailure {
                    kind: error.kind(),
                    message: format!("no session could be opened: {}", error.message()),
                    hint: error.hint(),
                    refusal: Some(Refused {
                        status,
                        code: error.code().map(str::to_owned),
                        request_id: error.request_id().map(str::to_owned),
                    }),
                },
                None => LoadFailure { kind: error.kind(), message: error.to_string(), hint: None, refusal: None },
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_one_place_and_the_number_of_places_is_bounded() {
        let places = Places::new(None, Vec::new(), Arc::new(|_: &str| None));
        assert!(Arc::ptr_eq(&places.of("a"), &places.of("a")));
        for index in 0..3 * MOST_PLACES {
            places.of(&format!("bucket-{index}"));
        }
        assert!(places.buckets.load().len() <= MOST_PLACES);
    }
}
