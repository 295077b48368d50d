//! How an object is read: which version of it, on what conditions, with whose key.

use std::sync::Arc;

use super::options::{Access, Attached, Fields, SseCustomerKey};

/// What GET and HEAD have in common beyond bucket and key.
#[derive(Clone, Default)]
pub(crate) struct ReadOptions {
    pub(crate) access: Access,
    pub(crate) version_id: Option<String>,
    pub(crate) customer_key: Option<SseCustomerKey>,
    /// Headers of the first request: what comes after it is pinned to its answer.
    pub(crate) conditions: Fields,
}

impl ReadOptions {
    /// What goes with every request, and the conditions, which go with the first.
    pub(crate) fn split(self) -> (Option<Arc<Attached>>, Fields) {
        let ReadOptions { access, version_id, customer_key, conditions } = self;
        (Attached { access, customer_key, version_id }.shared(), conditions)
    }
}

/// Gives a builder with a field `options` the methods that say how to read.
macro_rules! read_methods {
    ($builder:ident) => {
        crate::transfer::options::access_methods!($builder, this => this.options.access);

        impl $builder {
            /// Only while the entity tag is this one; otherwise an error of kind
            /// [`Precondition`](crate::ErrorKind::Precondition).
            pub fn if_match(mut self, etag: impl Into<String>) -> $builder {
                self.options.conditions.push("if-match", etag);
                self
            }

            /// Only where the entity tag is another, or does not match a list of them; otherwise an
            /// error of kind [`Precondition`](crate::ErrorKind::Precondition) and status 304:
            /// nothing is new.
            pub fn if_none_match(mut self, etag: impl Into<String>) -> $builder {
                self.options.conditions.push("if-none-match", etag);
                self
            }

            /// Only where it was written after this time, to the second; otherwise an error of kind
            /// [`Precondition`](crate::ErrorKind::Precondition) and status 304: nothing is new.
            pub fn if_modified_since(mut self, time: jiff::Timestamp) -> $builder {
                let date = crate::transfer::options::http_date(time);
                self.options.conditions.push_some("if-modified-since", date.as_deref());
                self
            }

            /// Only where it was not written after this time, to the second; otherwise an error of
            /// kind [`Precondition`](crate::ErrorKind::Precondition).
            pub fn if_unmodified_since(mut self, time: jiff::Timestamp) -> $builder {
                let date = crate::transfer::options::http_date(time);
                self.options.conditions.push_some("if-unmodified-since", date.as_deref());
                self
            }

            /// The key that the object was encrypted with, where that was the customer's own (SSE-C).
            pub fn sse_customer_key(mut self, key: crate::SseCustomerKey) -> $builder {
                self.options.customer_key = Some(key);
                self
            }
        }
    };
}
pub(crate) use read_methods;

/// Gives it the one that says which version.
macro_rules! version_method {
    ($builder:ident, $this:ident => $version:expr) => {
        impl $builder {
            /// This version of the object, not the newest. Reading by version is a permission of its
            /// own (`s3:GetObjectVersion`), and so is deleting (`s3:DeleteObjectVersion`).
            pub fn version(mut self, id: impl Into<String>) -> $builder {
                let $this = &mut self;
                $version = Some(id.into());
                self
            }
        }
    };
}
pub(crate) use version_method;
