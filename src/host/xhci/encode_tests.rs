use super::super::ring::ProducerRing;
use super::super::trb::{LENGTH_MASK, kind};
use super::*;
use crate::dma::testing::with_pool;
use crate::dma::{Class, Owner, Rules};
use crate::host::Token;

/// Data in a pool piece of 192 KiB that starts on a 64 KiB boundary: (offset, length) each.
fn with_written<R>(
    pieces: &[(usize, usize)],
    direction: Direction,
    setup: Option<SetupPacket>,
    test: impl FnOnce(u64, &[Trb]) -> R,
) -> R {
    with_pool(80, |pool| {
        let rules = Rules::aligned(0x1_0000);
        let data = pool
            .allocate(Owner::Host, Class::Bounce, 0x3_0000, rules)
            .unwrap();
        let segments: Vec<Segment> = pieces
            .iter()
            .map(|(offset, length)| data.raw(*offset, *length).unwrap().into())
            .collect();
        let ring = ProducerRing::allocate(pool, Owner::Host, 32, 0).unwrap();
        let transfer = Transfer {
            token: Token(1),
            setup,
            direction,
            segments: &segments,
            report: Report::Always,
            stream: 0,
        };
        let form = setup.map_or(Form::Plain, |_| Form::Control);
        let length = setup.map_or(transfer.length(), |packet| u32::from(packet.length));
        let count = count_blocks(&segments, length, form).unwrap();
        let mut writer = Writer::new(&ring, Units::Packets(512), 0);
        let flags = completion_flags(transfer.report);
        match setup {
            None => writer.data(&transfer, length, None, flags),
            Some(packet) => writer.control(&transfer, packet, flags),
        }
        assert_eq!(writer.next, count, "counted as many as were written");
        writer.finish();
        let blocks: Vec<Trb> = (0..count).map(|index| ring.read(index)).collect();
        assert!(blocks.iter().all(|block| block.has(Flags::CYCLE)));
        test(data.bus().get(), &blocks)
    })
}

fn lengths(blocks: &[Trb]) -> Vec<u32> {
    blocks
        .iter()
        .map(|block| block.status & LENGTH_MASK)
        .collect()
}

fn sizes(blocks: &[Trb]) -> Vec<u32> {
    blocks.iter().map(|block| block.status >> 17 & 31).collect()
}

#[test]
fn data_is_cut_at_64_kib_and_only_there() {
    with_written(
        &[(0xff00, 0x1_0200)],
        Direction::In,
        None,
        |base, blocks| {
            assert_eq!(lengths(blocks), [0x100, 0x1_0000, 0x100]);
            assert_eq!(blocks[1].parameter, base + 0x1_0000);
            assert_eq!(blocks[2].parameter, base + 0x2_0000);
        },
    );
    with_written(&[(0, 0x1_0000)], Direction::In, None, |_, blocks| {
        assert_eq!(lengths(blocks), [0x1_0000], "64 KiB is a legal length");
    });
}

#[test]
fn all_blocks_but_the_last_are_chained_and_the_last_reports() {
    let pieces = [(60, 4), (0x40, 0x1000), (0x8000, 10)];
    with_written(&pieces, Direction::In, None, |_, blocks| {
        let flags: Vec<u32> = blocks.iter().map(|block| block.control & 0x3fe).collect();
        assert_eq!(flags, [0x14, 0x14, 0x24]);
        assert!(blocks.iter().all(|block| block.kind() == kind::NORMAL));
    });
    with_written(&pieces, Direction::Out, None, |_, blocks| {
        let flags: Vec<u32> = blocks.iter().map(|block| block.control & 0x3fe).collect();
        assert_eq!(flags, [0x10, 0x10, 0x20], "no short packets on the way out");
    });
}

#[test]
fn td_size_counts_the_packets_to_come() {
    // 4 + 4096 + 924 bytes are 10 packets of 512: none is whole after 4 bytes, 8 after 4100.
    let pieces = [(0, 4), (0x1000, 4096), (0x4000, 924)];
    with_written(&pieces, Direction::In, None, |_, blocks| {
        assert_eq!(sizes(blocks), [10, 2, 0]);
    });
    with_written(&[(1, 0x2_ff00)], Direction::In, None, |_, blocks| {
        assert_eq!(sizes(blocks), [31, 31, 0], "capped");
    });
}

#[test]
fn before_version_1_td_size_counts_kib_with_the_block_itself() {
    assert_eq!(Units::Kibibytes.td_size(5000, 1000, 4000), 4);
    assert_eq!(Units::Kibibytes.td_size(5000, 4000, 0), 0);
    assert_eq!(Units::Kibibytes.td_size(1 << 20, 1 << 16, 1 << 19), 31);
}

#[test]
fn td_size_never_disagrees_with_the_definition() {
    for packet in [8_u16, 64, 512, 1024] {
        let length = u32::from(packet) * 40 + 3;
        for done in (1..length).step_by(7) {
            let definition =
                (length.div_ceil(u32::from(packet)) - done / u32::from(packet)).min(31);
            let size = Units::Packets(packet).td_size(length, 1, length - done);
            assert_eq!(size, definition, "{packet} {done}");
        }
    }
}

#[test]
fn a_transfer_without_data_is_one_empty_block() {
    with_written(&[], Direction::Out, None, |_, blocks| {
        assert_eq!(lengths(blocks), [0]);
        assert_eq!(sizes(blocks), [0]);
    });
}

#[test]
fn a_control_read_has_three_stages_and_data_as_long_as_it_asks_for() {
    let setup = SetupPacket::device_descriptor(18);
    with_written(&[(0, 64)], Direction::In, Some(setup), |base, blocks| {
        let kinds: Vec<u32> = blocks.iter().map(Trb::kind).collect();
        assert_eq!(kinds, [kind::SETUP, kind::DATA, kind::STATUS]);
        assert_eq!(lengths(blocks), [8, 18, 0]);
        assert_eq!(blocks[1].parameter, base);
        assert!(blocks[1].has(Flags::FROM_DEVICE) && blocks[1].has(Flags::INTERRUPT_ON_SHORT));
        assert!(!blocks[1].has(Flags::INTERRUPT_ON_COMPLETION));
        assert!(blocks[2].has(Flags::INTERRUPT_ON_COMPLETION));
    });
}

#[test]
fn a_data_stage_in_pieces_is_a_data_block_and_normal_ones() {
    let setup = SetupPacket::configuration_descriptor(0, 200);
    with_written(
        &[(0, 100), (0x100, 100)],
        Direction::In,
        Some(setup),
        |_, blocks| {
            let kinds: Vec<u32> = blocks.iter().map(Trb::kind).collect();
            assert_eq!(kinds, [kind::SETUP, kind::DATA, kind::NORMAL, kind::STATUS]);
            assert!(blocks[1].has(Flags::CHAIN) && !blocks[2].has(Flags::CHAIN));
        },
    );
}

#[test]
fn a_data_stage_longer_than_its_memory_is_refused() {
    assert_eq!(
        count_blocks(&[], 18, Form::Control),
        Err(HostError::Unsupported)
    );
}

#[test]
fn the_first_block_is_handed_over_last() {
    with_pool(8, |pool| {
        let ring = ProducerRing::allocate(pool, Owner::Host, 16, 0).unwrap();
        let mut writer = Writer::new(&ring, Units::Packets(512), 3);
        for _ in 0..3 {
            writer.put(&Trb::normal(BusAddress::new(0), 1, 0, Flags::CHAIN));
        }
        let handed: Vec<bool> = (3..6)
            .map(|index| ring.read(index).has(Flags::CYCLE))
            .collect();
        assert_eq!(handed, [false, true, true]);
        writer.finish();
        assert!(ring.read(3).has(Flags::CYCLE));
    });
}

/// A Synopsys core fetches few blocks ahead, and stalls where so many hold less than a packet.
#[test]
fn four_blocks_in_a_row_hold_a_packet_or_end_the_transfer() {
    const PACKET: u32 = 1024;
    for head in [0, 1, 63, 127] {
        for tail in [0, 1, 63, 127] {
            for before_cut in [16, 64, 128, 4096] {
                for behind_cut in [16, 64, 128, 0x1_0000 + 16] {
                    // Bounced ends lie elsewhere; the middle is cut at a multiple of 64 KiB.
                    let middle = (0x1_0000 - before_cut, before_cut + behind_cut);
                    let pieces = [(0, head), middle, (0x100, tail)];
                    let used: Vec<_> = pieces
                        .into_iter()
                        .filter(|(_, length)| *length != 0)
                        .collect();
                    with_written(&used, Direction::In, None, |_, blocks| {
                        let lengths = lengths(blocks);
                        let inner = lengths.windows(4).take(lengths.len().saturating_sub(4));
                        for window in inner {
                            assert!(window.iter().sum::<u32>() >= PACKET, "{lengths:?}");
                        }
                    });
                }
            }
        }
    }
}
