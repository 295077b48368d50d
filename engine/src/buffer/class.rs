//! Size classes: pure arithmetic from a length to the piece of memory that serves it.
//!
//! Three kinds of length: tiny ones go to the allocator, small ones become pieces of a slab, large
//! ones get a mapping of their own. Four classes a doubling waste at most a fifth of a piece.

/// A huge page on x86-64 and (with 4 KiB pages) on aarch64, in bytes.
pub(super) const HUGE_PAGE: usize = 2 << 20;

/// Up to this length the general allocator is used: a piece of the smallest class would be at least
/// half waste.
pub(super) const TINY_MAX: usize = 2 << 10;

/// The longest length that is a piece of a slab.
pub(super) const SMALL_MAX: usize = 2 << 20;

/// How many classes of pieces there are, 4 KiB to [`SMALL_MAX`].
pub(super) const COUNT: usize = 37;

/// The class whose pieces hold `len` bytes, for `len` up to [`SMALL_MAX`].
pub(super) fn of(len: usize) -> usize {
    if len <= 4 << 10 {
        return 0;
    }
    let last = len - 1;
    let shift = last.ilog2() as usize - 2;
    (shift - 10) * 4 + (last >> shift) - 4 + 1
}

/// Bytes in a piece of `class`.
pub(super) fn size(class: usize) -> usize {
    (4 + class % 4) << (10 + class / 4)
}

/// Bytes in a slab of `class`: one huge page while that holds many pieces, eight beyond, so that
/// what does not divide evenly stays a small share.
pub(super) fn slab(class: usize) -> usize {
    if size(class) <= 64 << 10 { HUGE_PAGE } else { 8 * HUGE_PAGE }
}

/// Bytes to map for one `len` beyond [`SMALL_MAX`]: whole huge pages, in steps of a sixteenth of the
/// power of two below, so that lengths that differ a little share memory. None beyond what an address
/// space can hold.
pub(super) fn block(len: usize) -> Option<usize> {
    let power = 1usize << len.checked_ilog2().unwrap_or(0);
    let step = (power / 16).max(HUGE_PAGE);
    len.checked_next_multiple_of(step).filter(|&rounded| rounded <= isize::MAX as usize - HUGE_PAGE)
}

/// The largest idle block that may serve a need for `rounded` bytes: a quarter more.
pub(super) fn block_reuse_max(rounded: usize) -> usize {
    rounded.saturating_add(rounded / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_the_smallest_that_fits() {
        assert_eq!(size(0), 4 << 10);
        assert_eq!(size(COUNT - 1), SMALL_MAX);
        assert_eq!(of(SMALL_MAX), COUNT - 1);
        for class in 1..COUNT {
            let (below, own) = (size(class - 1), size(class));
            assert!(below < own && own * 4 <= below * 5);
            assert_eq!(of(own), class);
            assert_eq!(of(below + 1), class);
            let wasted = slab(class) % own;
            assert!(wasted * 8 <= slab(class), "class {own} wastes {wasted}");
        }
    }

    #[test]
    fn blocks_are_whole_huge_pages_with_little_waste() {
        for len in [SMALL_MAX + 1, 8 << 20, (1 << 30) + 1, 48 << 30] {
            let rounded = block(len).unwrap();
            assert!(rounded >= len && rounded.is_multiple_of(HUGE_PAGE));
            assert!(rounded - len <= (len / 16).max(HUGE_PAGE));
        }
        assert_eq!(block(8 << 20), Some(8 << 20));
        assert_eq!(block(1 << 30), Some(1 << 30));
        assert_eq!(block(usize::MAX), None);
        assert_eq!(block(isize::MAX as usize), None);
    }
}
