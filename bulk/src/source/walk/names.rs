//! The names in one folder, sorted as the keys under it are, close together: a flat folder of millions fits.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// What a name stands for; a link that is followed, for what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// A device, a pipe, a socket.
    Other,
}

/// Names that are left to be gone through.
pub(super) struct Names {
    /// One after the other.
    text: Vec<u8>,
    /// The next at the end.
    order: Vec<Name>,
}

#[derive(Clone, Copy)]
struct Name {
    from: u32,
    length: u16,
    kind: Kind,
}

/// What the name of the file that a download is written to before it is whole ends in: `.NAME.xxxxxxxx.wirespeed-partial`.
const TEMPORARY: &[u8] = b".wirespeed-partial";

impl Names {
    /// Reads a folder. Symbolic links that are not followed are left out.
    pub(super) fn read(folder: &Path, follow_links: bool) -> io::Result<Names> {
        let mut names = Names { text: Vec::new(), order: Vec::new() };
        for child in fs::read_dir(folder)? {
            let child = child?;
            let mut kind = child.file_type()?;
            if kind.is_symlink() {
                if !follow_links {
                    continue;
                }
                // One that leads nowhere is told of when it is looked at as a file.
                match fs::metadata(child.path()) {
                    Ok(found) => kind = found.file_type(),
                    Err(_) => {
                        names.add(child.file_name().as_bytes(), Kind::File)?;
                        continue;
                    }
                }
            }
            let kind = match kind {
                kind if kind.is_dir() => Kind::Folder,
                kind if kind.is_file() => Kind::File,
                _ => Kind::Other,
            };
            names.add(child.file_name().as_bytes(), kind)?;
        }
        names.sort();
        Ok(names)
    }

    fn add(&mut self, name: &[u8], kind: Kind) -> io::Result<()> {
        if kind == Kind::File && is_temporary(name) {
            return Ok(());
        }
        let too_large = |_| io::Error::new(io::ErrorKind::FileTooLarge, "its names take more than 4 GiB");
        let from = u32::try_from(self.text.len()).map_err(too_large)?;
        let length = u16::try_from(name.len()).map_err(too_large)?;
        self.text.extend_from_slice(name);
        self.order.push(Name { from, length, kind });
        Ok(())
    }

    fn sort(&mut self) {
        let text = &self.text;
        self.order.sort_unstable_by(|a, b| {
            let (left, right) = (a.of(text), b.of(text));
            let common = left.len().min(right.len());
            let next = |name: &[u8], kind| name.get(common).copied().or((kind == Kind::Folder).then_some(b'/'));
            // The last in order comes first, because they are taken from the end.
            right[..common].cmp(&left[..common]).then_with(|| next(right, b.kind).cmp(&next(left, a.kind)))
        });
    }

    /// The next in order.
    pub(super) fn next(&mut self) -> Option<(&[u8], Kind)> {
        let name = self.order.pop()?;
        Some((name.of(&self.text), name.kind))
    }
}

impl Name {
    fn of(self, text: &[u8]) -> &[u8] {
        let from = self.from as usize;
        &text[from..from + usize::from(self.length)]
    }
}

fn is_temporary(name: &[u8]) -> bool {
    let Some(before) = name.strip_suffix(TEMPORARY) else { return false };
    let Some(at) = before.len().checked_sub(9) else { return false };
    name.starts_with(b".") && before[at] == b'.' && before[at + 1..].iter().all(u8::is_ascii_hexdigit)
}
