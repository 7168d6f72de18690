use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

const LINE: usize = 64;

fn memory(coherent: bool) -> Memory {
    let layout = Layout {
        line: LINE,
        coherent,
        base: 0x8000_0000,
    };
    Memory::new(layout, Random::new(3))
}

/// The message of whatever `act` breaks.
#[track_caller]
fn breaks(section: &str, act: impl FnOnce()) {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("nothing objected");
    let literal = panic.downcast_ref::<&str>().copied().unwrap_or_default();
    let message = panic
        .downcast_ref::<String>()
        .map_or(literal, String::as_str);
    assert!(
        message.starts_with(section),
        "expected {section}, got: {message}"
    );
}

/// A block of the model's own, as the CPU sees it.
struct Cpu {
    start: NonNull<u8>,
}

impl Cpu {
    fn new(memory: &mut Memory, length: usize, offset: usize) -> Self {
        let start = memory.add_block(length, offset, None);
        Self { start }
    }
    fn write(&self, at: usize, byte: u8) {
        // SAFETY: tests stay inside the block, which lives as long as its memory.
        unsafe { self.start.add(at).write_volatile(byte) }
    }
    fn read(&self, at: usize) -> u8 {
        // SAFETY: as above.
        unsafe { self.start.add(at).read_volatile() }
    }
    fn from(&self, at: usize) -> NonNull<u8> {
        // SAFETY: as above.
        unsafe { self.start.add(at) }
    }
}

#[test]
fn bus_addresses_are_not_cpu_addresses_and_pieces_lie_apart() {
    let mut memory = memory(false);
    let (cpu, first) = memory.add_region(4096);
    let (_, second) = memory.add_region(4096);
    assert_ne!(cpu.addr().get() as u64, first);
    assert!(first.is_multiple_of(4096) && second.is_multiple_of(4096));
    assert!(second >= first + 8192, "no piece runs into the next");
}

#[test]
fn a_device_sees_a_store_after_its_release() {
    let mut memory = memory(false);
    let (_, bus) = memory.add_region(4096);
    let cpu = memory.store(bus, 0x1234_5678);
    memory.stored(cpu, 4);
    assert!(memory.has_unreleased_stores());
    assert_eq!(memory.visible_words(bus)[0], 0);
    memory.released();
    assert!(!memory.has_unreleased_stores());
    assert_eq!(memory.visible_words(bus)[0], 0x1234_5678);
}

#[test]
fn a_store_may_become_visible_early() {
    let mut memory = memory(false);
    let (_, bus) = memory.add_region(4096);
    for index in 0..16 {
        let cpu = memory.store(bus + 4 * index, u32::MAX);
        memory.stored(cpu, 4);
    }
    for _ in 0..50 {
        memory.disturb();
    }
    let seen: Vec<u32> = (0..4)
        .flat_map(|four| memory.visible_words(bus + 16 * four))
        .collect();
    assert!(seen.contains(&u32::MAX) && seen.contains(&0), "{seen:x?}");
}

#[test]
fn the_cpu_sees_a_devices_write_to_coherent_memory_at_once() {
    let mut memory = memory(false);
    let (_, bus) = memory.add_region(4096);
    memory.write(bus + 8, &[1, 2, 3, 4]);
    let mut bytes = [0; 4];
    assert!(memory.peek(bus + 8, &mut bytes));
    assert_eq!(bytes, [1, 2, 3, 4]);
}

#[test]
fn a_write_to_a_device_needs_a_clean() {
    let mut memory = memory(false);
    let cpu = Cpu::new(&mut memory, 256, 0);
    cpu.write(70, 9);
    let bus = memory.map(cpu.start, 256);
    breaks("Dma::clean", || memory.read(bus, &mut [0; 256]));
}

#[test]
fn a_cleaned_write_reaches_the_device() {
    let mut memory = memory(false);
    let cpu = Cpu::new(&mut memory, 256, 0);
    cpu.write(70, 9);
    let bus = memory.map(cpu.start, 256);
    memory.clean(cpu.start, 256);
    let mut bytes = [0; 256];
    memory.read(bus, &mut bytes);
    assert_eq!(bytes[70], 9);
}

#[test]
fn a_read_needs_its_first_pass() {
    let mut memory = memory(false);
    let cpu = Cpu::new(&mut memory, 256, 0);
    cpu.write(0, 1);
    let bus = memory.map(cpu.start, 256);
    breaks("Dma::clean", || memory.write(bus, &[5; 64]));
}

#[test]
fn without_its_second_pass_a_read_shows_old_data() {
    let mut memory = memory(false);
    let cpu = Cpu::new(&mut memory, 64, 0);
    cpu.write(3, 1);
    let bus = memory.map(cpu.start, 64);
    memory.clean(cpu.start, 64);
    memory.write(bus, &[5; 64]);
    assert_eq!(cpu.read(3), 1, "the line is still in the cache");
    memory.invalidate(cpu.start, 64);
    assert_eq!(cpu.read(3), 5);
    memory.unmap(cpu.start, 64);
}

#[test]
fn a_buffer_is_not_returned_without_its_second_pass() {
    let mut memory = memory(false);
    let cpu = Cpu::new(&mut memory, 64, 0);
    let bus = memory.map(cpu.start, 64);
    memory.clean(cpu.start, 64);
    memory.write(bus, &[5; 64]);
    breaks("Dma::returned", || memory.unmap(cpu.start, 64));
}

#[test]
fn an_untouched_line_needs_no_second_clean() {
    let mut memory = memory(false);
    let cpu = Cpu::new(&mut memory, 64, 0);
    for round in 1..4 {
        let bus = memory.map(cpu.start, 64);
        if round == 1 {
            memory.clean(cpu.start, 64);
        }
        memory.write(bus, &[round; 64]);
        memory.invalidate(cpu.start, 64);
        memory.unmap(cpu.start, 64);
        assert_eq!(cpu.read(63), round);
    }
}

#[test]
fn a_device_does_not_write_into_a_shared_line() {
    let mut memory = memory(false);
    let cpu = Cpu::new(&mut memory, 256, 0);
    let bus = memory.map(cpu.from(0), 100);
    memory.clean(cpu.start, 100);
    memory.write(bus, &[1; 64]);
    breaks("shared cache line", || memory.write(bus + 64, &[1; 36]));
}

#[test]
fn a_shared_line_is_not_invalidated() {
    let mut memory = memory(false);
    let cpu = Cpu::new(&mut memory, 256, 0);
    memory.map(cpu.start, 100);
    breaks("Dma::invalidate", || memory.invalidate(cpu.start, 100));
}

#[test]
fn what_was_never_mapped_is_not_invalidated() {
    let mut memory = memory(false);
    let mut bytes = [0_u8; 64];
    breaks("Dma::invalidate", || {
        memory.invalidate(NonNull::from(&mut bytes).cast(), 64)
    });
}

#[test]
fn dma_stays_in_what_is_mapped() {
    let mut memory = memory(true);
    let cpu = Cpu::new(&mut memory, 256, 0);
    let bus = memory.map(cpu.start, 128);
    memory.write(bus + 64, &[1; 64]);
    breaks("stray DMA", || memory.write(bus + 65, &[1; 64]));
}

#[test]
fn late_dma_is_told_from_stray_dma() {
    let mut memory = memory(true);
    let cpu = Cpu::new(&mut memory, 256, 0);
    let bus = memory.map(cpu.start, 256);
    memory.unmap(cpu.start, 256);
    breaks("late DMA", || memory.write(bus, &[1; 64]));
}

#[test]
fn any_memory_can_be_lent() {
    let mut memory = memory(false);
    let bytes = [7_u8; 100];
    let start = NonNull::from(&bytes).cast();
    let bus = memory.map(start, 100);
    memory.clean(start, 100);
    let mut seen = [0; 100];
    memory.read(bus, &mut seen);
    assert_eq!(seen, bytes);
    memory.unmap(start, 100);
    breaks("late DMA", || memory.read(bus, &mut [0; 1]));
}

#[test]
fn lent_memory_is_dirty_at_first() {
    let mut memory = memory(false);
    let bytes = [7_u8; 100];
    let bus = memory.map(NonNull::from(&bytes).cast(), 100);
    breaks("Dma::clean", || memory.read(bus, &mut [0; 100]));
}

#[test]
fn coherent_machines_have_one_copy() {
    let mut memory = memory(true);
    let cpu = Cpu::new(&mut memory, 64, 5);
    cpu.write(0, 3);
    let bus = memory.map(cpu.start, 64);
    let mut bytes = [0; 1];
    memory.read(bus, &mut bytes);
    assert_eq!(bytes, [3]);
    memory.write(bus, &[4]);
    assert_eq!(cpu.read(0), 4);
    memory.unmap(cpu.start, 64);
}

#[test]
fn chance_evicts_dirty_lines_and_fetches_clean_ones() {
    let mut memory = memory(false);
    let cpu = Cpu::new(&mut memory, 256, 0);
    let bus = memory.map(cpu.start, 256);
    memory.clean(cpu.start, 256);
    memory.write(bus, &[5; 256]);
    for _ in 0..1000 {
        memory.disturb();
    }
    assert_eq!(cpu.read(0), 5, "a clean line was fetched");
    cpu.write(0, 6);
    for _ in 0..1000 {
        memory.disturb();
    }
    let mut bytes = [0; 256];
    memory.read(bus, &mut bytes);
    assert_eq!(bytes[0], 6, "a dirty line was evicted");
}

#[test]
fn a_page_keeps_its_offset_on_the_bus() {
    let mut memory = memory(false);
    let cpu = Cpu::new(&mut memory, 64, 1234);
    let bus = memory.map(cpu.start, 64);
    assert_eq!(bus % 4096, 1234);
}

#[test]
fn dma_is_counted() {
    let mut memory = memory(true);
    let (_, bus) = memory.add_region(4096);
    memory.write(bus, &[0; 100]);
    memory.read(bus, &mut [0; 30]);
    let moved = memory.moved();
    assert_eq!((moved.written, moved.read), (100, 30));
}
