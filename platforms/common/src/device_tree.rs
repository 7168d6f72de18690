//! What the boot loader says about the machine, out of its flattened device tree.
//!
//! Who calls it: entry (RAM) and the board's `main`. The parsing is `dtoolkit`'s; this module asks
//! the few questions that board images have. Read first: Devicetree Specification v0.4, §2.3
//! (standard properties), §3.4 (memory), §3.6 (chosen); PCI Bus Binding (IEEE 1275) for `ranges`.

use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::{Node, Property};

use crate::region::Region;

/// The first four bytes of a tree (DTSpec §5.2).
const MAGIC: [u8; 4] = [0xd0, 0x0d, 0xfe, 0xed];
/// arm64 boot protocol, "Setup the device tree": at most 2 MiB, 8-byte aligned.
const LONGEST: usize = 2 << 20;
const ALIGNMENT: usize = 8;
/// Magic and total size.
const HEAD: usize = 8;

/// Where the tree at `address` lies, if there is one.
///
/// # Safety
///
/// `address` must be 0 or readable for eight bytes.
#[must_use]
pub unsafe fn extent(address: usize) -> Option<Region> {
    if address == 0 || !address.is_multiple_of(ALIGNMENT) {
        return None;
    }
    // SAFETY: readable, as promised; bytes have no alignment. Volatile, since what a boot loader
    // left at a fixed address is none of the compiler's objects.
    let head: [u8; HEAD] = core::array::from_fn(|index| unsafe {
        (address as *const u8).wrapping_add(index).read_volatile()
    });
    let (magic, size) = head.split_at(MAGIC.len());
    let length = u32::from_be_bytes(size.try_into().ok()?) as usize;
    (magic == MAGIC && (HEAD..=LONGEST).contains(&length)).then(|| Region::new(address, length))
}

/// A PCIe host bridge whose configuration space is memory (`pci-host-ecam-generic`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcieHost {
    /// Configuration space of all its buses, from bus 0.
    pub configuration: Option<Region>,
    /// Memory window with addresses below 4 GiB.
    pub window_32: Option<PcieWindow>,
    /// Memory window for 64-bit addresses.
    pub window_64: Option<PcieWindow>,
}

/// A window through which the processor sees memory of the PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcieWindow {
    /// First address as the bus counts.
    pub bus: u64,
    /// The same place as the processor sees it.
    pub memory: Region,
}

/// The device tree.
#[derive(Clone, Copy, Debug)]
pub struct DeviceTree(Fdt<'static>);

impl DeviceTree {
    /// The tree at `address`.
    ///
    /// # Errors
    ///
    /// A sentence, if it is not a device tree that can be read.
    ///
    /// # Safety
    ///
    /// As [`extent`]; and what `extent` returns must stay readable and unchanged for good.
    pub unsafe fn at(address: usize) -> Result<Self, &'static str> {
        // SAFETY: as promised by the caller.
        let region = unsafe { extent(address) }.ok_or("no device tree at that address")?;
        // SAFETY: readable and unchanged, as promised by the caller.
        let bytes = unsafe { core::slice::from_raw_parts(address as *const u8, region.length) };
        Self::parse(bytes)
    }

    /// The tree in `bytes`.
    ///
    /// # Errors
    ///
    /// A sentence, if it is not a device tree that can be read.
    pub fn parse(bytes: &'static [u8]) -> Result<Self, &'static str> {
        Fdt::new(bytes)
            .map(Self)
            .map_err(|_| "the device tree is damaged")
    }

    /// The pieces of RAM. Pieces that do not fit the address size are left out.
    pub fn memory(self) -> impl Iterator<Item = Region> {
        self.0
            .root()
            .children()
            .filter(|node| is(*node, "device_type", "memory"))
            .filter_map(|node| node.reg().ok().flatten())
            .flatten()
            .filter_map(|reg| region(reg.address().ok()?, reg.size().ok()?))
    }

    /// The kernel command line (`/chosen/bootargs`); empty where there is none.
    #[must_use]
    pub fn command_line(self) -> &'static str {
        self.0
            .find_node("/chosen")
            .and_then(|chosen| chosen.property("bootargs"))
            .and_then(|arguments| arguments.value_as::<&str>().ok())
            .unwrap_or("")
    }

    /// The first generic PCIe host bridge.
    #[must_use]
    pub fn pcie(self) -> Option<PcieHost> {
        let bridge = self.0.root().children().find(|node| {
            node.compatible()
                .is_some_and(|mut names| names.any(|n| n == "pci-host-ecam-generic"))
        })?;
        let configuration = bridge.reg().ok().flatten().and_then(|mut regs| {
            let reg = regs.next()?;
            region(reg.address().ok()?, reg.size().ok()?)
        });
        let mut host = PcieHost {
            configuration,
            ..PcieHost::default()
        };
        for range in bridge.ranges().ok().flatten()? {
            // Three cells: the space's code and a 64-bit bus address.
            let [space, high, low] = range.child_bus_address.as_ref() else {
                continue;
            };
            let bus = u64::from(high.get()) << 32 | u64::from(low.get());
            let Ok(start) = range.parent_bus_address() else {
                continue;
            };
            let Ok(length) = range.length() else { continue };
            let window = region(start, length).map(|memory| PcieWindow { bus, memory });
            match space.get() >> SPACE_SHIFT & SPACE_MASK {
                SPACE_MEMORY_32 => host.window_32 = window,
                SPACE_MEMORY_64 => host.window_64 = window,
                _ => {}
            }
        }
        Some(host)
    }
}

/// "ss" of phys.hi (PCI Bus Binding §2.2.1.1).
const SPACE_SHIFT: u32 = 24;
const SPACE_MASK: u32 = 3;
const SPACE_MEMORY_32: u32 = 2;
const SPACE_MEMORY_64: u32 = 3;

fn region(start: u64, length: u64) -> Option<Region> {
    Some(Region::new(
        usize::try_from(start).ok()?,
        usize::try_from(length).ok()?,
    ))
}

fn is(node: FdtNode<'_>, property: &str, text: &str) -> bool {
    node.property(property)
        .is_some_and(|value| value.value_as::<&str>() == Ok(text))
}
