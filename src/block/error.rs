//! Why a request on a disk failed, sorted by what the caller does next.

use core::fmt;

use super::Lba;
use crate::dma::MapError;

/// What a SCSI device said about a failure: kept, not flattened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct SenseCode {
    /// Sense key, 0 to 15.
    pub key: u8,
    /// Additional sense code.
    pub asc: u8,
    /// Additional sense code qualifier.
    pub ascq: u8,
}

impl SenseCode {
    /// 5/20/00: the command is unknown.
    pub const UNKNOWN_COMMAND: Self = Self::illegal_request(0x20);
    /// 5/24/00: a field of the command is not allowed.
    pub const BAD_FIELD: Self = Self::illegal_request(0x24);

    const fn illegal_request(asc: u8) -> Self {
        Self {
            key: 5,
            asc,
            ascq: 0,
        }
    }
}

impl fmt::Display for SenseCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:x}/{:02x}/{:02x}",
            self.key, self.asc, self.ascq
        )
    }
}

/// Why a request failed, and what the caller can do about it.
///
/// Whatever could be tried again was: a request that ends with one of these has had its retries, and the
/// ladder of recovery where its disk did not answer. After an error of a read, what is in the buffer is not
/// the disk's; after one of a write, its blocks hold old data, new data, or some of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockError {
    /// The blocks do not lie on the disk. Read the geometry again.
    OutOfRange {
        /// The first block asked for.
        lba: Lba,
        /// How many.
        blocks: u64,
    },
    /// The buffer is not a whole number of blocks, or empty, or there is none where one is needed. Make it
    /// a multiple of [`Geometry::block_bytes`](super::Geometry::block_bytes) long.
    BufferLength {
        /// Its length in bytes.
        length: usize,
        /// The disk's block length in bytes.
        block_bytes: u32,
    },
    /// The disk is not there (any more). Its id will never work again: look for it among
    /// [`Host::disks`](crate::Host::disks), where it has a new one if it has come back.
    Disconnected,
    /// The disk is not ready for use yet: poll the host and ask again. Or it could not be made so:
    /// [`Host::disks`](crate::Host::disks) says which, and why.
    NotReady,
    /// There is no medium in it. Put one in: [`Host::take_event`](crate::Host::take_event) tells when it can
    /// be used, and by which id.
    NoMedium,
    /// The medium was changed under the request. Of a removable disk that ends the id, and the new medium
    /// is another disk; else poll until the disk is ready, and read the geometry again before anything
    /// else.
    MediumChanged,
    /// The disk or its medium refuses writes: reads work. A switch on the card or the enclosure, mostly;
    /// [`Geometry::writable`](super::Geometry::writable) says so before.
    WriteProtected,
    /// The medium is bad at a block: other blocks may be well. Read around it; a write to it may make the
    /// disk replace it.
    Medium {
        /// The block, if the disk named it.
        lba: Option<Lba>,
        /// What the disk said.
        sense: SenseCode,
    },
    /// The disk failed the command, also when it was tried again: the sense says why, in the disk's own
    /// words (SPC-4, annex D lists the codes). It takes other commands.
    Device(SenseCode),
    /// The disk does not know what it was asked for, or it said that it does not, or a policy for it
    /// keeps the command from it; the sense is the disk's own, or what it would say. It is well: do
    /// without.
    Unsupported(SenseCode),
    /// The disk said again and again that it has no room for the command, until the command's time was over
    /// (BUSY, TASK SET FULL). It is there: try again later, with fewer requests at a time.
    DeviceBusy,
    /// The disk is reserved for another host (RESERVATION CONFLICT), and does nothing for this one. Some enclosures
    /// have two plugs: pull the other.
    Reserved,
    /// The disk moved fewer bytes than it was asked to and called that good, twice. Ask for fewer blocks,
    /// and do not trust what it says of its size.
    Short {
        /// Bytes that were moved.
        moved: u32,
    },
    /// The disk did not answer in time. It was reset; it may answer the next request.
    Timeout,
    /// The disk's answer made no sense, or the wire failed. It was reset; it may answer the next
    /// request.
    Protocol,
    /// The disk was reset for the sake of its neighbour while the request was under way. Issue it
    /// again; writes that were not flushed may be lost, as the next flush will say.
    Reset,
    /// The disk was reset, or said that it was, after writes that no good flush has covered: some
    /// of them may be lost. Reported once to each holder, by its next flush. Write again what
    /// matters.
    WritesMayBeLost,
    /// The disk did not come back from its reset. It takes no requests until it is plugged again.
    Broken,
    /// The controller cannot reach the buffer: what is inside says whether to move it, to align it, or to
    /// give the pool more memory.
    Memory(MapError),
    /// The controller has died and cannot be stopped, and the platform cannot cut it off: it may
    /// write to the request's buffer for ever, so the buffer is not given back.
    Quarantined,
    /// The platform cannot cut the controller's DMA, and the host was given no staging memory for
    /// blocking calls, or less than a block: see `Host::set_staging`.
    NoStaging,
    /// All request slots are in use: wait for a completion. From
    /// [`Host::add_holder`](crate::Host::add_holder): all holders are; give the host's storage more.
    QueueFull,
    /// The controller took no transfer: it has died, or has no room for it. Nothing was moved. Poll the
    /// host, and try again; if that does not help, ask [`Host::bus`](crate::Host::bus) for the
    /// controller's state.
    Refused,
}

impl fmt::Display for BlockError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { lba, blocks } => {
                write!(
                    formatter,
                    "{blocks} blocks from {} on do not lie on the disk",
                    lba.0
                )
            }
            Self::BufferLength {
                length,
                block_bytes,
            } => {
                write!(
                    formatter,
                    "{length} bytes are no whole number of {block_bytes}-byte blocks"
                )
            }
            Self::Disconnected => formatter.write_str("the disk is gone"),
            Self::NotReady => formatter.write_str("the disk is not ready"),
            Self::NoMedium => formatter.write_str("there is no medium in the drive"),
            Self::MediumChanged => formatter.write_str("the medium was changed"),
            Self::WriteProtected => formatter.write_str("the disk is write-protected"),
            Self::Medium {
                lba: Some(lba),
                sense,
            } => {
                write!(formatter, "the medium is bad at block {} ({sense})", lba.0)
            }
            Self::Medium { lba: None, sense } => write!(formatter, "the medium is bad ({sense})"),
            Self::Device(sense) => write!(formatter, "the disk failed the command ({sense})"),
            Self::Unsupported(sense) => {
                write!(formatter, "the disk does not have this command ({sense})")
            }
            Self::DeviceBusy => formatter.write_str("the disk has no room for the command"),
            Self::Reserved => formatter.write_str("the disk is reserved for another host"),
            Self::Short { moved } => write!(formatter, "the disk moved only {moved} bytes"),
            Self::Timeout => formatter.write_str("the disk did not answer in time"),
            Self::Protocol => formatter.write_str("the disk's answer made no sense"),
            Self::Reset => formatter.write_str("the disk was reset with its neighbour"),
            Self::WritesMayBeLost => {
                formatter.write_str("the disk was reset: writes since the last flush may be lost")
            }
            Self::Broken => formatter.write_str("the disk did not come back from its reset"),
            Self::Memory(error) => write!(formatter, "the buffer cannot be reached: {error:?}"),
            Self::Quarantined => {
                formatter.write_str("the controller does not let go of the buffer: it is kept")
            }
            Self::NoStaging => formatter.write_str("blocking calls need staging memory here"),
            Self::QueueFull => formatter.write_str("all request slots are in use"),
            Self::Refused => formatter.write_str("the controller takes no transfer"),
        }
    }
}

impl core::error::Error for BlockError {}
