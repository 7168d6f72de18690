//! The device tree that QEMU 7.2 makes for `virt` (dumped with `-machine virt,dumpdtb=`, packed
//! with dtc), asked what a board image asks.

use board_common::device_tree::{DeviceTree, PcieWindow, extent};
use board_common::region::Region;

#[repr(align(8))]
struct Aligned<B: ?Sized>(B);

static VIRT: &Aligned<[u8]> = &Aligned(*include_bytes!("virt.dtb"));

fn virt() -> DeviceTree {
    DeviceTree::parse(&VIRT.0).unwrap()
}

#[test]
fn ram_is_found() {
    assert_eq!(
        virt().memory().collect::<Vec<_>>(),
        [Region::new(0x4000_0000, 0x800_0000)]
    );
}

#[test]
fn the_pcie_host_bridge_has_its_space_and_both_windows() {
    let pcie = virt().pcie().unwrap();
    assert_eq!(
        pcie.configuration,
        Some(Region::new(0x40_1000_0000, 0x1000_0000))
    );
    let low = PcieWindow {
        bus: 0x1000_0000,
        memory: Region::new(0x1000_0000, 0x2eff_0000),
    };
    let high = PcieWindow {
        bus: 1 << 39,
        memory: Region::new(1 << 39, 1 << 39),
    };
    assert_eq!((pcie.window_32, pcie.window_64), (Some(low), Some(high)));
}

#[test]
fn no_command_line_is_an_empty_one() {
    assert_eq!(virt().command_line(), "");
}

#[test]
fn the_extent_is_that_of_the_whole_tree() {
    let address = VIRT.0.as_ptr() as usize;
    // SAFETY: a whole device tree is there.
    let found = unsafe { extent(address) };
    assert_eq!(found, Some(Region::new(address, VIRT.0.len())));
}

#[test]
fn something_else_has_no_extent() {
    static OTHER: Aligned<[u8; 16]> = Aligned(*b"ELF and the rest");
    // SAFETY: 16 bytes are readable there; 0 is allowed.
    unsafe {
        assert_eq!(extent(OTHER.0.as_ptr() as usize), None);
        assert_eq!(extent(0), None);
    }
}

#[test]
fn a_truncated_tree_is_refused() {
    assert!(DeviceTree::parse(&VIRT.0[..1000]).is_err());
}
