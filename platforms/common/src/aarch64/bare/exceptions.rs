//! What happens when something is wrong: a report that a person can read, then power off.
//!
//! Who calls it: the vectors. An exception inside a handler gets a line, not a report; one inside
//! that stops the core.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering};

use aarch64_cpu::asm::barrier;
use aarch64_cpu::registers::{
    DAIF, ELR_EL1, ESR_EL1, FAR_EL1, ReadWriteable, Readable, VBAR_EL1, Writeable,
};

use super::park;
use crate::aarch64::syndrome::Syndrome;
use crate::{board, power, print, println};

global_asm!(include_str!("vectors.s"));

/// The interrupted state, as `vectors.s` lays it down.
#[derive(Debug)]
#[repr(C)]
struct Frame {
    /// x0 to x30.
    registers: [u64; 31],
    return_address: u64,
    status: u64,
    syndrome: u64,
    fault_address: u64,
    stack_pointer: u64,
}

const _: () = assert!(size_of::<Frame>() == 288, "vectors.s reserves 288 bytes");

/// Exceptions inside handlers so far.
static NESTED: AtomicU64 = AtomicU64::new(0);

/// Points the core at our vectors. From here on system errors and breakpoints are reported too.
pub(super) fn install() {
    unsafe extern "C" {
        safe static rootport_vectors: u8;
    }
    VBAR_EL1.set(&raw const rootport_vectors as u64);
    barrier::isb(barrier::SY);
    DAIF.modify(DAIF::A::Unmasked + DAIF::D::Unmasked);
}

#[unsafe(no_mangle)]
extern "C" fn rootport_interrupt() {
    (board::facts().interrupt)();
}

#[unsafe(no_mangle)]
extern "C" fn rootport_exception(frame: &Frame, vector: u64) -> ! {
    let syndrome = Syndrome::new(frame.syndrome);
    println!("\n\nexception: {} ({})", syndrome.class(), name(vector));
    if let Some(fault) = syndrome.fault() {
        println!("  address {:#x}: {fault}", frame.fault_address);
    }
    if is_below_main_stack(frame.fault_address) {
        println!("  that is the page below the main stack: the stack is too small");
    }
    println!("  at      {:#018x}  (ELR_EL1)", frame.return_address);
    println!(
        "  ESR_EL1 {:#010x}  FAR_EL1 {:#018x}",
        frame.syndrome, frame.fault_address
    );
    println!(
        "  SPSR_EL1 {:#010x}  sp {:#018x}",
        frame.status, frame.stack_pointer
    );
    for (number, value) in frame.registers.iter().enumerate() {
        let end = if number % 4 == 3 { "\n" } else { "" };
        print!("  x{number:<2} {value:016x}{end}");
    }
    println!();
    (board::facts().stop_controllers)();
    power::off(Err("exception".into()))
}

#[unsafe(no_mangle)]
extern "C" fn rootport_nested_exception() -> ! {
    // A plain load and a plain store: one core, and this may run with the MMU off.
    let before = NESTED.load(Ordering::Relaxed);
    NESTED.store(before + 1, Ordering::Relaxed);
    match before {
        0 => {
            let class = Syndrome::new(ESR_EL1.get()).class();
            println!("\nexception inside a handler: {class}");
            println!(
                "  ELR_EL1 {:#018x}  FAR_EL1 {:#018x}",
                ELR_EL1.get(),
                FAR_EL1.get()
            );
            power::off(Err("exception inside a handler".into()))
        }
        1 => (board::facts().power_off)(),
        _ => {}
    }
    park()
}

/// Whether an address lies in the unmapped page that the linker script leaves below the main stack.
fn is_below_main_stack(address: u64) -> bool {
    unsafe extern "C" {
        safe static __exception_stack_end: u8;
        safe static __main_stack_start: u8;
    }
    let guard = &raw const __exception_stack_end as u64..&raw const __main_stack_start as u64;
    guard.contains(&address)
}

/// The vector's name, by its place in the table.
fn name(vector: u64) -> &'static str {
    match vector % 4 {
        0 => "synchronous",
        1 => "interrupt",
        2 => "fast interrupt",
        _ => "system error",
    }
}
