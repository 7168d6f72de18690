//! Allwinner H3, H2+, H5, A64 and A20: EHCI and OHCI of every port, their PHYs, and pins for VBUS.
//!
//! | file | what |
//! |---|---|
//! | `chip` | a row of facts per chip: addresses and bits |
//! | `step` | what one step does, and to which block of registers |
//! | `sequence` | the steps of a port, of a pin, of taking DMA away: rows in, lists out |
//! | `run` | carries steps out |
//!
//! ```text
//! bring_up: gates -> resets -> PHY clock, reset -> PMU power -> PHY settings -> PMU passby -> OHCI at rest -> VBUS
//! ```
//!
//! The order matters: the PMU sits behind the controller's bus clock, and the PHY's settings are
//! shifted in through a port that its own clock runs. The controllers themselves are plain EHCI and
//! OHCI; bus addresses are CPU addresses, and DMA is not coherent.
//!
//! Not here: DRAM, PLLs and bus dividers (the boot loader's), MUSB, and OHCI's own registers but the one that
//! puts it to rest.
//! Read first: Allwinner H3 Datasheet 1.2 §4.3 (CCU), §4.22 (port controller); the PHY has no public
//! description, its facts are those that mainline Linux and U-Boot agree on (phy-sun4i-usb).

mod chip;
mod run;
mod sequence;
mod step;

pub use chip::{A20, A64, AlwaysOn, Chip, H3, H5, PortFacts, Serial};
pub use run::{Port, Vbus, bring_up, carry_out, cut_dma, is_cut};
pub use sequence::{Bank, Pin};
pub use step::{Action, Block, Step};
