use super::*;
use crate::dma::testing::segment;

/// One qTD, with its page pointers.
struct Cut {
    pages: Vec<BusAddress>,
    bytes: u32,
}

/// Cuts a whole transfer.
fn cut_all(segments: &[Segment], max_packet: u32) -> Option<Vec<Cut>> {
    let mut cuts = Vec::new();
    let mut cursor = Cursor::START;
    loop {
        let mut pages = Vec::new();
        let reach = cut(segments, cursor, max_packet, |index, page| {
            assert_eq!(index, pages.len());
            pages.push(page);
        })?;
        cuts.push(Cut {
            pages,
            bytes: reach.bytes,
        });
        if reach.last {
            return Some(cuts);
        }
        cursor = reach.next;
    }
}

/// The bus addresses of all bytes of a qTD, as the controller walks them (§3.5.4): the offset runs
/// on from page to page.
fn bytes(cut: &Cut) -> Vec<u64> {
    let offset = cut.pages[0].get() % 4096;
    (0..u64::from(cut.bytes))
        .map(|index| {
            let at = offset + index;
            let page = (at / 4096) as usize;
            cut.pages[page].get() / 4096 * 4096 + at % 4096
        })
        .collect()
}

fn assert_covers(segments: &[Segment], max_packet: u32) -> usize {
    let cuts = cut_all(segments, max_packet).unwrap();
    let reached: Vec<u64> = cuts.iter().flat_map(bytes).collect();
    let wanted: Vec<u64> = segments
        .iter()
        .flat_map(|piece| (0..u64::from(piece.length())).map(|byte| piece.bus().get() + byte))
        .collect();
    assert!(reached == wanted, "bytes differ for {segments:?}");
    for cut in &cuts[..cuts.len() - 1] {
        assert_eq!(cut.bytes % max_packet, 0, "ends inside a packet");
    }
    cuts.len()
}

#[test]
fn a_page_aligned_qtd_takes_twenty_kibibytes() {
    let cuts = cut_all(&[segment(0x10_0000, 0x8000)], 512).unwrap();
    assert_eq!((cuts[0].bytes, cuts[0].pages.len()), (0x5000, 5));
}

#[test]
fn every_alignment_is_covered_byte_for_byte() {
    for offset in (0..4096).step_by(61).chain([1, 511, 512, 513, 4095]) {
        for length in [1, 512, 4096, 4097, 20_480, 20_481, 40_000] {
            let count = assert_covers(&[segment(0x10_0000 + offset, length)], 512);
            assert!(count <= length.div_ceil(surely_taken(512) as usize));
        }
    }
}

#[test]
fn small_and_odd_packets_are_not_split_either() {
    for max_packet in [1, 8, 64, 1000, 1023, 1024] {
        let surely = surely_taken(max_packet) as usize;
        for offset in [0, 1, 63, 4095] {
            let count = assert_covers(&[segment(0x4000 + offset, 50_000)], max_packet.into());
            assert!(count <= 50_000_usize.div_ceil(surely));
        }
    }
}

#[test]
fn pieces_that_join_at_pages_share_a_qtd() {
    let bounced = [
        segment(0x9_0f40, 0xc0),
        segment(0x20_1000, 0x2000),
        segment(0x9_1000, 0x123),
    ];
    assert_eq!(assert_covers(&bounced, 512), 1);
}

#[test]
fn pieces_that_join_at_packets_get_a_qtd_each() {
    let pieces = [segment(0x1200, 512), segment(0x8400, 1024)];
    assert_eq!(assert_covers(&pieces, 512), 2);
}

#[test]
fn pieces_that_join_inside_a_packet_are_refused() {
    let pieces = [segment(0x1200, 13), segment(0x8400, 1024)];
    assert!(cut_all(&pieces, 512).is_none());
}

#[test]
fn empty_pieces_do_not_matter() {
    let pieces = [segment(0x1000, 0), segment(0x2000, 31), segment(0x3000, 0)];
    let cuts = cut_all(&pieces, 512).unwrap();
    assert_eq!((cuts.len(), cuts[0].bytes), (1, 31));
}

#[test]
fn no_memory_is_one_empty_packet() {
    let cuts = cut_all(&[], 512).unwrap();
    assert_eq!((cuts.len(), cuts[0].bytes), (1, 0));
    assert!(cuts[0].pages.is_empty());
}
