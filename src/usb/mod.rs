//! The bus: what USB devices say about themselves, the requests that make them say it, and the
//! core that finds, addresses and configures them.
//!
//! Called by `storage`; calls the controllers through the traits of `host`. The machines
//! ([`enumerate`], [`operation`]) do no I/O: [`bus`] feeds them and carries out what they answer.
//! Read `USB 2.0` chapter 9 first.

pub mod bus;
pub mod descriptor;
pub mod device;
pub mod enumerate;
pub mod error;
pub mod operation;
pub mod port;
pub mod quirks;
pub mod setup;
pub mod speed;
pub mod strings;

pub use bus::{
    Bus, BusEvent, BusStorage, Change, ControllerSlot, ControllerState, Driver, Fate, Pipe, Turn,
    function_and_tag,
};
pub use device::{DeviceEntry, DeviceId, DeviceInfo, DeviceState, PowerDraw};
pub use error::{Table, UsbError};
pub use port::{PortEntry, PortState};
pub use strings::DeviceStrings;
