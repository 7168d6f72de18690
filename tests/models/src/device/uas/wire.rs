//! Information units as a device reads and writes them (UAS §6.2).

/// What came on the command pipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// COMMAND.
    Command { tag: u16, lun: u8, cdb: Vec<u8> },
    /// TASK MANAGEMENT.
    Task {
        tag: u16,
        function: u8,
        target: u16,
        lun: u8,
    },
}

/// Reads a unit, and says what is wrong with it.
pub(super) fn parse(bytes: &[u8]) -> Result<Unit, String> {
    let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    match (bytes.first(), bytes.len()) {
        (Some(0x01), 32) => {
            if bytes[1] != 0 || bytes[4] & 0x80 != 0 || bytes[5..8].iter().any(|byte| *byte != 0) {
                return Err(format!("reserved bits of a COMMAND are set: {bytes:02x?}"));
            }
            let cdb = &bytes[16..];
            let (cdb, padding) = cdb.split_at(length_of(cdb[0]));
            if padding.iter().any(|byte| *byte != 0) {
                return Err(format!("bytes behind the command block: {bytes:02x?}"));
            }
            Ok(Unit::Command {
                tag: number(2),
                lun: lun(&bytes[8..16])?,
                cdb: cdb.to_vec(),
            })
        }
        (Some(0x05), 16) => {
            if bytes[1] != 0 || bytes[5] != 0 {
                return Err(format!("reserved bytes of a TASK MANAGEMENT: {bytes:02x?}"));
            }
            Ok(Unit::Task {
                tag: number(2),
                function: bytes[4],
                target: number(6),
                lun: lun(&bytes[8..16])?,
            })
        }
        _ => Err(format!("no unit of the command pipe: {bytes:02x?}")),
    }
}

/// Single-level peripheral addressing (SAM-5 §4.7.4).
fn lun(field: &[u8]) -> Result<u8, String> {
    match field {
        [0, lun, 0, 0, 0, 0, 0, 0] => Ok(*lun),
        _ => Err(format!(
            "an address of a unit that is not plain: {field:02x?}"
        )),
    }
}

/// Bytes of a command block, by the group of its operation code (SPC-4 §4.2.5.1).
fn length_of(opcode: u8) -> usize {
    match opcode >> 5 {
        0 => 6,
        4 => 16,
        5 => 12,
        _ => 10,
    }
}

/// SENSE: `data` is empty with GOOD status.
pub(super) fn sense(tag: u16, status: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    bytes[0] = 0x03;
    bytes[2..4].copy_from_slice(&tag.to_be_bytes());
    bytes[6] = status;
    bytes[14..16].copy_from_slice(&(data.len() as u16).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// RESPONSE.
pub(super) fn response(tag: u16, code: u8) -> Vec<u8> {
    let [high, low] = tag.to_be_bytes();
    vec![0x04, 0, high, low, 0, 0, 0, code]
}

/// READ READY or WRITE READY.
pub(super) fn ready(tag: u16, to_host: bool) -> Vec<u8> {
    let [high, low] = tag.to_be_bytes();
    vec![if to_host { 0x06 } else { 0x07 }, 0, high, low]
}
