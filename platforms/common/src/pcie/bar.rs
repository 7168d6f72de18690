//! Base addresses: how large a function's register windows are, and where they go.
//!
//! Read first: PCI 3.0 §6.2.5.1. Memory decoding must be off meanwhile: an address that is half
//! written, or all ones, would answer in somebody else's place.

use tock_registers::{LocalRegisterCopy, register_bitfields};

use super::config::ConfigSpace;
use super::function::Function;
use super::window::{Claim, Windows};
use crate::region::Region;

register_bitfields! {u32,
    BaseAddress [
        IO OFFSET(0) NUMBITS(1) [],
        WIDTH OFFSET(1) NUMBITS(2) [
            Bits32 = 0,
            Bits64 = 2,
        ],
    ],
}

const FIRST_REGISTER: u16 = 0x10;
/// Base addresses of an ordinary function; 64-bit ones take two.
const COUNT: usize = 6;
/// The low bits of a memory base address are flags.
const FLAGS: u64 = 0xf;

/// One memory base address of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "BAR")]
pub struct Bar {
    /// 0 to 5.
    pub index: u8,
    /// Bytes, a power of two.
    pub size: u64,
    /// Whether it takes addresses of 64 bits.
    pub is_64_bit: bool,
}

/// Measures the base address `index` and leaves it 0; `None` where there is none, where it is I/O
/// space, or where it makes no sense.
fn measure<C: ConfigSpace>(function: &Function<C>, index: usize) -> Option<Bar> {
    let register = register(index);
    function.write(register, u32::MAX);
    let low = function.read(register);
    function.write(register, 0);
    let flags = LocalRegisterCopy::<u32, BaseAddress::Register>::new(low);
    if low == 0 || flags.is_set(BaseAddress::IO) {
        return None;
    }
    let is_64_bit = flags.matches_all(BaseAddress::WIDTH::Bits64);
    let high = if is_64_bit && index + 1 < COUNT {
        function.write(register + 4, u32::MAX);
        let high = function.read(register + 4);
        function.write(register + 4, 0);
        high
    } else {
        u32::MAX
    };
    let mask = (u64::from(high) << 32 | u64::from(low)) & !FLAGS;
    let size = mask.wrapping_neg();
    size.is_power_of_two().then_some(Bar {
        index: index as u8,
        size,
        is_64_bit,
    })
}

/// Gives every memory base address of `function` a place in `windows`; says where the first one's
/// registers are for the processor. Memory decoding is off afterwards.
///
/// # Errors
///
/// The base address that found no place.
pub fn place<C: ConfigSpace>(
    function: &Function<C>,
    windows: &mut Windows,
) -> Result<Option<Region>, Bar> {
    function.switch_off();
    let mut first = None;
    let mut index = 0;
    while index < COUNT {
        let Some(bar) = measure(function, index) else {
            index += 1;
            continue;
        };
        let claim = windows.claim(bar.size, bar.is_64_bit).ok_or(bar)?;
        write(function, &bar, claim);
        if bar.index == 0 {
            first = Some(claim.memory);
        }
        index += if bar.is_64_bit { 2 } else { 1 };
    }
    Ok(first)
}

fn write<C: ConfigSpace>(function: &Function<C>, bar: &Bar, claim: Claim) {
    let register = register(usize::from(bar.index));
    function.write(register, claim.bus as u32);
    if bar.is_64_bit {
        function.write(register + 4, (claim.bus >> 32) as u32);
    }
}

fn register(index: usize) -> u16 {
    FIRST_REGISTER + 4 * index as u16
}

#[cfg(test)]
mod tests {
    use super::{Bar, place};
    use crate::device_tree::PcieWindow;
    use crate::pcie::config::Address;
    use crate::pcie::fake::FakeBus;
    use crate::pcie::function::Function;
    use crate::pcie::window::Windows;
    use crate::region::Region;

    const ADDRESS: Address = Address {
        device: 1,
        function: 0,
    };

    fn windows(low: usize, high: usize) -> Windows {
        let window = |start, length| {
            Some(PcieWindow {
                bus: start as u64,
                memory: Region::new(start, length),
            })
        };
        Windows::new(window(0x1000_0000, low), window(0x80_0000_0000, high))
    }

    #[test]
    fn a_64_bit_window_is_sized_and_placed_low_first() {
        let bus = FakeBus::new()
            .with(ADDRESS, 0x0c_0330)
            .bar64(ADDRESS, 0, 0x4000);
        let function = Function::probe(&bus, ADDRESS).unwrap();
        let registers = place(&function, &mut windows(0x10_0000, 0x10_0000)).unwrap();
        assert_eq!(registers, Some(Region::new(0x1000_0000, 0x4000)));
        assert_eq!(bus.word(ADDRESS, 0x10), 0x1000_0004);
        assert_eq!(bus.word(ADDRESS, 0x14), 0);
    }

    #[test]
    fn a_64_bit_window_goes_high_when_low_is_full() {
        let bus = FakeBus::new()
            .with(ADDRESS, 0x0c_0330)
            .bar64(ADDRESS, 0, 0x4000);
        let function = Function::probe(&bus, ADDRESS).unwrap();
        let registers = place(&function, &mut windows(0x1000, 0x10_0000)).unwrap();
        assert_eq!(registers, Some(Region::new(0x80_0000_0000, 0x4000)));
        assert_eq!(bus.word(ADDRESS, 0x14), 0x80);
    }

    #[test]
    fn a_32_bit_window_never_goes_high() {
        let bus = FakeBus::new()
            .with(ADDRESS, 0x0c_0320)
            .bar32(ADDRESS, 0, 0x1000);
        let function = Function::probe(&bus, ADDRESS).unwrap();
        let refused = place(&function, &mut windows(0x800, 0x10_0000));
        assert_eq!(
            refused,
            Err(Bar {
                index: 0,
                size: 0x1000,
                is_64_bit: false
            })
        );
    }

    #[test]
    fn memory_decoding_is_off_while_addresses_change() {
        let bus = FakeBus::new()
            .with(ADDRESS, 0x0c_0330)
            .bar64(ADDRESS, 0, 0x4000);
        let function = Function::probe(&bus, ADDRESS).unwrap();
        function.enable_dma();
        // The fake fails the test if a base address changes under an enabled decoder.
        place(&function, &mut windows(0x10_0000, 0)).unwrap();
    }
}
