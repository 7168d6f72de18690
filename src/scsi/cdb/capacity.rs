//! READ CAPACITY (10) and (16) (SBC-3 §5.15, §5.16; operation codes 25, and 9E with service
//! action 10).

use super::{Cdb, Command, DataPhase};

/// Asks for the last block and the block length. 10 bytes, 8 bytes in.
#[must_use]
pub const fn read_capacity_10() -> Command {
    Command {
        cdb: Cdb::ten([0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        data: DataPhase::In(8),
    }
}

/// Asks for the same with 64 bits, and for physical blocks and provisioning. 16 bytes, up to 32
/// bytes in. Some devices die of it: ask only if READ CAPACITY (10) could not say it all.
#[must_use]
pub const fn read_capacity_16() -> Command {
    Command {
        cdb: Cdb::sixteen([0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0]),
        data: DataPhase::In(32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_ask_for_the_whole_unit() {
        let ten = read_capacity_10();
        assert_eq!(ten.cdb.to_bytes(), [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ten.data, DataPhase::In(8));
        let sixteen = read_capacity_16();
        assert_eq!(sixteen.cdb.to_bytes().get(..2), Some(&[0x9e, 0x10][..]));
        assert_eq!(sixteen.cdb.to_bytes().get(10..14), Some(&[0, 0, 0, 32][..]));
        assert_eq!(sixteen.data, DataPhase::In(32));
    }
}
