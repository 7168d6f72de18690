//! Host controllers: the traits that the USB core drives, and a driver for each kind of chip.
//!
//! Called by `usb`; calls `dma` and `mmio`. A driver has the same file names as its neighbours:
//! `regs`, `capability`, structures, `controller`, `device`, `endpoint`, `port`, `interrupt`,
//! `emergency`, `quirks`, `storage`. Read `traits` first.

mod any;
#[cfg(feature = "ehci")]
pub mod ehci;
mod emergency;
mod fault;
mod traits;
mod types;
#[cfg(feature = "xhci")]
pub mod xhci;

pub use any::{Controller, InterruptHalf};
pub use emergency::EmergencyStop;
pub use fault::{CapabilityField, ControllerFault, HostError, Slice};
pub use traits::{Devices, Endpoints, HostController, Hubs, RootPorts};
pub use types::{
    Addressing, Attachment, Capabilities, DeviceHandle, EndpointConfig, EndpointHandle,
    EndpointKind, Event, Exchange, Handling, HubInfo, Outcome, PortProtocol, PortStatus, Report,
    Requirement, RootPort, Sequence, StatusReading, Token, Transfer, TransferEnd, Translator,
};
