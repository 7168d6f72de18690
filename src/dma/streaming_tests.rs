use core::cell::RefCell;

use super::*;
use crate::dma::{Class, CoherentRegion, Owner, Pool, PoolRecord, Rules};

/// Records maintenance; bus addresses are CPU addresses plus an offset.
struct Recorder {
    coherent: bool,
    calls: RefCell<Vec<(&'static str, usize, usize)>>,
}

const OFFSET: u64 = 0x8000_0000;

// SAFETY: no device reads the addresses; there is no cache to maintain.
unsafe impl Dma for Recorder {
    fn coherent(&self) -> bool {
        self.coherent
    }
    fn cache_line(&self) -> usize {
        64
    }
    fn bus_address(&self, start: NonNull<u8>, _length: usize) -> Option<BusAddress> {
        Some(BusAddress::new(start.addr().get() as u64 + OFFSET))
    }
    fn clean(&self, start: NonNull<u8>, length: usize) {
        self.calls
            .borrow_mut()
            .push(("clean", start.addr().get(), length));
    }
    unsafe fn invalidate(&self, start: NonNull<u8>, length: usize) {
        self.calls
            .borrow_mut()
            .push(("invalidate", start.addr().get(), length));
    }
}

#[repr(align(4096))]
struct Page([u8; 16384]);

const XHCI: SegmentRules = SegmentRules {
    mask: u64::MAX,
    grain: 1,
};
const PAGES: SegmentRules = SegmentRules {
    mask: u64::MAX,
    grain: 4096,
};

/// Maps `offset..offset + length` of a page-aligned buffer; `check` sees the mapping, the bounce
/// area and the buffer's address, then the mapping ends with all bytes moved.
fn mapped(
    rules: SegmentRules,
    offset: usize,
    length: usize,
    direction: DataDirection,
    check: impl FnOnce(&Mapping, &Allocation, usize),
) -> (Vec<(&'static str, usize, usize)>, Box<Page>) {
    let dma = Recorder {
        coherent: false,
        calls: RefCell::default(),
    };
    let mut memory = Box::new(Page([0; 16384]));
    let mut records = [PoolRecord::EMPTY; 2];
    // SAFETY: the box outlives the pool and is used only through it.
    let region = unsafe {
        CoherentRegion::new(
            NonNull::from(&mut memory.0).cast(),
            BusAddress::new(0x1000),
            16384,
        )
    };
    let mut pool = Pool::new(region, &mut records);
    let bounce = pool
        .allocate(Owner::Host, Class::Bounce, 8192, Rules::aligned(4096))
        .unwrap();
    bounce.write_bytes(0, &[0xbb; 8192]);
    let mut data = Box::new(Page([0; 16384]));
    let buffer = RawBuffer::of(&mut data.0[offset..offset + length]);
    let mapping = map(&dma, rules, buffer, direction, Some(&bounce)).unwrap();
    let base = buffer.start.addr().get() - offset;
    check(&mapping, &bounce, base);
    mapping.unmap(&dma, length);
    let calls = dma
        .calls
        .into_inner()
        .into_iter()
        .map(|(call, at, length)| (call, at - base, length));
    (calls.collect(), data)
}

fn map(
    dma: &Recorder,
    rules: SegmentRules,
    buffer: RawBuffer,
    direction: DataDirection,
    bounce: Option<&Allocation>,
) -> Result<Mapping, MapError> {
    let mut place = None;
    Mapping::map(&mut place, dma, rules, buffer, direction, bounce)?;
    Ok(place.unwrap())
}

#[test]
fn an_aligned_read_is_one_segment_with_two_passes() {
    let (calls, _) = mapped(
        XHCI,
        64,
        512,
        DataDirection::FromDevice,
        |mapping, _, base| {
            let pieces = mapping.pieces();
            let whole = pieces.as_slice();
            assert_eq!(mapping.whole(), Some(whole[0]));
            assert_eq!(whole.len(), 1);
            assert_eq!(whole[0].bus().get(), base as u64 + 64 + OFFSET);
            assert_eq!(mapping.bounced(), 0);
        },
    );
    assert_eq!(calls, [("clean", 64, 512), ("invalidate", 64, 512)]);
}

#[test]
fn a_buffer_in_step_is_not_cleaned_again_and_still_invalidated() {
    let dma = Recorder {
        coherent: false,
        calls: RefCell::default(),
    };
    let mut data = Box::new(Page([0; 16384]));
    let mut buffer = RawBuffer::of(&mut data.0[..512]);
    buffer.in_step = true;
    for direction in [DataDirection::ToDevice, DataDirection::FromDevice] {
        let mapping = map(&dma, XHCI, buffer, direction, None).unwrap();
        mapping.unmap(&dma, 512);
    }
    let start = buffer.start.addr().get();
    assert_eq!(dma.calls.into_inner(), [("invalidate", start, 512)]);
}

#[test]
fn a_write_is_cleaned_once_and_never_bounced() {
    let (calls, _) = mapped(XHCI, 3, 509, DataDirection::ToDevice, |mapping, _, _| {
        assert_eq!(mapping.pieces().as_slice().len(), 1);
    });
    assert_eq!(calls, [("clean", 3, 509)]);
}

#[test]
fn the_shared_ends_of_a_read_bounce_and_only_whole_lines_are_invalidated() {
    let (calls, data) = mapped(XHCI, 60, 512, DataDirection::FromDevice, |mapping, _, _| {
        let lengths: Vec<u32> = mapping
            .pieces()
            .as_slice()
            .iter()
            .map(Segment::length)
            .collect();
        assert_eq!(lengths, [4, 448, 60]);
    });
    assert_eq!(calls, [("clean", 64, 448), ("invalidate", 64, 448)]);
    assert_eq!(data.0[59..65], [0, 0xbb, 0xbb, 0xbb, 0xbb, 0]);
    assert_eq!(
        data.0[511..573]
            .iter()
            .filter(|byte| **byte == 0xbb)
            .count(),
        60
    );
    assert_eq!(data.0[572], 0);
}

#[test]
fn a_read_inside_one_line_bounces_whole() {
    let (_, data) = mapped(XHCI, 5, 13, DataDirection::FromDevice, |mapping, _, _| {
        assert_eq!(mapping.pieces().as_slice().len(), 1);
        assert_eq!(mapping.bounced(), 13);
    });
    assert_eq!(data.0.iter().filter(|byte| **byte == 0xbb).count(), 13);
}

#[test]
fn page_scattering_controllers_bounce_page_shaped_ends() {
    mapped(
        PAGES,
        4000,
        8000,
        DataDirection::FromDevice,
        |mapping, bounce, base| {
            assert_eq!(mapping.whole(), None);
            let pieces = mapping.pieces();
            let pieces = pieces.as_slice();
            let lengths: Vec<u32> = pieces.iter().map(Segment::length).collect();
            assert_eq!(lengths, [96, 4096, 3808]);
            assert_eq!(
                pieces[0].bus().get(),
                bounce.bus().get() + 4000,
                "ends at the page's end"
            );
            assert_eq!(pieces[1].bus().get(), base as u64 + 4096 + OFFSET);
            assert_eq!(pieces[2].bus().get(), bounce.bus().get() + 4096);
        },
    );
}

#[test]
fn every_offset_and_length_moves_exactly_the_bytes_of_the_buffer() {
    for rules in [XHCI, PAGES] {
        for offset in 4032..4160 {
            for length in [1, 13, 63, 64, 65, 127, 200, 4100] {
                mapped(
                    rules,
                    offset,
                    length,
                    DataDirection::FromDevice,
                    |mapping, _, _| {
                        let sum: u32 = mapping
                            .pieces()
                            .as_slice()
                            .iter()
                            .map(Segment::length)
                            .sum();
                        assert_eq!(sum as usize, length, "offset {offset}");
                    },
                );
            }
        }
    }
}

#[test]
fn a_short_read_copies_no_more_of_the_tail_than_came() {
    let dma = Recorder {
        coherent: false,
        calls: RefCell::default(),
    };
    let mut memory = Box::new(Page([0xbb; 16384]));
    let mut records = [PoolRecord::EMPTY; 2];
    // SAFETY: the box outlives the pool and is used only through it.
    let region = unsafe {
        CoherentRegion::new(
            NonNull::from(&mut memory.0).cast(),
            BusAddress::new(0x1000),
            16384,
        )
    };
    let mut pool = Pool::new(region, &mut records);
    let bounce = pool
        .allocate(Owner::Host, Class::Bounce, 256, Rules::aligned(128))
        .unwrap();
    bounce.write_bytes(0, &[0xbb; 256]);
    let mut data = Box::new(Page([0; 16384]));
    let buffer = RawBuffer::of(&mut data.0[64..192 + 10]);
    let mapping = map(&dma, XHCI, buffer, DataDirection::FromDevice, Some(&bounce)).unwrap();
    mapping.unmap(&dma, 130);
    assert_eq!(data.0[192..195], [0xbb, 0xbb, 0]);
}

#[test]
fn a_buffer_above_the_mask_is_refused_before_anything_is_touched() {
    let dma = Recorder {
        coherent: false,
        calls: RefCell::default(),
    };
    let mut data = [0_u8; 64];
    let rules = SegmentRules {
        mask: 0xffff,
        grain: 1,
    };
    let result = map(
        &dma,
        rules,
        RawBuffer::of(&mut data),
        DataDirection::ToDevice,
        None,
    );
    assert_eq!(result.unwrap_err(), MapError::Unreachable);
    assert!(dma.calls.borrow().is_empty());
}
