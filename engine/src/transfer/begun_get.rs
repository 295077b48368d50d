//! A download whose first answer has begun, while its caller makes the destination.
//!
//! Between the two steps the exchange has no place in flight: the caller may take its time, and what it does
//! with the client meanwhile must not wait for this. The first bytes wait in the network. A server that loses
//! patience breaks the connection, and what is missing is asked for again.

use std::sync::Arc;

use tracing::Instrument;

use super::get::{Object, Opened, recovered};
use super::head::ObjectInfo;
use crate::buffer::Target;
use crate::error::{Error, Result};

/// A download that has begun: the server has said how much is to come, and no byte has a destination yet;
/// made by [`Get::begin`](crate::Get::begin). Dropped, it leaves nothing behind but a closed connection.
#[must_use = "nothing is received until a destination is chosen"]
pub struct BegunGet {
    opened: Opened,
}

impl BegunGet {
    pub(super) fn new(mut opened: Opened) -> BegunGet {
        if let Some((_, begun)) = &mut opened.first {
            begun.exchange.pause();
        }
        BegunGet { opened }
    }

    /// How many bytes are to come: those that were asked for, cut at the object's end.
    pub fn length(&self) -> u64 {
        self.opened.length()
    }

    /// What the server says of the object. Its checksum, and whether the bytes agree with it, are known when they have
    /// come.
    pub fn info(&self) -> &ObjectInfo {
        &self.opened.info
    }

    /// Into memory that the engine owns, as [`Get::buffer`](crate::Get::buffer).
    ///
    /// # Errors
    /// Those of [`Get::buffer`](crate::Get::buffer).
    pub async fn buffer(self) -> Result<Object> {
        let subject = self.opened.source.subject.clone();
        let received = async {
            let opened = self.resume().await;
            let engine = Arc::clone(&opened.source.engine);
            let mut kept = None;
            let object = opened.into_object(&mut kept).await?;
            engine.put_back(&subject, kept);
            Ok(object)
        };
        received.instrument(subject.span()).await
    }

    /// Into memory of the caller's, as [`Get::into_owned`](crate::Get::into_owned).
    ///
    /// # Errors
    /// Those of [`Get::into_owned`](crate::Get::into_owned).
    pub async fn into_owned<D>(self, destination: D) -> Result<(D, u64, ObjectInfo)>
    where
        D: AsMut<[u8]> + Send + 'static,
    {
        let subject = self.opened.source.subject.clone();
        let mut target = Target::from_owner(destination);
        let slot = target.whole();
        let received = async {
            let opened = self.resume().await;
            let engine = Arc::clone(&opened.source.engine);
            let length = opened.length();
            let mut kept = None;
            let info = opened.into_slice(slot, &mut kept).await?;
            engine.put_back(&subject, kept);
            Ok::<_, Error>((length, info))
        };
        let (length, info) = received.instrument(subject.span()).await?;
        Ok((recovered(target, &subject)?, length, info))
    }

    /// Takes a place in flight again, for the body.
    async fn resume(mut self) -> Opened {
        if let Some((_, begun)) = &mut self.opened.first {
            begun.exchange.resume(&self.opened.source.engine).await;
        }
        self.opened
    }
}

impl std::fmt::Debug for BegunGet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BegunGet").field("length", &self.length()).field("info", self.info()).finish_non_exhaustive()
    }
}
