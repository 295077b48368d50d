//! Credentials that live for seconds and less, and a loader that counts.

use std::sync::atomic::AtomicUsize;

use tokio::sync::Semaphore;

use super::*;

/// Places at the gate of a loader; whoever takes them all holds it shut.
const GATE: u32 = 100;

/// Gives out credentials of one length of life, numbered, each after a delay; or fails.
struct Stub {
    loads: Arc<AtomicUsize>,
    fails: Arc<AtomicBool>,
    gate: Arc<Semaphore>,
    delay: Duration,
    life: Option<Duration>,
}

impl Load for Stub {
    fn load(&self) -> Loading<'_> {
        Box::pin(async move {
            let number = self.loads.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(self.delay).await;
            let _open = self.gate.acquire().await;
            if self.fails.load(Ordering::SeqCst) {
                let message = "the service is away".to_owned();
                return Err(LoadFailure { kind: ErrorKind::Timeout, message, hint: None, refusal: None });
            }
            Ok(Loaded {
                credentials: Credentials::new(format!("KEY{number}"), "secret"),
                // What has no life left ended before: clocks are read at slightly different moments.
                expires_at: self.life.map(|life| match life {
                    Duration::ZERO => SystemTime::now() - Duration::from_secs(1),
                    life => SystemTime::now() + life,
                }),
                fetched_at: None,
                in_session: false,
                source: "a stub".to_owned(),
            })
        })
    }
}

struct Stubbed {
    identity: Arc<Identity>,
    gate: Arc<Semaphore>,
    loads: Arc<AtomicUsize>,
    fails: Arc<AtomicBool>,
}

fn stubbed(delay: u64, life: Option<u64>) -> Stubbed {
    let (loads, fails) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let gate = Arc::new(Semaphore::new(GATE as usize));
    let stub = Stub {
        gate: Arc::clone(&gate),
        loads: Arc::clone(&loads),
        fails: Arc::clone(&fails),
        delay: Duration::from_millis(delay),
        life: life.map(Duration::from_millis),
    };
    Stubbed { identity: Arc::new(Identity::loading(Box::new(stub))), gate, loads, fails }
}

impl Stubbed {
    async fn key(&self) -> Result<String> {
        self.key_at(SystemTime::now()).await
    }

    async fn key_at(&self, now: SystemTime) -> Result<String> {
        let current = self.identity.current(now).await?;
        Ok(current.map(|current| current.credentials.access_key_id.clone()).unwrap_or_default())
    }

    fn loads(&self) -> usize {
        self.loads.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn nothing_is_fetched_before_it_is_needed_and_then_once_for_all() {
    let stubbed = Arc::new(stubbed(50, None));
    assert_eq!(stubbed.loads(), 0);
    let asking: Vec<_> =
        (0..20).map(|_| Arc::clone(&stubbed)).map(|s| tokio::spawn(async move { s.key().await })).collect();
    for asked in asking {
        assert_eq!(asked.await.unwrap().unwrap(), "KEY0");
    }
    assert_eq!(stubbed.loads(), 1);
}

#[tokio::test]
async fn no_request_waits_for_a_refresh() {
    const LIFE: u64 = 3_600_000;
    let stubbed = stubbed(0, Some(LIFE));
    stubbed.key().await.unwrap();
    let later = |share: f64| SystemTime::now() + Duration::from_millis(LIFE).mul_f64(share);
    stubbed.key_at(later(0.74)).await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(stubbed.loads(), 1, "too early");
    // The service does not answer: whoever waited for it would wait for ever.
    let held = stubbed.gate.acquire_many(GATE).await.unwrap();
    for _ in 0..500 {
        assert_eq!(stubbed.key_at(later(0.95)).await.unwrap(), "KEY0");
        tokio::task::yield_now().await;
    }
    assert_eq!(stubbed.loads(), 2, "one refresh at a time");
    drop(held);
    while stubbed.identity.generation() == 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(stubbed.key().await.unwrap(), "KEY1");
    assert_eq!(stubbed.loads(), 2);
}

#[tokio::test]
async fn the_refresh_comes_when_three_quarters_to_nine_tenths_of_the_life_are_over() {
    let life = Duration::from_secs(1000);
    for _ in 0..50 {
        let identity = Identity::anonymous();
        let now = SystemTime::now();
        let credentials = Credentials::new("A", "s");
        let expires_at = Some(now + life);
        let loaded = Loaded { credentials, expires_at, fetched_at: None, in_session: false, source: String::new() };
        let due = identity.install(loaded, now).refresh_at().unwrap().duration_since(now).unwrap();
        assert!((750..=900).contains(&due.as_secs()), "{due:?}");
    }
}

#[tokio::test]
async fn a_failed_refresh_keeps_the_old_credentials_until_they_expire() {
    let stubbed = stubbed(0, Some(1_500));
    assert_eq!(stubbed.key().await.unwrap(), "KEY0");
    stubbed.fails.store(true, Ordering::SeqCst);
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(1_400) {
        assert_eq!(stubbed.key().await.unwrap(), "KEY0");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Tried, and then paused: not once for each of some hundred requests.
    assert!((2..=3).contains(&stubbed.loads()), "{} loads", stubbed.loads());
    tokio::time::sleep(Duration::from_millis(200)).await;
    let error = stubbed.key().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("the service is away"), "{error}");
    stubbed.fails.store(false, Ordering::SeqCst);
    tokio::time::sleep(FAILURE_STANDS).await;
    assert_ne!(stubbed.key().await.unwrap(), "KEY0");
}

#[tokio::test]
async fn a_crowd_waits_for_a_silent_service_once() {
    let stubbed = Arc::new(stubbed(100, None));
    stubbed.fails.store(true, Ordering::SeqCst);
    let started = Instant::now();
    let asking: Vec<_> =
        (0..50).map(|_| Arc::clone(&stubbed)).map(|s| tokio::spawn(async move { s.key().await })).collect();
    for asked in asking {
        assert!(asked.await.unwrap().is_err());
    }
    assert_eq!(stubbed.loads(), 1);
    assert!(started.elapsed() < Duration::from_millis(900), "{:?}", started.elapsed());
}

#[tokio::test]
async fn refused_credentials_are_replaced_once_for_all_who_were_refused() {
    let stubbed = stubbed(10, Some(3_600_000));
    stubbed.key().await.unwrap();
    let refused = stubbed.identity.generation();
    let now = SystemTime::now();
    let (first, second) = tokio::join!(stubbed.identity.replace(refused, now), stubbed.identity.replace(refused, now));
    assert!(first && second);
    assert_eq!(stubbed.loads(), 2);
    assert_eq!(stubbed.key().await.unwrap(), "KEY1");
    let fixed = Arc::new(Identity::fixed(Credentials::new("A", "s")));
    assert!(!fixed.replace(fixed.generation(), now).await);
}

#[tokio::test]
async fn what_has_expired_on_arrival_is_an_error() {
    let stubbed = stubbed(0, Some(0));
    let error = stubbed.key().await.unwrap_err();
    assert!(error.to_string().contains("from a stub have expired already"), "{error}");
}

#[tokio::test]
async fn one_signer_serves_a_region_and_service() {
    let identity = Arc::new(Identity::fixed(Credentials::new("A", "s")));
    let current = identity.current(SystemTime::now()).await.unwrap().unwrap();
    let signer = current.signer("eu-west-1", "s3");
    assert!(Arc::ptr_eq(&signer, &current.signer("eu-west-1", "s3")));
    assert_eq!(current.signer("eu-west-2", "s3").region(), "eu-west-2");
    let anonymous = Arc::new(Identity::anonymous());
    assert!(anonymous.is_anonymous() && !identity.is_anonymous());
    assert!(anonymous.current(SystemTime::now()).await.unwrap().is_none());
}
