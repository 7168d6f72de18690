//! Bulk-Only commands on the [`PacketHost`]: wrappers as plain bytes, nothing checked for the caller.

use super::super::UsbDevice;
use super::{Fault, PacketHost};

/// Data of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data<'a> {
    /// None.
    Nothing,
    /// So many bytes are announced to come from the device.
    In(u32),
    /// These bytes go to the device.
    Out(&'a [u8]),
}

/// A status wrapper, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Whether signature and length are right.
    pub well_formed: bool,
    /// The tag.
    pub tag: u32,
    /// Bytes that were announced and did not matter.
    pub residue: u32,
    /// 0 good, 1 failed, 2 phase error.
    pub status: u8,
}

impl<D: UsbDevice> PacketHost<D> {
    /// A whole command to unit 0 with tag 0x1234: wrapper, data, status. A halt in the data phase is
    /// cleared; one at the first read of the status, too (BOT 1.0 §5.3.3). Returns what came.
    ///
    /// # Errors
    /// Any other fault.
    pub fn command(&mut self, cdb: &[u8], data: Data<'_>) -> Result<(Vec<u8>, Status), Fault> {
        self.command_wrapper(0, cdb, data)?;
        let received = match data {
            Data::Nothing => Ok(Vec::new()),
            Data::In(length) => self.bulk_in(self.pipes.0, length as usize),
            Data::Out(bytes) => self.bulk_out(self.pipes.1, bytes).map(|()| Vec::new()),
        };
        let received = match received {
            Err(Fault::Stall) => {
                self.clear_halt(if matches!(data, Data::In(_)) {
                    self.pipes.0
                } else {
                    self.pipes.1
                })?;
                Vec::new()
            }
            other => other?,
        };
        let status = match self.status() {
            Err(Fault::Stall) => {
                self.clear_halt(self.pipes.0)?;
                self.status()?
            }
            other => other?,
        };
        Ok((received, status))
    }

    /// A command without data; its status byte.
    ///
    /// # Errors
    /// As [`Self::command`].
    pub fn simple(&mut self, cdb: &[u8]) -> Result<u8, Fault> {
        Ok(self.command(cdb, Data::Nothing)?.1.status)
    }

    /// Key, code and qualifier of REQUEST SENSE.
    ///
    /// # Errors
    /// As [`Self::command`].
    pub fn sense(&mut self) -> Result<(u8, u8, u8), Fault> {
        let (bytes, _) = self.command(&[0x03, 0, 0, 0, 18, 0], Data::In(18))?;
        Ok((bytes[2], bytes[12], bytes[13]))
    }

    /// Just the command wrapper.
    ///
    /// # Errors
    /// As [`Self::bulk_out`].
    pub fn command_wrapper(&mut self, lun: u8, cdb: &[u8], data: Data<'_>) -> Result<(), Fault> {
        let (length, flags) = match data {
            Data::Nothing => (0, 0),
            Data::In(length) => (length, 0x80),
            Data::Out(bytes) => (u32::try_from(bytes.len()).unwrap_or(u32::MAX), 0),
        };
        let mut wrapper = b"USBC\x34\x12\0\0".to_vec();
        wrapper.extend(length.to_le_bytes());
        wrapper.extend([flags, lun, u8::try_from(cdb.len()).unwrap_or(0)]);
        wrapper.extend(cdb);
        wrapper.resize(31, 0);
        self.bulk_out(self.pipes.1, &wrapper)
    }

    /// Just the status wrapper, read into 512 bytes.
    ///
    /// # Errors
    /// As [`Self::bulk_in`].
    pub fn status(&mut self) -> Result<Status, Fault> {
        let bytes = self.bulk_in(self.pipes.0, 512)?;
        let word = |at: usize| {
            let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
            four.map_or(0, u32::from_le_bytes)
        };
        Ok(Status {
            well_formed: bytes.len() == 13 && bytes.starts_with(b"USBS"),
            tag: word(4),
            residue: word(8),
            status: bytes.get(12).copied().unwrap_or(0xff),
        })
    }

    /// Reset recovery (BOT 1.0 §5.3.4).
    ///
    /// # Errors
    /// As [`Self::control`].
    pub fn reset_recovery(&mut self) -> Result<(), Fault> {
        self.control([0x21, 0xff, 0, 0, 0, 0, 0, 0], &[])?;
        self.clear_halt(self.pipes.0)?;
        self.clear_halt(self.pipes.1)
    }
}
