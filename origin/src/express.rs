//! Signatures for the service `s3express`, which the S3 crate does not know.
//!
//! A request that is signed for it is checked here, and signed anew for `s3` with the same key, so that all that follows
//! (aws-chunked bodies among it) is as for any other request. Only signatures in the Authorization header.

use hmac::{Hmac, Mac};
use http::header::{AUTHORIZATION, HeaderValue};
use http::{HeaderMap, Request};
use s3s::auth::SecretKey;
use sha2::{Digest, Sha256};

use crate::access::Keys;
use crate::store::intake::hex;

const SERVICE: &str = "s3express";

/// Signs a request for `s3` that was rightly signed for `s3express`. Any other is left as it is: whoever looks at it next
/// refuses it.
pub(crate) fn translate<B>(request: &mut Request<B>, keys: &Keys) {
    let Some(authorization) = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
        return;
    };
    if !authorization.contains("/s3express/") {
        return;
    }
    if let Some(signed) = signed_anew(request, authorization, keys)
        && let Ok(value) = HeaderValue::from_str(&signed)
    {
        request.headers_mut().insert(AUTHORIZATION, value);
    }
}

fn signed_anew<B>(request: &Request<B>, authorization: &str, keys: &Keys) -> Option<String> {
    let field = |name: &str| {
        let found = authorization.split_once(name)?.1;
        Some(found.split([',', ' ']).next().unwrap_or(found))
    };
    let (credential, names, signature) = (field("Credential=")?, field("SignedHeaders=")?, field("Signature=")?);
    let (access_key, scope) = credential.split_once('/')?;
    let [date, region, SERVICE, "aws4_request"] = scope.split('/').collect::<Vec<_>>()[..] else { return None };
    let secret = keys.secret(access_key)?;
    let canonical = canonical_request(request, names)?;
    let time = request.headers().get("x-amz-date")?.to_str().ok()?;
    let sign = |service: &str| signature_of(&secret, &canonical, time, date, region, service);
    if sign(SERVICE) != signature {
        return None;
    }
    let scope = format!("{access_key}/{date}/{region}/s3/aws4_request");
    Some(format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={names}, Signature={}", sign("s3")))
}

/// As the signer of the request had it, by the specification of Signature Version 4.
fn canonical_request<B>(request: &Request<B>, names: &str) -> Option<String> {
    let mut pairs: Vec<_> = request.uri().query().unwrap_or("").split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.sort_unstable();
    let pairs = pairs.into_iter().map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") });
    let query = pairs.collect::<Vec<_>>().join("&");
    let headers: String = names.split(';').map(|name| value_of(request.headers(), name)).collect::<Option<_>>()?;
    let payload = request.headers().get("x-amz-content-sha256")?.to_str().ok()?;
    Some(format!("{}\n{}\n{query}\n{headers}\n{names}\n{payload}", request.method(), request.uri().path()))
}

fn value_of(headers: &HeaderMap, name: &str) -> Option<String> {
    let values: Option<Vec<_>> = headers.get_all(name).iter().map(|value| value.to_str().ok()).collect();
    let values = values?.into_iter().map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
    Some(format!("{name}:{}\n", values.collect::<Vec<_>>().join(",")))
}

fn signature_of(secret: &SecretKey, canonical: &str, time: &str, date: &str, region: &str, service: &str) -> String {
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
    let key = format!("AWS4{}", secret.expose()).into_bytes();
    let key = scope.split('/').fold(key, |key, part| hmac(&key, part));
    hex(&hmac(&key, &to_sign))
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    // A key of any length will do for an HMAC.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
