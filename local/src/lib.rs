//! The local side of copies between S3 and folders: which key is which file, for the command line and for Python.
//!
//! Nothing here is sent or received, and no file is opened: keys are judged ([`Target`]), folders walked ([`entries`]),
//! names read ([`media_type`]).

pub mod media_type;
mod target;
mod walk;

pub use target::{Target, file_name};
pub use walk::{Found, Unreadable, entries};
