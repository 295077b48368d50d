//! Deleting many at once.

use md5::{Digest, Md5};
use wirespeed::Method;

use crate::case::{Case, Checked, Cost, case, ensure, refused, same};
use crate::store::{Store, base64, texts};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("deletes/many", Cost::new(6, 0, 0), |s| Box::pin(many(s))),
        case("deletes/many-with-awkward-keys", Cost::new(9, 0, 2), |s| Box::pin(awkward(s))),
        case("deletes/a-thousand-that-are-not-there", Cost::new(1, 0, 0).and_bytes(128 << 10, 128 << 10), |s| {
            Box::pin(thousand(s))
        }),
        case("deletes/more-than-a-thousand", Cost::new(1, 0, 0).and_bytes(128 << 10, 128 << 10), |s| {
            Box::pin(too_many(s))
        }),
        case("deletes/named-in-cdata", Cost::new(4, 0, 1), |s| Box::pin(in_cdata(s))),
        case("deletes/named-by-references", Cost::new(3, 0, 1), |s| Box::pin(by_references(s))),
        case("deletes/wrong-content-md5", Cost::new(3, 0, 0), |s| Box::pin(wrong_md5(s))),
        case("deletes/each-named-in-the-answer", Cost::new(3, 0, 0), |s| Box::pin(named(s))),
        case("deletes/again", Cost::new(1, 0, 2), |s| Box::pin(again(s))),
    ]
}

async fn many(s: &Store) -> Checked {
    for name in ["a", "b", "c", "d"] {
        s.put(name, name).await?;
    }
    let names = ["a", "b", "not there", "d"].map(|name| s.key(name)).to_vec();
    let failures = s.client.delete_many(&s.bucket, names).await?;
    ensure!(failures.is_empty(), "not deleted: {failures:?}");
    same("what is left", s.names().await?, ["c"])
}

async fn awkward(s: &Store) -> Checked {
    let names = ["a&b<c>", "d\"e'", "f g+h%20", "i\nj\tk", "l\rm", "\u{1f980}", " "];
    for name in names {
        s.put(name, name).await?;
    }
    let failures = s.client.delete_many(&s.bucket, names.map(|name| s.key(name)).to_vec()).await?;
    ensure!(failures.is_empty(), "not deleted: {failures:?}");
    same("what is left", s.names().await?, [""; 0])
}

async fn thousand(s: &Store) -> Checked {
    let names = (0..1_000).map(|number| s.key(&format!("none-{number}"))).collect();
    let failures = s.client.delete_many(&s.bucket, names).await?;
    same("the failures", failures.len(), 0)
}

fn document(s: &Store, count: usize) -> String {
    let objects: String =
        (0..count).map(|number| format!("<Object><Key>{}{number}</Key></Object>", s.prefix)).collect();
    format!("<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{objects}</Delete>")
}

async fn send(s: &Store, document: String) -> wirespeed::Result<wirespeed::RawAnswer> {
    let post = s.raw_bucket(Method::Post).query("delete", "").header("content-md5", base64(&Md5::digest(&document)));
    post.body(document).send().await
}

/// XML reads a CDATA section as text: the key that is left without it is another.
async fn in_cdata(s: &Store) -> Checked {
    for name in ["a<b", "a"] {
        s.put(name, "x").await?;
    }
    send(s, format!("<Delete><Object><Key>{}a<![CDATA[<b]]></Key></Object></Delete>", s.prefix)).await?;
    same("what is left", s.names().await?, ["a"])
}

/// Python's XML writer encodes what is beyond ASCII so.
async fn by_references(s: &Store) -> Checked {
    s.put("\u{e9}\u{1f980}<", "x").await?;
    send(s, format!("<Delete><Object><Key>{}&#233;&#x1F980;&#60;</Key></Object></Delete>", s.prefix)).await?;
    same("what is left", s.names().await?, [""; 0])
}

async fn wrong_md5(s: &Store) -> Checked {
    s.put("key", "x").await?;
    let document = format!("<Delete><Object><Key>{}</Key></Object></Delete>", s.key("key"));
    let post = s.raw_bucket(Method::Post).query("delete", "").header("content-md5", base64(&Md5::digest("another")));
    let code = refused("a document with a wrong Content-MD5", post.body(document).send().await, &[400])?;
    same("what is left", s.names().await?, ["key"])?;
    same("the code", code.as_deref(), Some("BadDigest"))
}

async fn too_many(s: &Store) -> Checked {
    let code = refused("1,001 keys", send(s, document(s, 1_001)).await, &[400])?;
    same("the code", code.as_deref(), Some("MalformedXML"))
}

/// Without `Quiet`, what was deleted is named, what did not exist too.
async fn named(s: &Store) -> Checked {
    s.put("0", "x").await?;
    s.put("1", "x").await?;
    let answer = send(s, document(s, 3)).await?;
    let mut keys = texts(&answer.body, "Key")?;
    keys.sort();
    same("the keys", keys, ["0", "1", "2"].map(|name| s.key(name)))?;
    ensure!(texts(&answer.body, "Code")?.is_empty(), "there were errors");
    Ok(())
}

async fn again(s: &Store) -> Checked {
    s.put("key", "x").await?;
    s.delete("key").await?;
    s.delete("key").await?;
    Ok(())
}
