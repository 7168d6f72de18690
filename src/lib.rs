//! A `no_std`, heap-free USB host stack for bare-metal single-board computers: from a controller's
//! registers to a disk as a row of blocks.
//!
//! # The picture
//!
//! ```text
//!   a boot loader, a kernel            a file system
//!            |                              |
//!   +--------v------------------------------v-------+
//!   | stack    Host: polls, schedules, carries      |   one value, tables from the caller
//!   +-----------------------------------------------+
//!   | block    BlockDevice, requests, geometry      |   what a caller sees
//!   | scsi     commands, sense, units               |   what a disk speaks      (no I/O)
//!   | storage  choose, quirks, function, bot, uas   |   how SCSI rides USB
//!   | usb      ports, enumeration, operations       |   the bus
//!   | host     traits; xhci, ehci                   |   controllers
//!   | soc      allwinner                            |   what a chip needs before they work
//!   +-----------------------------------------------+
//!   | dma | mmio | arch            (all the unsafe)  |   memory, registers, the CPU
//!   +-----------------------------------------------+
//!   | platform   time, waiting, addresses, DMA off  |   what a board or kernel provides
//!   +-----------------------------------------------+
//! ```
//!
//! One [`Host`] serves any number of controllers of any kind. It has no clock, no thread and no
//! interrupt handler of its own: [`Host::poll`] does what is due, in bounded work, and says when it
//! wants to be called again. Two faces sit on that: [`Host::disk`] gives a [`block::BlockDevice`]
//! whose calls return when they are done, and [`Host::submit`] takes requests that own their buffers.
//! The protocols are machines that are fed with what happened and answer what to do next
//! ([`usb::enumerate`], [`usb::operation`], [`storage::bot::machine`], [`scsi::bring_up`],
//! [`storage::uas::machine`], [`scsi::unit`]); only `usb::bus`, the two transports and `stack` act on the
//! answers.
//!
//! # The life of a read
//!
//! `host.disk(id).read(lba, &mut buffer)`, down and up again:
//!
//! | step | code | what is kept meanwhile |
//! |---|---|---|
//! | the call borrows the buffer, if DMA can be cut off; else it takes the staging buffer | [`stack::Disk`] | the borrow, and the promise that nothing reaches it after the return |
//! | it becomes a request, checked against the disk | [`block::Geometry::extent`], [`block::queue::RequestSlot`] | first block, count, memory, place in the order |
//! | the disk's function takes a command: the oldest request that need not wait gets it | `stack::schedule` | which request and piece the command is for |
//! | a command of at most the transfer limit | [`scsi::unit::UnitEntry`], [`scsi::cdb::read`] | blocks issued, commands in flight, failures |
//! | the buffer is mapped for the controller: first pass over the cache | [`dma::Mapping`] | segments, bounced ends |
//! | the command wrapper, then data and status; over UAS all three, on pipes of their own | [`storage::bot::machine::Machine`], [`storage::bot::transport::Transport`]; [`storage::uas`] | phase, tag, deadline |
//! | transfers with a token that finds the way back | [`usb::Bus::send_segment`], [`usb::Bus::submit`] | function and tag, in the token |
//! | TRBs or qTDs, handed over by one bit | [`host::Endpoints::send_segment`], [`host::Endpoints::submit`] | place in the ring or queue, length of each piece |
//! | doorbell, after [`dma::release`]; EHCI needs none | [`host::Endpoints::kick`] | nothing |
//! | the caller sleeps until an interrupt or the next deadline | [`Platform::wait`] | nothing |
//! | an event or a token is found, and [`dma::acquire`] follows | [`host::HostController::take_end`], or [`host::HostController::poll`] | nothing: the record is freed |
//! | sorted by token, to the function | [`usb::Bus::take_end`] or [`usb::BusEvent::Transfer`], `stack::dispatch` | nothing |
//! | the status wrapper is believed only if every field is right | [`storage::bot::wire::Csw::parse`] | residue |
//! | second pass over the cache, bounced ends copied | [`dma::Mapping`] | nothing |
//! | the next command of the request, or its end; a failure is weighed | [`scsi::unit::UnitEntry`], [`scsi::sense::Verdict`] | blocks done |
//! | the call returns | [`stack::Disk`] | nothing |
//!
//! # Where to add what
//!
//! | you add | the place | what fails when you forget |
//! |---|---|---|
//! | a board | `platforms/<name>/` with a `board.toml` | `cargo xtask image <name>` does not know it; once there, `check` lints it and `test` builds its image |
//! | a chip | a row in its family under `src/soc/`, or a family; its registers in `tests/models/src/board/` | the model, which names the step that is missing |
//! | a controller | `host::<kind>` with the file names of its neighbours; a feature; a variant of [`host::Controller`] | the compiler, at the five traits of [`host`] and in every `match` of `host::any` |
//! | a method of the five traits | `src/host/traits.rs`, and its row in `docs/architecture.md` | the compiler, in each driver; `tests/documents.rs`, for the row |
//! | a quirk of a controller | its driver's `quirks` table: who, what, why, evidence | the driver's tests, for a quirk without evidence; write the two that show that it applies and that its neighbour is spared |
//! | a quirk of a device | a row in [`storage::quirks`] (`bulk_only.rs`, `attached.rs`) with its source, or one in [`usb::quirks`]; a new policy is a flag in `flags.rs` | the tests of the table (order, reach, neighbours); for a new policy, `xtask`'s test that each has its effect in words |
//! | a SCSI command | a file in `src/scsi/cdb/`, its answer beside `src/scsi/capacity.rs`; its property in `tests/scsi_properties.rs` | the models' SCSI target refuses it (5/20/00) |
//! | a sense code | a row in `src/scsi/sense/verdict.rs` and one in the table of its test | the compiler, for a new verdict: [`scsi::unit`] and [`scsi::bring_up`] match them all |
//! | a descriptor | a file in `src/usb/descriptor/`; its property in `tests/descriptor_properties.rs` | nothing: an unknown descriptor is passed over |
//! | a way to carry SCSI | a module beside [`storage::bot`] with `wire`, `machine`, `transport`; its arm in [`storage::choose`] | the compiler, if [`usb::descriptor::StorageTransport`] grew; else the device is listed without a driver |
//! | a class other than storage | a room of its own beside [`storage`], called from `stack::dispatch` where a device was described | `cargo xtask check`: "… is in no room" |
//! | an import | nothing, if it goes down | `cargo xtask check`: "… must not import …" |
//! | `unsafe` | [`dma`], [`mmio`] or [`arch`], with its `SAFETY` argument | the compiler (`deny(unsafe_code)`), and `cargo xtask check` |
//! | a deadline or limit | [`policy::Policy`], or a constant that cites its section or says `Policy:` and why | nothing: a reviewer must ask |
//!
//! `docs/architecture.md` has the rooms, the decisions and the map of the controller traits;
//! `docs/porting.md` shows how to embed the stack; `docs/specs.md` names the editions that are cited.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `xhci` | `host::xhci`, and a variant of [`host::Controller`] |
//! | `ehci` | `host::ehci`, likewise |
//! | `uas` | USB Attached SCSI, and the streams of xHCI; without it, disks are used over Bulk-Only alone |
//! | `rare` | requests that few make: writes past the cache, WRITE SAME, UNMAP, ATA commands and SMART; without it they end as on a disk that does not know them |
//! | `allwinner` | `soc::allwinner`: clocks, resets and PHYs of the USB ports of Allwinner chips |
//!
//! The first four are on by default. Without a controller, [`host::Controller`] has no values; a driver of your own that
//! has the five traits can be given to [`Host`] instead.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

// In the order in which a request travels; the blank lines keep it so.
pub mod block;

pub mod scsi;

pub mod storage;

pub mod usb;

pub mod host;

#[cfg(feature = "allwinner")]
pub mod soc;

#[allow(unsafe_code)]
pub mod dma;

#[allow(unsafe_code)]
pub mod mmio;

#[allow(unsafe_code)]
pub mod arch;

// Puts the layers together.
pub mod stack;

// What all of them share.
pub(crate) mod bytes;
pub mod platform;
pub mod policy;
pub mod text;
pub mod time;

pub use platform::Platform;
pub use stack::Host;

/// The README's quick start and the embedding guide, compiled and run.
#[cfg(all(doctest, feature = "xhci"))]
mod guides {
    #[doc = include_str!("../README.md")]
    struct ReadMe;
    #[doc = include_str!("../docs/porting.md")]
    struct Porting;
}
