//! Server-side encryption, as far as its headers go: accepted, remembered, shown, and asked for again.
//!
//! Nothing is encrypted. What is checked is what a client can get wrong: an object put with a key of the client's own is
//! only read with the same key, and the MD5 of a key must be the key's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::ServerSideEncryption;
use s3s::{S3Result, s3_error};

use crate::store::object::Encryption;

/// The MD5 of a client's key among the headers of an input.
macro_rules! customer {
    ($input:expr) => {
        $crate::protocol::encryption::customer_key(
            $input.sse_customer_algorithm.take(),
            $input.sse_customer_key.take(),
            $input.sse_customer_key_md5.take(),
        )
    };
}
pub(super) use customer;

/// The same, for the source of a copy.
macro_rules! source_customer {
    ($input:expr) => {
        $crate::protocol::encryption::customer_key(
            $input.copy_source_sse_customer_algorithm.take(),
            $input.copy_source_sse_customer_key.take(),
            $input.copy_source_sse_customer_key_md5.take(),
        )
    };
}
pub(super) use source_customer;

/// The encryption that an input asks for.
macro_rules! asked {
    ($input:expr) => {
        $crate::protocol::encryption::customer!($input).and_then(|customer| {
            $crate::protocol::encryption::chosen(
                customer,
                $input.server_side_encryption.take(),
                $input.ssekms_key_id.take(),
            )
        })
    };
}
pub(super) use asked;

/// Shows in an output what an object is said to be encrypted with.
macro_rules! show_encryption {
    ($output:expr, $encryption:expr) => {{
        match $encryption {
            Some($crate::store::object::Encryption::Managed { algorithm, key }) => {
                $output.server_side_encryption = Some(s3s::dto::ServerSideEncryption::from(algorithm.clone()));
                $output.ssekms_key_id = key.clone();
            }
            Some($crate::store::object::Encryption::Customer { md5 }) => {
                $output.sse_customer_algorithm = Some("AES256".to_owned());
                $output.sse_customer_key_md5 = Some(md5.clone());
            }
            None => {}
        }
    }};
}
pub(super) use show_encryption;

pub(super) fn customer_key(
    algorithm: Option<String>,
    key: Option<String>,
    md5: Option<String>,
) -> S3Result<Option<String>> {
    let (algorithm, key, md5) = match (algorithm, key, md5) {
        (None, None, None) => return Ok(None),
        (Some(algorithm), Some(key), Some(md5)) => (algorithm, key, md5),
        _ => {
            return Err(s3_error!(
                InvalidArgument,
                "Requests specifying Server Side Encryption with Customer provided keys must provide the algorithm, the \
                 key and its MD5."
            ));
        }
    };
    if algorithm != "AES256" {
        return Err(s3_error!(InvalidArgument, "The requested encryption algorithm is not valid, must be AES256."));
    }
    let key = STANDARD.decode(&key).ok().filter(|key| key.len() == 32);
    let key =
        key.ok_or_else(|| s3_error!(InvalidArgument, "The secret key was invalid for the specified algorithm."))?;
    let mut computed = Md5::new();
    computed.update(&key);
    if STANDARD.encode(computed.finalize()) != md5 {
        return Err(s3_error!(
            InvalidArgument,
            "The calculated MD5 hash of the key did not match the hash that was provided."
        ));
    }
    Ok(Some(md5))
}

pub(super) fn chosen(
    customer: Option<String>,
    managed: Option<ServerSideEncryption>,
    key: Option<String>,
) -> S3Result<Option<Encryption>> {
    match (customer, managed.map(|managed| managed.as_str().to_owned()), key) {
        (None, None, None) => Ok(None),
        (Some(md5), None, None) => Ok(Some(Encryption::Customer { md5 })),
        (None, Some(algorithm), None) if algorithm == ServerSideEncryption::AES256 => {
            Ok(Some(Encryption::Managed { algorithm, key: None }))
        }
        (None, Some(algorithm), key) if algorithm.starts_with(ServerSideEncryption::AWS_KMS) => {
            let key = key.unwrap_or_else(|| "arn:aws:kms:us-east-1:123456789012:key/default".to_owned());
            Ok(Some(Encryption::Managed { algorithm, key: Some(key) }))
        }
        _ => Err(s3_error!(InvalidArgument, "The encryption request you specified is not valid.")),
    }
}

/// Whether a request that brings this key may read.
pub(super) fn unlock(encryption: Option<&Encryption>, customer: Option<String>) -> S3Result<()> {
    match (encryption, customer) {
        (Some(Encryption::Customer { md5 }), Some(given)) if *md5 == given => Ok(()),
        (Some(Encryption::Customer { .. }), Some(_)) => Err(s3_error!(AccessDenied, "Access Denied")),
        (Some(Encryption::Customer { .. }), None) => Err(s3_error!(
            InvalidRequest,
            "The object was stored using a form of Server Side Encryption. The correct parameters must be provided to \
             retrieve the object."
        )),
        (_, Some(_)) => Err(s3_error!(InvalidRequest, "The encryption parameters are not applicable to this object.")),
        (_, None) => Ok(()),
    }
}
