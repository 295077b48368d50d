//! Ranges of an object.

use wirespeed::{Method, RawAnswer};

use crate::case::{Case, Checked, Cost, Finding, case, ensure, refused, same};
use crate::store::{PART, Store, content};

const SIZE: u64 = 10_000;

pub(super) fn cases() -> Vec<Case> {
    let range = |name: &str, header: &'static str, from: u64, to: u64| {
        case(format!("ranges/{name}"), Cost::new(1, 1, 0), move |s| Box::pin(answers(s, header, from, to)))
    };
    vec![
        range("first-byte", "bytes=0-0", 0, 1),
        range("first-bytes", "bytes=0-99", 0, 100),
        range("middle", "bytes=4000-4999", 4000, 5000),
        range("open-ended", "bytes=9990-", 9990, SIZE),
        range("last-byte", "bytes=9999-9999", 9999, SIZE),
        range("suffix", "bytes=-10", SIZE - 10, SIZE),
        range("suffix-beyond-the-size", "bytes=-20000", 0, SIZE),
        range("end-beyond-the-size", "bytes=9000-20000", 9000, SIZE),
        case("ranges/whole-by-range", Cost::new(1, 1, 0), |s| Box::pin(answers(s, "bytes=0-", 0, SIZE))),
        case("ranges/start-beyond-the-size", Cost::new(1, 3, 0), |s| Box::pin(beyond(s))),
        case("ranges/suffix-of-nothing", Cost::new(1, 1, 0), |s| Box::pin(suffix_of_nothing(s))),
        case("ranges/of-an-empty-object", Cost::new(1, 2, 0), |s| Box::pin(of_an_empty_object(s))),
        case("ranges/none-is-200", Cost::new(1, 1, 0), |s| Box::pin(no_range(s))),
        case("ranges/by-the-engine", Cost::new(1, 5, 0), |s| Box::pin(by_the_engine(s))),
        // A store that refuses such a suffix is asked twice.
        case("ranges/suffix-beyond-the-size-by-the-engine", Cost::new(2, 4, 0), |s| Box::pin(suffixes(s))),
        case("ranges/in-parts-by-the-engine", Cost::new(5, 4, 0).and_bytes(3 * PART as u64, 3 * PART as u64), |s| {
            Box::pin(in_parts(s))
        }),
    ]
}

async fn ask(s: &Store, name: &str, range: &str) -> wirespeed::Result<RawAnswer> {
    s.raw(Method::Get, name).header("range", range).send().await
}

async fn answers(s: &Store, range: &str, from: u64, to: u64) -> Checked {
    let body = content(SIZE as usize, 11);
    s.put("key", body.clone()).await?;
    let answer = ask(s, "key", range).await?;
    same("the status", answer.status, 206)?;
    let expected = format!("bytes {from}-{}/{SIZE}", to - 1);
    same("Content-Range", answer.header("content-range"), Some(expected.as_str()))?;
    ensure!(answer.body == body[from as usize..to as usize], "other bytes came back");
    Ok(())
}

async fn beyond(s: &Store) -> Checked {
    s.put("key", content(SIZE as usize, 11)).await?;
    for range in ["bytes=10000-", "bytes=10000-10001", "bytes=99999-"] {
        let code = refused(range, ask(s, "key", range).await, &[416])?;
        same("the code", code.as_deref(), Some("InvalidRange"))?;
    }
    Ok(())
}

async fn suffix_of_nothing(s: &Store) -> Checked {
    s.put("key", "content").await?;
    refused("bytes=-0", ask(s, "key", "bytes=-0").await, &[416])?;
    Ok(())
}

async fn of_an_empty_object(s: &Store) -> Checked {
    s.put("key", Vec::new()).await?;
    refused("bytes=0-9", ask(s, "key", "bytes=0-9").await, &[416])?;
    same("what the engine reads", s.get("key").await?.body.len(), 0)
}

async fn no_range(s: &Store) -> Checked {
    s.put("key", "content").await?;
    let answer = s.raw(Method::Get, "key").send().await?;
    same("the status", answer.status, 200)?;
    same("Content-Range", answer.header("content-range"), None)?;
    same("Content-Length", answer.header("content-length"), Some("7"))
}

async fn by_the_engine(s: &Store) -> Checked {
    let body = content(SIZE as usize, 12);
    s.put("key", body.clone()).await?;
    for range in [0..1, 9_999..SIZE, 17..5_000, 9_000..20_000] {
        let object = s.client.get(&s.bucket, s.key("key")).range(range.clone()).buffer().await?;
        let end = range.end.min(SIZE) as usize;
        ensure!(object.body == body[range.start as usize..end], "other bytes came back for {range:?}");
        same("the size of the object", object.info.size, SIZE)?;
    }
    let beyond = s.client.get(&s.bucket, s.key("key")).range(SIZE..).buffer().await;
    refused("a range beyond the end", beyond, &[416])?;
    Ok(())
}

async fn suffixes(s: &Store) -> Checked {
    let body = content(SIZE as usize, 14);
    s.put("key", body.clone()).await?;
    s.put("empty", Vec::new()).await?;
    for (name, body) in [("key", &body[..]), ("empty", &[])] {
        let object = s.client.get(&s.bucket, s.key(name)).suffix(2 * SIZE).buffer().await?;
        ensure!(object.body == *body, "{} of {} bytes of {name} came back", object.body.len(), body.len());
    }
    Ok(())
}

async fn in_parts(s: &Store) -> Checked {
    let body = content(3 * PART, 13);
    s.put("key", body.clone()).await?;
    let from = PART as u64 / 2;
    let object = s.client.get(&s.bucket, s.key("key")).range(from..).buffer().await?;
    if object.body == body[from as usize..] {
        return Ok(());
    }
    Err(Finding::Differs("other bytes came back".to_owned()))
}
