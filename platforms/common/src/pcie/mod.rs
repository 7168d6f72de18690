//! PCIe, as far as USB controllers on the root bus need it.
//!
//! Who calls it: the board's `main`, once: [`usb::find`] switches everything else on the bus off,
//! gives each USB controller its windows and says where its registers are. [`function::Function`]
//! stays with the controller: it can let it do DMA and cut that again.
//! What it does not do: bridges (a controller behind a root port is not found), I/O space, hot plug.
//! Read first: PCI 3.0 §6.1 (header), §6.2.5.1 (base addresses); PCIe 3.0 §7.2.2 (ECAM).

pub mod bar;
pub mod config;
pub mod function;
pub mod handoff;
pub mod message;
pub mod usb;
pub mod window;

#[cfg(test)]
mod fake;
