//! Socket options that no safe library offers, with a portable fallback.

use tokio::net::TcpStream;

/// Whether `SO_RCVLOWAT` changes when a reader wakes: it does for TCP on Linux.
pub(super) const HAS_LOW_WATER_MARK: bool = cfg!(target_os = "linux");

/// Sets `SO_RCVLOWAT`: a reader wakes when this many bytes have arrived.
///
/// Lowering the mark makes the kernel look again at what has already arrived (`tcp_set_rcvlowat`
/// ends in `tcp_data_ready`), so bytes that lay under the old mark wake the reader.
#[cfg(target_os = "linux")]
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

#[cfg(not(target_os = "linux"))]
pub(super) fn set_low_water_mark(_stream: &TcpStream, _bytes: i32) -> std::io::Result<()> {
    Ok(())
}
