//! What happens when something is wrong: a report that a person can read, then power off.
//!
//! Who calls it: the vectors. An exception inside a handler gets a line, not a report; one inside
//! that stops the core.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, Ordering};

use aarch32_cpu::asm::isb;
use aarch32_cpu::register::{Dfar, Dfsr, Ifar, Ifsr, SysRegRead, Vbar};

use super::park;
use crate::fault;
use crate::{board, power, print, println};

global_asm!(include_str!("vectors.s"), options(raw));

/// The interrupted state, as `vectors.s` lays it down.
#[derive(Debug)]
#[repr(C)]
struct Frame {
    /// r0 to r12.
    registers: [u32; 13],
    stack_pointer: u32,
    link: u32,
    /// Where the exception says to return to: a few bytes behind what caused it.
    address: u32,
    status: u32,
    /// Keeps the stack aligned.
    unused: u32,
}

const _: () = assert!(size_of::<Frame>() == 72, "vectors.s reserves 72 bytes");

/// DFSR and IFSR in the long-descriptor format (DDI 0406C §B4.1.52): the fault, and who caused it.
const FAULT_STATUS: u32 = 0x3f;
const WRITE: u32 = 1 << 11;
/// SPSR: the interrupted code was in Thumb state (DDI 0406C §B1.3.3).
const THUMB: u32 = 1 << 5;

/// Exceptions reported so far.
static REPORTS: AtomicU32 = AtomicU32::new(0);

/// Points the core at our vectors.
pub(super) fn install() {
    unsafe extern "C" {
        safe static rootport_vectors: u8;
    }
    // SAFETY: that is a table of vectors, aligned to 32 bytes.
    unsafe { Vbar::write(Vbar(&raw const rootport_vectors as u32)) };
    isb();
}

#[unsafe(no_mangle)]
extern "C" fn rootport_interrupt() {
    (board::facts().interrupt)();
}

#[unsafe(no_mangle)]
extern "C" fn rootport_exception(frame: &Frame, vector: u32) -> ! {
    // A plain load and a plain store: one core, and this may run with the MMU off.
    let before = REPORTS.load(Ordering::Relaxed);
    REPORTS.store(before + 1, Ordering::Relaxed);
    let cause = Cause::read(frame, vector);
    match before {
        0 => {
            report(frame, &cause);
            (board::facts().stop_controllers)();
            power::off(Err("exception".into()))
        }
        1 => {
            println!(
                "\nexception inside a handler: {} at {:#010x}",
                cause.name, cause.at
            );
            power::off(Err("exception inside a handler".into()))
        }
        2 => (board::facts().power_off)(),
        _ => {}
    }
    park()
}

/// What happened where.
struct Cause {
    name: &'static str,
    /// The instruction.
    at: u32,
    /// Fault status and address, for aborts.
    fault: Option<(u32, u32)>,
}

impl Cause {
    /// From the vector and the fault registers. The offsets are those of DDI 0406C table B1-7.
    fn read(frame: &Frame, vector: u32) -> Self {
        let at = |offset| frame.address.wrapping_sub(offset);
        let instruction = match frame.status & THUMB {
            0 => at(4),
            _ => at(2),
        };
        let (name, at, fault) = match vector {
            1 => ("undefined instruction", instruction, None),
            2 => ("supervisor call", instruction, None),
            3 => {
                let fault = (Ifsr::read_raw(), Ifar::read_raw());
                ("instruction abort", at(4), Some(fault))
            }
            4 => {
                let fault = (Dfsr::read_raw(), Dfar::read_raw());
                let name = match fault.0 & WRITE {
                    0 => "data abort on a read",
                    _ => "data abort on a write",
                };
                (name, at(8), Some(fault))
            }
            _ => ("fast interrupt", at(4), None),
        };
        Self { name, at, fault }
    }
}

fn report(frame: &Frame, cause: &Cause) {
    println!("\n\nexception: {}", cause.name);
    if let Some((status, address)) = cause.fault {
        let words = fault::words(status & FAULT_STATUS);
        println!("  address {address:#x}: {words}");
        if is_below_main_stack(address) {
            println!("  that is the page below the main stack: the stack is too small");
        }
        println!("  FSR {status:#010x}  FAR {address:#010x}");
    }
    println!("  at  {:#010x}", cause.at);
    println!(
        "  SPSR {:#010x}  sp {:#010x}  lr {:#010x}",
        frame.status, frame.stack_pointer, frame.link
    );
    for (number, value) in frame.registers.iter().enumerate() {
        let end = if number % 4 == 3 { "\n" } else { "" };
        print!("  r{number:<2} {value:08x}{end}");
    }
    println!();
}

/// Whether an address lies in the unmapped page that the linker script leaves below the main stack.
fn is_below_main_stack(address: u32) -> bool {
    unsafe extern "C" {
        safe static __exception_stack_end: u8;
        safe static __main_stack_start: u8;
    }
    let guard = &raw const __exception_stack_end as u32..&raw const __main_stack_start as u32;
    guard.contains(&address)
}
