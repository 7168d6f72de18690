//! Memory that the CPU shares with devices.
//!
//! Called by the controllers (rings, contexts), by `usb` (control data) and by `storage` (command and
//! status wrappers, mapping a caller's buffer). Three kinds, as `docs/architecture.md` argues:
//!
//! - the coherent [`Pool`]: small structures that both sides write, uncached or kept coherent by
//!   hardware. [`Rules`] give each structure its alignment and the boundary it must not cross;
//! - [`streaming`] buffers: the caller's memory, reached directly, brought into step with the
//!   device by [`Mapping`]'s two passes of cache maintenance;
//! - bounce memory: a line at each end of a streaming read whose ends share cache lines with other
//!   data, and pieces of the pool for buffers that the controller cannot reach at all.
//!
//! Nothing in coherent memory is ever borrowed as a Rust reference: every access is one volatile
//! load or store, because the device may change it at any moment.

mod address;
mod block;
mod bounce;
mod buffer;
mod pool;
mod region;
pub mod streaming;
#[cfg(test)]
pub(crate) mod testing;

pub use address::BusAddress;
pub use block::{Block, Pinned, Row, Walk};
pub(crate) use bounce::Bounced;
pub use buffer::{DmaBuffer, RawBuffer};
pub use pool::{
    Allocation, Class, Owner, Pool, PoolError, PoolRecord, PoolUsage, RawCoherent, Rules,
};
pub use region::CoherentRegion;
pub use streaming::{DataDirection, Dma, MapError, Mapping, Segment, SegmentRules};

pub use crate::arch::barrier::{acquire, release};
