//! What Linux alone offers of sockets, and what takes its place elsewhere and with the feature
//! `portable`, which lets the tests run over the substitutes.

use std::time::Duration;

use tokio::net::TcpStream;

/// Whether `SO_RCVLOWAT` changes when a reader wakes: it does for TCP on Linux.
pub(super) const HAS_LOW_WATER_MARK: bool = cfg!(all(target_os = "linux", not(feature = "portable")));

/// Sets `SO_RCVLOWAT`: a reader wakes when this many bytes have arrived.
///
/// Lowering the mark makes the kernel look again at what has already arrived (`tcp_set_rcvlowat`
/// ends in `tcp_data_ready`), so bytes that lay under the old mark wake the reader.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(super) fn set_low_water_mark(stream: &TcpStream, bytes: i32) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `stream` is borrowed, and the option's value is
    // an `i32` that lives across the call, with its own size.
    let answer = unsafe {
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, (&raw const bytes).cast(), length)
    };
    if answer == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
pub(super) fn set_low_water_mark(_stream: &TcpStream, _bytes: i32) -> std::io::Result<()> {
    Ok(())
}

/// The kernel's own measure of the round trip, taken when the connection was made: unlike the time
/// that passed here, it does not count how long this task waited for its turn.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(super) fn round_trip(stream: &TcpStream) -> Option<Duration> {
    use std::mem::MaybeUninit;
    use std::os::fd::AsRawFd;
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `stream` is borrowed, and the kernel writes at
    // most `length` bytes into `info`, which has that many.
    let answer = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if answer != 0 {
        return None;
    }
    // SAFETY: every field is an integer, for which zero is a value; the kernel wrote the others.
    let info = unsafe { info.assume_init() };
    Some(Duration::from_micros(info.tcpi_rtt.into()))
}

#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
pub(super) fn round_trip(_stream: &TcpStream) -> Option<Duration> {
    None
}

/// The system's bound for `SO_RCVBUF`; 0 where it does not say, which leaves the buffers alone.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(super) fn largest_receive_buffer() -> usize {
    let text = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
pub(super) fn largest_receive_buffer() -> usize {
    0
}
