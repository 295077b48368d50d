//! What a fault does to a request, and how that is written.

use std::str::FromStr;
use std::time::Duration;

use crate::verb::Verb;

/// A place that is drawn from the seed: as the argument of an [`Action`] that takes a number of bytes, anywhere in the
/// body.
pub const ANYWHERE: u64 = u64::MAX;

/// What happens to a request that a fault meets.
///
/// An action meets only operations that it can mean something to: those that change a body of data meet `get`, those
/// that change XML meet operations answered in XML.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Answers with this status and the S3 error code that goes with it (503: `SlowDown`), and does nothing else.
    Status(u16),
    /// Answers with this status and a page of HTML, as a proxy or a load balancer would, and does nothing else.
    BareStatus(u16),
    /// Answers with this status and this S3 error code, and does nothing else.
    Error(u16, String),
    /// Answers 400 `ExpiredToken`, and does nothing else.
    ExpiredToken,
    /// Answers 200 with an error of this code in the body, white space before it: as S3 may do for
    /// CompleteMultipartUpload, CopyObject, UploadPartCopy; for DeleteObjects every key is answered with the error.
    /// Nothing is done.
    ErrorInBody(String),
    /// Does what was asked, and answers with XML that is cut off and continued with nonsense.
    MalformedXml,
    /// Does what was asked, and answers with a head that no client may accept.
    MalformedHead(BadHead),
    /// Sends the answer's head in small pieces, over this time.
    SlowHead(Duration),
    /// Waits before doing what was asked.
    Delay(Duration),
    /// Never answers, does nothing, and leaves the connection open.
    Stall,
    /// Sends nothing more after this many bytes of the answer's body, and leaves the connection open.
    StallAfter(u64),
    /// Closes the connection without an answer, and without having done what was asked.
    Close,
    /// Does what was asked, and closes the connection without an answer.
    CloseAnswer,
    /// Closes the connection after this many bytes of the answer's body.
    CloseAfter(u64),
    /// Resets the connection (RST) without an answer, and without having done what was asked.
    Reset,
    /// Does what was asked, and resets the connection without an answer.
    ResetAnswer,
    /// Resets the connection after this many bytes of the answer's body.
    ResetAfter(u64),
    /// Sends the whole answer, and resets the connection.
    ResetEnd,
    /// Resets the connection after this many bytes of an upload were read; nothing is done.
    ResetUpload(u64),
    /// Cuts the answer to this many bytes with a Content-Length to match; Content-Range stays as it was.
    Short(u64),
    /// Sends this many bytes after the end of the body that Content-Length tells of, and leaves the connection open.
    Longer(u64),
    /// Adds this many bytes to the body, with a Content-Length to match; Content-Range stays as it was.
    Padded(u64),
    /// Sends this Content-Range in place of the true one.
    ContentRange(String),
    /// Sends a Content-Range that begins and ends this many bytes later than the true one.
    ShiftRange(u64),
    /// Answers with the whole object, and status 200, where a range was asked for.
    IgnoreRange,
    /// Flips bits in this many bytes of the body, at places drawn from the seed. Checksum headers stay as they were.
    Corrupt(u64),
    /// Sends the ETag as a weak one.
    WeakEtag,
    /// Sends no ETag.
    NoEtag,
    /// Replaces the object with these bytes first, as another writer might between two ranges of a download.
    Replace(Vec<u8>),
    /// The server's clock is wrong by this many seconds: a request whose time differs from it by more than 15 minutes
    /// is answered 403 `RequestTimeTooSkewed`, and Date tells the wrong time.
    Clock(i64),
    /// A request with a checksum in a trailer (or any aws-chunked body) is answered 501 `NotImplemented`.
    RefuseTrailers,
    /// A request with a checksum in its head or in a trailer is answered 400 `InvalidArgument`.
    RefuseChecksums,
    /// The bucket is held in this region: a request signed for another one is answered 301 `PermanentRedirect`, with
    /// `x-amz-bucket-region`.
    Redirect(String),
    /// The bucket is held in this region: a request signed for another one is answered 400
    /// `AuthorizationHeaderMalformed`, with the region in the XML, or for HEAD in `x-amz-bucket-region`.
    WrongRegion(String),
}

macro_rules! heads {
    ($($(#[$doc:meta])* $name:ident $text:literal,)*) => {
        /// What is wrong with a malformed head.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum BadHead {
            $($(#[$doc])* $name,)*
        }

        impl BadHead {
            /// Every one but [`BadHead::Any`].
            pub(crate) const KINDS: &[Self] = &[$(Self::$name,)*].split_at(1).1;

            fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

heads! {
    /// Any of the others, drawn from the seed.
    Any "any",
    /// The first line is not HTTP's.
    Version "version",
    /// The status is no number.
    Status "status",
    /// A line without a colon.
    Field "field",
    /// A control character in a value.
    Control "control",
    /// A Content-Length that is no number.
    Length "length",
    /// Two Content-Length that differ.
    Lengths "lengths",
    /// A Content-Length with a minus sign.
    Negative "negative",
    /// 256 KiB of header fields.
    Oversized "oversized",
    /// The connection is closed in the middle of it.
    Cut "cut",
}

impl Action {
    /// What it is called in [`crate::Stats::faults`] and on the command line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Status(_) => "status",
            Self::BareStatus(_) => "bare-status",
            Self::Error(..) => "error",
            Self::ExpiredToken => "expired-token",
            Self::ErrorInBody(_) => "error-in-body",
            Self::MalformedXml => "malformed-xml",
            Self::MalformedHead(_) => "malformed-head",
            Self::SlowHead(_) => "slow-head",
            Self::Delay(_) => "delay",
            Self::Stall => "stall",
            Self::StallAfter(_) => "stall-after",
            Self::Close => "close",
            Self::CloseAnswer => "close-answer",
            Self::CloseAfter(_) => "close-after",
            Self::Reset => "reset",
            Self::ResetAnswer => "reset-answer",
            Self::ResetAfter(_) => "reset-after",
            Self::ResetEnd => "reset-end",
            Self::ResetUpload(_) => "reset-upload",
            Self::Short(_) => "short",
            Self::Longer(_) => "longer",
            Self::Padded(_) => "padded",
            Self::ContentRange(_) => "content-range",
            Self::ShiftRange(_) => "shift-range",
            Self::IgnoreRange => "ignore-range",
            Self::Corrupt(_) => "corrupt",
            Self::WeakEtag => "weak-etag",
            Self::NoEtag => "no-etag",
            Self::Replace(_) => "replace",
            Self::Clock(_) => "clock",
            Self::RefuseTrailers => "refuse-trailers",
            Self::RefuseChecksums => "refuse-checksums",
            Self::Redirect(_) => "redirect",
            Self::WrongRegion(_) => "wrong-region",
        }
    }

    /// Whether it can mean something to this operation.
    pub(crate) fn suits(&self, verb: Verb) -> bool {
        match self {
            Self::ErrorInBody(_) => {
                matches!(verb, Verb::CompleteMultipart | Verb::Copy | Verb::UploadPartCopy | Verb::DeleteMany)
            }
            Self::MalformedXml => matches!(
                verb,
                Verb::List
                    | Verb::CompleteMultipart
                    | Verb::Copy
                    | Verb::UploadPartCopy
                    | Verb::DeleteMany
                    | Verb::CreateMultipart
                    | Verb::ListParts
                    | Verb::ListUploads
                    | Verb::ListBuckets
                    | Verb::ListVersions
                    | Verb::CreateSession
            ),
            Self::Short(_)
            | Self::Padded(_)
            | Self::ContentRange(_)
            | Self::ShiftRange(_)
            | Self::IgnoreRange
            | Self::Corrupt(_) => verb == Verb::Get,
            Self::Replace(_) => matches!(verb, Verb::Get | Verb::Head),
            Self::ResetUpload(_) | Self::RefuseTrailers | Self::RefuseChecksums => {
                matches!(verb, Verb::Put | Verb::UploadPart | Verb::CreateMultipart | Verb::CompleteMultipart)
            }
            _ => true,
        }
    }
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        let number = || argument.parse::<u64>().map_err(|_| format!("{name} takes a whole number, as in {name}:1000"));
        let place = || if argument == "anywhere" { Ok(ANYWHERE) } else { number() };
        let named = |action: fn(String) -> Self| match argument {
            "" => Err(format!("{name} takes an argument, as in {name}:VALUE")),
            argument => Ok(action(argument.to_owned())),
        };
        let time = || number().map(Duration::from_millis);
        Ok(match name {
            "status" => Self::Status(status(name, argument)?),
            "bare-status" => Self::BareStatus(status(name, argument)?),
            "error" => match argument.split_once(':') {
                Some((code, error)) if !error.is_empty() => Self::Error(status(name, code)?, error.to_owned()),
                _ => return Err("error takes a status and a code, as in error:403:AccessDenied".to_owned()),
            },
            "expired-token" => Self::ExpiredToken,
            "error-in-body" => named(Self::ErrorInBody)?,
            "malformed-xml" => Self::MalformedXml,
            "malformed-head" => Self::MalformedHead(argument.parse()?),
            "slow-head" => Self::SlowHead(time()?),
            "delay" => Self::Delay(time()?),
            "stall" => Self::Stall,
            "stall-after" => Self::StallAfter(place()?),
            "close" => Self::Close,
            "close-answer" => Self::CloseAnswer,
            "close-after" => Self::CloseAfter(place()?),
            "reset" => Self::Reset,
            "reset-answer" => Self::ResetAnswer,
            "reset-after" => Self::ResetAfter(place()?),
            "reset-end" => Self::ResetEnd,
            "reset-upload" => Self::ResetUpload(place()?),
            "short" => Self::Short(place()?),
            "longer" => Self::Longer(number()?),
            "padded" => Self::Padded(number()?),
            "content-range" => named(Self::ContentRange)?,
            "shift-range" => Self::ShiftRange(number()?),
            "ignore-range" => Self::IgnoreRange,
            "corrupt" => Self::Corrupt(number()?),
            "weak-etag" => Self::WeakEtag,
            "no-etag" => Self::NoEtag,
            "replace" => Self::Replace(vec![b'r'; number()? as usize]),
            "clock" => {
                let seconds = argument.parse().map_err(|_| "clock takes seconds, as in clock:-3600".to_owned());
                Self::Clock(seconds?)
            }
            "refuse-trailers" => Self::RefuseTrailers,
            "refuse-checksums" => Self::RefuseChecksums,
            "redirect" => named(Self::Redirect)?,
            "wrong-region" => named(Self::WrongRegion)?,
            _ => {
                return Err(format!(
                    "no such action: {text}; there are status:CODE, bare-status:CODE, error:STATUS:NAME, \
                     expired-token, error-in-body:NAME, malformed-xml, malformed-head[:KIND], \
                     slow-head:MILLISECONDS, delay:MILLISECONDS, stall, stall-after:BYTES, close, close-answer, \
                     close-after:BYTES, reset, reset-answer, reset-after:BYTES, reset-end, reset-upload:BYTES, \
                     short:BYTES, longer:BYTES, padded:BYTES, content-range:VALUE, shift-range:BYTES, ignore-range, \
                     corrupt:COUNT, weak-etag, no-etag, replace:BYTES, clock:SECONDS, refuse-trailers, \
                     refuse-checksums, redirect:REGION, wrong-region:REGION"
                ));
            }
        })
    }
}

impl FromStr for BadHead {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || text == Self::Any.name() {
            return Ok(Self::Any);
        }
        Self::KINDS.iter().find(|kind| kind.name() == text).copied().ok_or_else(|| {
            let names: Vec<_> = Self::KINDS.iter().map(|kind| kind.name()).collect();
            format!("no such malformed head: {text}; there are {}", names.join(", "))
        })
    }
}

fn status(name: &str, argument: &str) -> Result<u16, String> {
    let status = argument.parse().ok().filter(|status| (200..600).contains(status));
    status.ok_or_else(|| format!("{name} takes an HTTP status, as in {name}:503"))
}
