//! Slots, targets and buffers, over every kind of memory.

use super::*;
use bytes::{BufMut, Bytes, BytesMut};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

fn pool() -> Pool {
    Pool::new(PoolConfig { retain_bytes: 64 << 20, idle: Duration::from_secs(60), huge_pages: true })
}

/// Fills a slot with its own index so that a byte in the wrong place shows.
fn stamp(slot: &mut Slot, value: u8) {
    while !slot.is_full() {
        let run = [value; 100];
        assert!(slot.put_slice(&run) > 0);
    }
}

#[test]
fn threads_fill_disjoint_slots_of_one_buffer() {
    let lens = if cfg!(miri) { vec![1, 3_000] } else { vec![1, 3_000, 100_000, 5 << 20] };
    for len in lens {
        let mut target = pool().reserve(len).unwrap();
        let mut rest = target.whole();
        assert_eq!((rest.capacity(), target.len()), (len, len));
        let part = len.div_ceil(7);
        thread::scope(|threads| {
            for index in 0.. {
                if rest.capacity() == 0 {
                    break;
                }
                let mut slot = rest.split_to(part);
                threads.spawn(move || stamp(&mut slot, index));
            }
        });
        drop(rest);
        let buffer = target.freeze().unwrap();
        assert_eq!(buffer.len(), len);
        for (at, byte) in buffer.iter().enumerate() {
            assert_eq!(usize::from(*byte), at / part);
        }
    }
}

#[test]
fn freezing_needs_every_byte_and_no_slot() {
    let pool = pool();
    let mut target = pool.reserve(10_000).unwrap();
    let mut slot = target.whole();
    assert_eq!(slot.put_slice(&[1; 4_000]), 4_000);
    drop(slot);
    let error = target.freeze().unwrap_err();
    assert_eq!(error, FreezeError::Incomplete { filled: 4_000, len: 10_000 });
    assert!(error.to_string().contains("4000 of a buffer's 10000"));

    let mut target = pool.reserve(10).unwrap();
    let mut slot = target.whole();
    stamp(&mut slot, 1);
    let refused = target.freeze().unwrap_err();
    assert_eq!(refused, FreezeError::SlotsAlive { len: 10 });
    assert_eq!(slot.filled(), [1; 10]);

    let mut target = pool.reserve(10).unwrap();
    std::mem::drop(target.whole());
    // What is handed out once is gone: a second slot would overlap the first.
    assert_eq!(target.whole().capacity(), 0);
    assert!(target.freeze().is_err());
}

#[test]
fn a_slot_alone_over_its_memory_gives_out_what_it_has_filled() {
    for len in [3_000, 100_000] {
        let pool = pool();
        let mut target = pool.reserve(len).unwrap();
        let mut slot = target.whole();
        stamp(&mut slot.split_to(len / 3), 1);
        assert_eq!(slot.put_slice(&[2; 7]), 7.min(len - len / 3));
        let filled = slot.filled().to_vec();
        drop(target);
        let buffer = slot.freeze().unwrap();
        assert!(*buffer == *filled);
        assert!(pool.stats().in_use > 0);
        drop(buffer);
        assert_eq!(pool.stats().in_use, 0);
    }
    let mut target = pool().reserve(100).unwrap();
    let mut slot = target.whole();
    stamp(&mut slot, 3);
    assert_eq!(slot.freeze().unwrap_err(), FreezeError::SlotsAlive { len: 100 }, "its target is alive");
    let mut rest = pool().reserve(100).unwrap().whole();
    let mut front = rest.split_to(50);
    stamp(&mut front, 3);
    assert_eq!(front.freeze().unwrap_err(), FreezeError::SlotsAlive { len: 50 }, "another slot is alive");
}

#[test]
fn nothing_is_a_buffer_too() {
    let mut target = pool().reserve(0).unwrap();
    let slot = target.whole();
    assert!(slot.is_full() && target.is_empty());
    drop(slot);
    let buffer = target.freeze().unwrap();
    assert!(buffer.is_empty());
    assert_eq!(Bytes::from(buffer.slice(..)), Bytes::new());
}

#[test]
fn a_slot_never_takes_more_than_it_holds() {
    let mut target = pool().reserve(5_000).unwrap();
    let mut rest = target.whole();
    let mut slot = rest.split_to(10);
    assert_eq!(slot.put_slice(&[7; 64]), 10);
    assert_eq!(slot.put_slice(&[7; 64]), 0);
    assert_eq!((slot.remaining_mut(), slot.chunk_mut().len()), (0, 0));
    assert_eq!((rest.filled(), rest.remaining()), (&[][..], 4_990));
    let overrun = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // SAFETY: it breaks the contract on purpose; the slot must refuse before it believes it.
        unsafe { slot.advance_mut(1) }
    }));
    assert!(overrun.is_err());
    assert_eq!(slot.filled().len(), 10);
}

#[test]
fn cutting_leaves_filled_bytes_where_they_lie() {
    let mut target = pool().reserve(10).unwrap();
    let mut rest = target.whole();
    assert_eq!(rest.put_slice(b"abcdef"), 6);
    let front = rest.split_to(4);
    assert_eq!((front.filled(), front.capacity()), (&b"abcd"[..], 4));
    assert_eq!((rest.filled(), rest.remaining()), (&b"ef"[..], 4));
    let mut second = rest.split_to(3);
    assert_eq!((second.filled(), second.remaining()), (&b"ef"[..], 1));
    assert_eq!(rest.filled(), b"");
    second.clear();
    assert_eq!(second.put_slice(b"EFG"), 3);
    let mut last = rest.split_to(100);
    assert_eq!((last.capacity(), rest.capacity()), (3, 0));
    assert_eq!(last.put_slice(b"hij"), 3);
    drop((front, second, last, rest));
    assert_eq!(*target.freeze().unwrap(), *b"abcdEFGhij");
}

#[test]
fn a_cancelled_target_leaves_its_memory_to_the_last_slot() {
    let pool = pool();
    for len in [1_000, 64 << 10, 3 << 20] {
        let mut target = pool.reserve(len).unwrap();
        let mut slot = target.whole();
        let in_use = pool.stats().in_use;
        let (go, wait) = mpsc::channel::<()>();
        let late = thread::spawn(move || {
            wait.recv().unwrap();
            let room = slot.remaining().min(5_000);
            assert_eq!(slot.put_slice(&vec![9; room]), room);
            assert!(slot.filled().iter().all(|&byte| byte == 9));
        });
        drop(target);
        assert_eq!(pool.stats().in_use, in_use, "the slot holds it");
        let mut other = pool.reserve(len).unwrap();
        let mut others = other.whole();
        let room = others.remaining().min(5_000);
        assert_eq!(others.put_slice(&vec![1; room]), room);
        go.send(()).unwrap();
        late.join().unwrap();
        assert!(others.filled().iter().all(|&byte| byte == 1));
        drop((other, others));
        assert_eq!(pool.stats().in_use, 0);
    }
}

#[test]
fn slices_share_and_the_last_one_gives_back() {
    let pool = pool();
    let mut target = pool.reserve(8_000).unwrap();
    let mut slot = target.whole();
    slot.put_slice(&[1; 4_000]).checked_sub(4_000).unwrap();
    stamp(&mut slot, 2);
    drop(slot);
    let buffer = target.freeze().unwrap();
    let edge = buffer.slice(3_999..4_001);
    assert_eq!(edge, *[1, 2].as_slice());
    assert_eq!(edge.as_ptr(), buffer[3_999..].as_ptr());
    assert_eq!(edge.slice(1..=1), buffer.slice(4_000..4_001));
    assert_eq!(format!("{edge:?}"), "Buffer(2 bytes)");
    assert!(std::panic::catch_unwind(|| edge.slice(1..3)).is_err());
    let bytes = Bytes::from(buffer.slice(..10));
    assert_eq!(bytes.as_ptr(), buffer.as_ptr());
    drop((buffer, edge));
    assert_eq!(pool.stats().in_use, 8 << 10);
    drop(bytes);
    assert_eq!(pool.stats().in_use, 0);
}

#[test]
fn an_owner_comes_back_at_the_same_address() {
    let owner = vec![5; 1_000];
    let address = owner.as_ptr();
    let mut target = Target::from_owner(owner);
    let mut rest = target.whole();
    let mut slot = rest.split_to(600);
    assert_eq!(slot.put_slice(&[6; 10]), 10);
    drop(rest);
    let refused = target.recover().unwrap_err();
    assert!(refused.to_string().contains("1000 bytes"));
    thread::spawn(move || assert_eq!(slot.put_slice(&[7; 10]), 10)).join().unwrap();
    let owner = refused.into_target().recover().unwrap();
    assert_eq!(owner.as_ptr(), address);
    assert_eq!(owner[8..12], [6, 6, 7, 7]);
    assert_eq!(owner[20..], [5; 980]);

    // Bytes inside the owner itself, and owners of other shapes.
    let mut inline = Target::from_owner([0; 4]);
    assert_eq!(inline.whole().put_slice(b"wxyz"), 4);
    assert_eq!(inline.recover().unwrap(), *b"wxyz");
    let mut boxed = Target::from_owner(vec![0; 3].into_boxed_slice());
    assert_eq!(boxed.whole().put_slice(b"abc"), 3);
    assert_eq!(*boxed.recover().unwrap(), *b"abc");
    let mut shared = Target::from_owner(BytesMut::from(&b"..."[..]));
    assert_eq!((shared.len(), shared.is_empty()), (3, false));
    assert_eq!(shared.whole().put_slice(b"!"), 1);
    assert_eq!(shared.recover().unwrap(), b"!.."[..]);
}

#[test]
fn an_owner_that_is_not_recovered_is_dropped_after_the_last_slot() {
    struct Tells(Vec<u8>, mpsc::Sender<()>);
    impl AsMut<[u8]> for Tells {
        fn as_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }
    impl Drop for Tells {
        fn drop(&mut self) {
            self.1.send(()).unwrap();
        }
    }
    let (tell, told) = mpsc::channel();
    let mut target = Target::from_owner(Tells(vec![0; 8], tell));
    let mut slot = target.whole();
    drop(target);
    assert!(told.try_recv().is_err());
    stamp(&mut slot, 1);
    drop(slot);
    told.try_recv().unwrap();
}

#[test]
fn lending_blocks_until_the_last_slot_is_gone() {
    let mut memory = vec![0; 100];
    let mut workers = Vec::new();
    let returned = lend_blocking(&mut memory, |mut rest| {
        for index in 0..4 {
            let mut slot = rest.split_to(25);
            workers.push(thread::spawn(move || {
                thread::sleep(Duration::from_millis(20 * u64::from(index)));
                stamp(&mut slot, index);
            }));
        }
        "returned"
    });
    // Not joined before: every byte is there because lending waited for the slots.
    assert_eq!(returned, "returned");
    for (at, byte) in memory.iter().enumerate() {
        assert_eq!(usize::from(*byte), at / 25);
    }
    for worker in workers {
        worker.join().unwrap();
    }
}

#[test]
fn lending_waits_even_when_the_borrower_panics() {
    let mut memory = [0; 10];
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        lend_blocking(&mut memory, |mut slot| {
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(50));
                stamp(&mut slot, 3);
            });
            panic!("the borrower fails");
        })
    }));
    assert!(caught.is_err());
    assert_eq!(memory, [3; 10]);
}

/// Reads until `max` bytes came or the file ends: one read may bring less, and under Miri often does.
fn read_all(slot: &mut Slot, file: &File, offset: u64, max: usize) -> usize {
    let mut done = 0;
    while done < max {
        match slot.read_at(file, offset + done as u64, max - done).unwrap() {
            0 => break,
            read => done += read,
        }
    }
    done
}

#[test]
fn files_are_read_at_a_position_into_what_has_room() {
    let mut file = tempfile::tempfile().unwrap();
    let content: Vec<u8> = (0..40_000u32).map(|n| (n % 251) as u8).collect();
    file.write_all(&content).unwrap();
    file.rewind().unwrap();
    let mut target = pool().reserve(30_000).unwrap();
    let mut slot = target.whole();
    assert_eq!(read_all(&mut slot, &file, 100, 7), 7);
    assert_eq!(slot.filled(), &content[100..107]);
    assert_eq!(read_all(&mut slot, &file, 107, usize::MAX), 29_993);
    assert!(slot.is_full());
    assert_eq!(slot.read_at(&file, 0, usize::MAX).unwrap(), 0);
    drop(slot);
    assert_eq!(*target.freeze().unwrap(), content[100..30_100]);

    let mut target = pool().reserve(30_000).unwrap();
    let mut slot = target.whole();
    assert_eq!(read_all(&mut slot, &file, 39_990, 100), 10);
    assert_eq!(slot.read_at(&file, 40_000, 100).unwrap(), 0);
    let error = slot.read_at(&file, u64::MAX, 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(slot.filled(), &content[39_990..]);
}

#[test]
fn debug_output_shows_no_contents() {
    let mut target = pool().reserve(6).unwrap();
    let mut slot = target.whole();
    assert_eq!(slot.put_slice(b"hush"), 4);
    assert_eq!(format!("{slot:?} {target:?}"), "Slot(4 of 6 bytes) Target(6 bytes)");
    let owned = Target::from_owner(b"hush".to_vec());
    assert_eq!(format!("{owned:?}"), "OwnedTarget(4 bytes)");
}

#[test]
fn handles_cross_threads() {
    fn sent_and_shared<T: Send + Sync + 'static>() {}
    sent_and_shared::<(Pool, Target, OwnedTarget<Vec<u8>>, Slot, Buffer)>();
    sent_and_shared::<OwnedTarget<Box<dyn AsMut<[u8]> + Send>>>();
}
