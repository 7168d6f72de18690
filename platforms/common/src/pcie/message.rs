//! Message-signalled interrupts: instead of pulling a pin, a function writes a word somewhere.
//!
//! Who calls it: a board's `main`, for a controller whose registers are mapped and that does no DMA
//! yet. One message is arranged, which is all that the drivers use. What it does not do: MSI without
//! the X, tables behind another base address than the first. A function that has only those keeps its
//! pin.
//! Read first: PCI 3.0 §6.8.2 (MSI-X).

use tock_registers::{LocalRegisterCopy, register_bitfields};

use super::config::ConfigSpace;
use super::function::Function;
use crate::region::Region;

register_bitfields! {u32,
    /// The first word of every capability, with MSI-X's message control above.
    Capability [
        ID OFFSET(0) NUMBITS(8) [
            MessageX = 0x11,
        ],
        NEXT OFFSET(8) NUMBITS(8) [],
        FUNCTION_MASK OFFSET(30) NUMBITS(1) [],
        ENABLE OFFSET(31) NUMBITS(1) [],
    ],
    /// PCI 3.0 §6.8.2.4.
    Table [
        BASE_ADDRESS OFFSET(0) NUMBITS(3) [],
        OFFSET OFFSET(3) NUMBITS(29) [],
    ],
}

/// Where the list of capabilities begins (PCI 3.0 §6.7).
const CAPABILITIES: u16 = 0x34;
/// From the start of the capability.
const TABLE: u16 = 4;
/// Capabilities lie in the 192 bytes behind the header, on words: more hops are a loop.
const MOST_CAPABILITIES: usize = 48;
/// Bytes of an entry: address, upper address, data, control (PCI 3.0 §6.8.2).
const ENTRY_BYTES: usize = 16;

/// What a function writes to interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where to.
    pub address: u64,
    /// What.
    pub data: u32,
}

/// Has the function send `message`. `write` writes a word at a byte offset of its registers. False
/// if it cannot: nothing was changed.
pub fn arrange<C: ConfigSpace>(
    function: &Function<C>,
    registers: Region,
    message: Message,
    write: impl Fn(usize, u32),
) -> bool {
    let Some(capability) = find(function) else {
        return false;
    };
    let table = LocalRegisterCopy::<u32, Table::Register>::new(function.read(capability + TABLE));
    let offset = (table.read(Table::OFFSET) << 3) as usize;
    let fits = registers.length.checked_sub(ENTRY_BYTES) >= Some(offset);
    if table.read(Table::BASE_ADDRESS) != 0 || !fits {
        return false;
    }
    write(offset, message.address as u32);
    write(offset + 4, (message.address >> 32) as u32);
    write(offset + 8, message.data);
    // Its mask bit clear; the rest is reserved.
    write(offset + 12, 0);
    let control = function.read(capability) & !Capability::FUNCTION_MASK::SET.value;
    function.write(capability, control | Capability::ENABLE::SET.value);
    true
}

/// The place of the MSI-X capability.
fn find<C: ConfigSpace>(function: &Function<C>) -> Option<u16> {
    let mut at = function.read(CAPABILITIES) as u16 & 0xfc;
    for _ in 0..MOST_CAPABILITIES {
        if at == 0 {
            break;
        }
        let header = LocalRegisterCopy::<u32, Capability::Register>::new(function.read(at));
        if header.matches_all(Capability::ID::MessageX) {
            return Some(at);
        }
        at = header.read(Capability::NEXT) as u16 & 0xfc;
    }
    None
}

#[cfg(test)]
mod tests {
    use core::cell::RefCell;
    use std::vec::Vec;

    use super::{Message, arrange};
    use crate::pcie::config::Address;
    use crate::pcie::fake::FakeBus;
    use crate::pcie::function::Function;
    use crate::region::Region;

    const XHCI: Address = Address {
        device: 1,
        function: 0,
    };
    const REGISTERS: Region = Region::new(0x1000_0000, 0x4000);
    const MESSAGE: Message = Message {
        address: 0x1_0802_0040,
        data: 80,
    };

    fn bus(table: u32) -> FakeBus {
        let bus = FakeBus::new().with(XHCI, 0x0c_0330);
        for (register, value) in [
            (0x34, 0x90),
            (0x90, 0xa005),
            (0xa0, 0x000f_0011),
            (0xa4, table),
        ] {
            bus.set(XHCI, register, value);
        }
        bus
    }

    fn arranged(bus: &FakeBus) -> Option<Vec<(usize, u32)>> {
        let written = RefCell::new(Vec::new());
        let function = Function::probe(bus, XHCI).unwrap();
        arrange(&function, REGISTERS, MESSAGE, |offset, value| {
            written.borrow_mut().push((offset, value));
        })
        .then(|| written.take())
    }

    #[test]
    fn the_first_entry_of_the_table_gets_the_message_and_the_function_uses_it() {
        let bus = bus(0x3000);
        let written = arranged(&bus).unwrap();
        assert_eq!(
            written,
            [
                (0x3000, 0x0802_0040),
                (0x3004, 1),
                (0x3008, 80),
                (0x300c, 0)
            ]
        );
        assert_eq!(bus.word(XHCI, 0xa0), 0x800f_0011);
    }

    #[test]
    fn a_table_elsewhere_or_beyond_the_registers_is_left_alone() {
        for table in [0x3001, 0x3ff8] {
            let bus = bus(table);
            assert_eq!(arranged(&bus), None, "{table:#x}");
            assert_eq!(bus.word(XHCI, 0xa0), 0x000f_0011);
        }
    }

    #[test]
    fn a_list_that_bites_its_own_tail_ends() {
        let bus = bus(0x3000);
        bus.set(XHCI, 0xa0, 0x9009);
        assert_eq!(arranged(&bus), None);
    }
}
