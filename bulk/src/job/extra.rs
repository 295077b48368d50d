//! What a sync's target has and its source has not, kept until it may be deleted.
//!
//! Whether the source was listed to its end is only known at its end, and by then there may be millions of keys: what
//! is more than a few MiB lies in a temporary file without a name.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek as _, Write as _};
use std::mem;

use crate::entry::Entry;

/// What stays in memory.
const IN_MEMORY: usize = 4 << 20;

/// Keys and sizes, one after the other: the key's length in 4 bytes, the size in 8, the key.
#[derive(Default)]
pub(super) struct Extra {
    in_memory: Vec<u8>,
    written: Option<File>,
    count: u64,
}

impl Extra {
    pub(super) fn len(&self) -> u64 {
        self.count
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        let length = u32::try_from(entry.key.len()).unwrap_or(u32::MAX);
        self.in_memory.extend_from_slice(&length.to_le_bytes());
        self.in_memory.extend_from_slice(&entry.size.unwrap_or(u64::MAX).to_le_bytes());
        self.in_memory.extend_from_slice(entry.key.as_bytes());
        self.count += 1;
        if self.in_memory.len() >= IN_MEMORY {
            self.write_out();
        }
    }

    /// Where there is no room on the disk, memory has to do.
    fn write_out(&mut self) {
        if self.written.is_none() {
            self.written = tempfile::tempfile().ok();
        }
        if let Some(file) = &mut self.written {
            let before = file.stream_position();
            if file.write_all(&self.in_memory).is_ok() {
                self.in_memory.clear();
            } else if let Ok(before) = before {
                // Half of it may be there.
                let _ = file.set_len(before);
                let _ = file.seek(io::SeekFrom::Start(before));
            }
        }
    }

    /// All of it, in the order in which it came.
    pub(super) fn read(self) -> io::Result<Reading> {
        let in_memory = Cursor::new(self.in_memory);
        let from: Box<dyn Read + Send> = match self.written {
            None => Box::new(in_memory),
            Some(mut file) => {
                file.rewind()?;
                Box::new(BufReader::new(file).chain(in_memory))
            }
        };
        Ok(Reading { from, left: self.count })
    }
}

/// Entries that are read back.
pub(super) struct Reading {
    from: Box<dyn Read + Send>,
    left: u64,
}

impl Reading {
    /// The next; `None` after the last.
    pub(super) fn next(&mut self) -> io::Result<Option<Entry>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let (mut length, mut size) = ([0; 4], [0; 8]);
        self.from.read_exact(&mut length)?;
        self.from.read_exact(&mut size)?;
        let mut key = vec![0; u32::from_le_bytes(length) as usize];
        self.from.read_exact(&mut key)?;
        let key = String::from_utf8(mem::take(&mut key)).map_err(io::Error::other)?;
        let size = Some(u64::from_le_bytes(size)).filter(|size| *size != u64::MAX);
        Ok(Some(Entry { size, ..Entry::named(key) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_comes_back_in_order_however_much_it_is() {
        for count in [0, 3, 200_000] {
            let entry = |number: u64| Entry {
                size: (!number.is_multiple_of(3)).then_some(number),
                ..Entry::named(format!("some/longer/prefix/{number:08}é"))
            };
            let mut extra = Extra::default();
            (0..count).for_each(|number| extra.add(&entry(number)));
            assert_eq!(extra.len(), count);
            assert!(extra.in_memory.len() < IN_MEMORY);
            let mut reading = extra.read().unwrap();
            for number in 0..count {
                assert_eq!(reading.next().unwrap(), Some(entry(number)));
            }
            assert_eq!(reading.next().unwrap(), None);
        }
    }
}
