//! What the transport decides by itself: the machine has tables of its own, and the rest is shown on
//! the models.

use super::*;

#[test]
fn only_a_buffer_between_cache_lines_needs_no_bounce() {
    #[repr(align(64))]
    struct Lines([u8; 256]);
    let mut lines = Lines([0; 256]);
    for (start, length, aligned) in [
        (0, 256, true),
        (64, 128, true),
        (1, 63, false),
        (0, 65, false),
    ] {
        let buffer = RawBuffer::of(&mut lines.0[start..start + length]);
        assert_eq!(is_aligned(&buffer, 64), aligned, "{start} {length}");
    }
}
