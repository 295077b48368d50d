//! The XML documents of S3, read in one pass and written by hand.
//!
//! Owns the mapping from documents to values, one file a document. A body arrives whole (a page of a
//! listing is some hundred kilobytes) and is pulled through a cursor; text is copied once, into
//! the value that keeps it. Unknown elements are skipped, so that servers may add some. The name of the root
//! element is not compared, as AWS's SDKs do not: some servers use other names than S3. A document with another
//! root must contain at least one element that its reader knows.
//!
//! Refuses a document that is cut off, not well-formed, HTML, or that lacks what S3 always sends: an answer is
//! complete or it is an error. Document types are refused, and with them entities of the document's own. An
//! `<Error>` document in the place of another is [`XmlError::Service`], whatever the status of the response
//! was.

mod buckets;
mod copy;
mod delete;
mod empty;
mod error;
mod list;
mod multipart;
mod parts;
mod plain;
mod reader;
mod session;
mod tagging;
mod uploads;
mod versions;
mod writer;

pub use buckets::{BucketPage, ListedBucket, parse_list_buckets, write_create_bucket};
pub use copy::{CopyResult, parse_copy_result};
pub use delete::{
    DeleteFailure, DeleteResult, Unrepresentable, is_representable, parse_delete_result, write_delete_objects,
};
pub use empty::check_empty;
pub use error::{ErrorBody, parse_error};
pub use list::{ListPage, ListedObject, StorageClass, parse_list_objects_v2};
pub use multipart::{CompletedUpload, parse_complete_multipart, parse_initiate_multipart, write_complete_multipart};
pub use parts::{ListedPart, PartList, parse_list_parts};
pub use reader::XmlError;
pub use session::{SessionCredentials, parse_create_session};
pub use tagging::parse_tagging;
pub use uploads::{ListedUpload, UploadList, parse_list_uploads};
pub use versions::{ListedVersion, VersionList, parse_list_versions};
