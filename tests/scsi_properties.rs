//! Whatever bytes a disk answers: the parsers of SCSI data and of the Bulk-Only wrappers end, and
//! what they let through can be computed with.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use rootport::scsi::ata::{AtaIdentity, Health, Prognosis, SectorFault};
use rootport::scsi::capacity::{BlockLength, Capacity, Capacity10, CapacityFault};
use rootport::scsi::cdb::{self, Cdb, DataPhase, Extent, UnitAccess};
use rootport::scsi::inquiry::Inquiry;
use rootport::scsi::luns::Luns;
use rootport::scsi::mode::ModeParameters;
use rootport::scsi::sense::{Sense, SenseKey, Subject, Verdict};
use rootport::scsi::vpd::{
    BlockCharacteristics, BlockLimits, Designators, Provisioning, SerialNumber, SupportedPages,
};
use rootport::storage::bot::wire::{Cbw, Csw, CswFault, CswStatus, Lun};
use rootport::text::Text;

fn noise() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..300)
}

/// Bytes whose first one is set, so that parsers go beyond it.
fn noise_behind(first: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    (select(first), noise()).prop_map(|(first, mut bytes)| {
        bytes.insert(0, first);
        bytes
    })
}

fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim() == text
}

fn block_length() -> impl Strategy<Value = BlockLength> {
    (9..=16_u32).prop_map(|exponent| BlockLength::new(1 << exponent).unwrap())
}

/// First block and count that a READ or WRITE block names, read back by hand.
fn named_blocks(cdb: &Cdb) -> (u64, u32) {
    let bytes = cdb.to_bytes();
    let number = |range: std::ops::Range<usize>| {
        bytes[range]
            .iter()
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    match bytes.len() {
        10 => (number(2..6), number(7..9) as u32),
        16 => (number(2..10), number(10..14) as u32),
        other => panic!("{other} bytes"),
    }
}

/// 512 bytes that add up to 0.
fn ata_sector() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 511).prop_map(|mut bytes| {
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        bytes.push(0_u8.wrapping_sub(sum));
        bytes
    })
}

fn status_wrapper(tag: u32, residue: u32, status: u8) -> Vec<u8> {
    let mut bytes = b"USBS".to_vec();
    bytes.extend(tag.to_le_bytes());
    bytes.extend(residue.to_le_bytes());
    bytes.push(status);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn texts_are_printable_and_trimmed(bytes in noise()) {
        let text = Text::<16>::from_bytes(&bytes);
        prop_assert!(text.as_str().len() <= 16);
        prop_assert!(is_printable(text.as_str()), "{:?}", text);
        prop_assert_eq!(Text::<16>::from_bytes(text.as_str().as_bytes()), text);
    }

    #[test]
    fn inquiry_data_are_read_however_short(bytes in noise()) {
        prop_assert_eq!(Inquiry::parse(&bytes).is_ok(), !bytes.is_empty());
        if let Ok(inquiry) = Inquiry::parse(&bytes) {
            prop_assert!(is_printable(inquiry.product.as_str()));
        }
    }

    #[test]
    fn a_capacity_can_be_computed_with(bytes in noise()) {
        let ten = match Capacity::parse_10(&bytes) {
            Ok(Capacity10::Known(capacity)) => Some(capacity),
            _ => None,
        };
        for capacity in ten.into_iter().chain(Capacity::parse_16(&bytes)) {
            prop_assert!(capacity.blocks() >= 2);
            prop_assert!(capacity.physical_exponent() <= 15);
            let length = capacity.block_length().bytes();
            prop_assert!(length.is_power_of_two() && (512..=65_536).contains(&length));
        }
    }

    #[test]
    fn a_right_capacity_is_kept(last in 1..u32::MAX, length in block_length()) {
        let mut bytes = last.to_be_bytes().to_vec();
        bytes.extend(length.bytes().to_be_bytes());
        let Ok(Capacity10::Known(capacity)) = Capacity::parse_10(&bytes) else {
            return Err(TestCaseError::fail("refused"));
        };
        prop_assert_eq!(capacity.blocks(), u64::from(last) + 1);
        prop_assert_eq!(capacity.block_length(), length);
    }

    #[test]
    fn block_lengths_other_than_powers_of_two_are_refused(length in any::<u32>()) {
        let legal = length.is_power_of_two() && (512..=65_536).contains(&length);
        prop_assert_eq!(BlockLength::new(length).is_some(), legal);
        if !legal {
            let refused = Capacity::new(1, length);
            prop_assert_eq!(refused, Err(CapacityFault::BlockLength(length)));
        }
    }

    #[test]
    fn sense_of_any_form_has_a_verdict(
        bytes in noise_behind(&[0x70, 0x71, 0x72, 0x73, 0xf0, 0xf1, 0xf2, 0x00, 0x7f]),
    ) {
        let sense = Sense::parse(&bytes);
        let verdict = sense.verdict();
        if verdict == Verdict::Success {
            prop_assert!(matches!(sense.key, SenseKey::RecoveredError | SenseKey::Completed));
            prop_assert_eq!(sense.subject, Subject::ThisCommand);
        }
        prop_assert!(!sense.to_string().is_empty());
    }

    #[test]
    fn key_and_codes_survive_in_both_formats(key in 0..16_u8, asc: u8, ascq: u8, block: u32) {
        let [a, b, c, d] = block.to_be_bytes();
        let fixed = Sense::parse(
            &[0xf0, 0, key, a, b, c, d, 10, 0, 0, 0, 0, asc, ascq, 0, 0, 0, 0],
        );
        let descriptor = Sense::parse(
            &[0x72, key, asc, ascq, 0, 0, 0, 12, 0, 10, 0x80, 0, 0, 0, 0, 0, a, b, c, d],
        );
        prop_assert_eq!(fixed, descriptor);
        prop_assert_eq!(fixed.key as u8, key);
        prop_assert_eq!((fixed.asc, fixed.ascq), (asc, ascq));
        prop_assert_eq!(fixed.information(), Some(u64::from(block)));
    }

    #[test]
    fn mode_parameters_of_any_form_end(bytes in noise()) {
        if let Some(parameters) = ModeParameters::parse_6(&bytes) {
            prop_assert_eq!(parameters.is_write_protected(), bytes[2] & 0x80 != 0);
            let _ = parameters.caching();
        }
        prop_assert_eq!(ModeParameters::parse_6(&bytes).is_some(), bytes.len() >= 4);
        prop_assert_eq!(ModeParameters::parse_10(&bytes).is_some(), bytes.len() >= 8);
        let _ = ModeParameters::parse_10(&bytes).map(|parameters| parameters.caching());
    }

    #[test]
    fn vital_product_data_of_any_form_end(
        page in select(&[0x00_u8, 0x80, 0x83, 0xb0, 0xb1, 0xb2][..]),
        mut bytes in noise(),
    ) {
        if let Some(slot) = bytes.get_mut(1) {
            *slot = page;
        }
        let parsed = [
            SupportedPages::parse(&bytes).is_ok(),
            SerialNumber::parse(&bytes).is_ok_and(|serial| is_printable(serial.as_str())),
            Designators::parse(&bytes).is_ok_and(|names| names.names().count() <= bytes.len() / 4),
            BlockLimits::parse(&bytes).is_ok(),
            BlockCharacteristics::parse(&bytes).is_ok(),
            Provisioning::parse(&bytes).is_ok(),
        ];
        let read = parsed.into_iter().filter(|is_read| *is_read).count();
        prop_assert!(read <= 1, "a page was taken for another");
        if bytes.len() >= 4 && [0x80, 0x83, 0xb0, 0xb1].contains(&page) {
            prop_assert_eq!(read, 1);
        }
    }

    #[test]
    fn read_and_write_name_the_extent(
        lba in prop_oneof![0..1_u64 << 33, any::<u64>()],
        blocks in prop_oneof![0..70_000_u32, any::<u32>()],
        length in block_length(),
    ) {
        let fits = lba.checked_add(blocks.into()).is_some()
            && u64::from(blocks) * u64::from(length.bytes()) <= u64::from(u32::MAX);
        let extent = Extent::new(lba, blocks, length);
        prop_assert_eq!(extent.is_some(), fits);
        let Some(extent) = extent else { return Ok(()) };
        let (read, write) = (cdb::read(extent), cdb::write(extent, UnitAccess::Cached));
        prop_assert_eq!(named_blocks(&read.cdb), (lba, blocks));
        prop_assert_eq!(named_blocks(&write.cdb), (lba, blocks));
        prop_assert_eq!(read.data, DataPhase::In(blocks * length.bytes()));
        prop_assert_eq!(write.data, DataPhase::Out(blocks * length.bytes()));
        let is_beyond_ten = lba + u64::from(blocks) > 1 << 32 || blocks > 65_535;
        if !is_beyond_ten {
            prop_assert_eq!(read.cdb.length(), if lba == 1 << 32 { 16 } else { 10 });
        } else {
            prop_assert_eq!(read.cdb.length(), 16);
        }
    }

    #[test]
    fn a_status_is_believed_only_if_it_is_valid_and_meaningful(
        bytes in prop_oneof![
            noise(),
            vec(any::<u8>(), 13),
            (any::<u32>(), any::<u32>(), 0..5_u8)
                .prop_map(|(tag, residue, status)| status_wrapper(tag, residue, status)),
            (0..3_u32, 0..1024_u32, 0..5_u8)
                .prop_map(|(tag, residue, status)| status_wrapper(tag, residue, status)),
        ],
        tag in 0..3_u32,
        requested in 0..1024_u32,
    ) {
        match Csw::parse(&bytes, tag, requested) {
            Ok(csw) => {
                prop_assert_eq!(bytes.len(), 13);
                prop_assert!(csw.residue <= requested);
                prop_assert!(Csw::is_wrapper(&bytes, tag));
                let status = match csw.status {
                    CswStatus::Passed => 0,
                    CswStatus::Failed => 1,
                    CswStatus::PhaseError => 2,
                };
                prop_assert_eq!(bytes[12], status);
            }
            Err(CswFault::WrongLength { found }) => {
                prop_assert!(found as usize == bytes.len() && found != 13);
            }
            Err(CswFault::WrongSignature { .. }) => prop_assert_ne!(&bytes[..4], b"USBS"),
            Err(CswFault::WrongTag { found }) => {
                prop_assert_ne!(found, tag);
                // The remedy for devices that are known for it leads on.
                let again = Csw::parse(&bytes, found, requested);
                let is_led_on = !matches!(again, Err(CswFault::WrongTag { .. }));
                prop_assert!(is_led_on);
            }
            Err(CswFault::ReservedStatus { found }) => prop_assert!(found > 2),
            Err(CswFault::ResidueTooLarge { found }) => {
                prop_assert!(found > requested);
                prop_assert!(Csw::parse(&bytes, tag, u32::MAX).is_ok());
            }
        }
    }

    #[test]
    fn one_wrong_bit_in_signature_or_tag_is_seen(
        tag: u32,
        residue in 0..512_u32,
        bit in 0..64_usize,
    ) {
        let mut bytes = status_wrapper(tag, residue, 0);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Csw::parse(&bytes, tag, 512).is_err());
        prop_assert!(!Csw::is_wrapper(&bytes, tag));
    }

    #[test]
    fn a_command_wrapper_holds_its_fields(
        tag: u32,
        length: u32,
        direction in 0..3_u8,
        lun in 0..16_u8,
        block in select(&[6_usize, 10, 12, 16][..]),
        bytes in vec(any::<u8>(), 16),
    ) {
        let data = match direction {
            0 => DataPhase::None,
            1 => DataPhase::In(length),
            _ => DataPhase::Out(length),
        };
        let lun = Lun::new(lun).unwrap();
        let cdb = Cdb::from_slice(&bytes[..block]).unwrap();
        let wire = Cbw { tag, data, lun, cdb }.to_bytes();
        prop_assert_eq!(&wire[..4], b"USBC");
        prop_assert_eq!(&wire[4..8], tag.to_le_bytes());
        prop_assert_eq!(&wire[8..12], data.length().to_le_bytes());
        prop_assert_eq!(wire[12], if direction == 1 { 0x80 } else { 0 });
        prop_assert_eq!(wire[13], lun.number());
        prop_assert_eq!(usize::from(wire[14]), block);
        prop_assert_eq!(&wire[15..15 + block], &bytes[..block]);
        prop_assert!(wire[15 + block..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn smart_data_of_any_content_are_read_if_they_add_up(bytes in ata_sector()) {
        let health = Health::parse(&bytes).expect("they add up");
        prop_assert_eq!(health.prognosis, Prognosis::Unknown);
        prop_assert!(health.power_on_hours.is_none_or(|hours| hours < 1 << 24));
    }

    #[test]
    fn one_wrong_bit_of_smart_data_is_found(
        mut bytes in ata_sector(),
        at in 0..512_usize,
        bit in 0..8_u8,
    ) {
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(Health::parse(&bytes), Err(SectorFault::Checksum));
    }

    #[test]
    fn smart_data_that_did_not_come_whole_say_nothing(bytes in vec(any::<u8>(), 0..512)) {
        let have = bytes.len();
        prop_assert_eq!(Health::parse(&bytes), Err(SectorFault::TooShort { have }));
        prop_assert_eq!(AtaIdentity::parse(&bytes), Err(SectorFault::TooShort { have }));
    }

    #[test]
    fn identify_data_of_any_content_give_printable_names(bytes in vec(any::<u8>(), 512..600)) {
        if let Ok(identity) = AtaIdentity::parse(&bytes) {
            prop_assert!(is_printable(identity.model.as_str()));
            prop_assert!(is_printable(identity.serial.as_str()));
            prop_assert!(is_printable(identity.firmware.as_str()));
        }
    }

    #[test]
    fn lists_of_units_of_any_form_name_units_that_can_be_named(bytes in noise()) {
        if let Some(luns) = Luns::parse(&bytes) {
            prop_assert!(luns.numbers().all(|number| number < 16 && luns.contains(number)));
            prop_assert!(luns.numbers().next().is_some());
        }
    }

    #[test]
    fn registers_come_only_with_their_code(
        bytes in noise_behind(&[0x70, 0x71, 0x72, 0x73, 0xf0, 0xf2]),
    ) {
        let sense = Sense::parse(&bytes);
        if let Some(registers) = sense.ata_registers() {
            prop_assert_eq!((sense.asc, sense.ascq), (0x00, 0x1d));
            let told: Vec<u8> = registers.lba.to_vec();
            prop_assert!(told.iter().all(|byte| bytes.contains(byte)));
        }
    }

    #[test]
    fn a_status_return_descriptor_is_found_behind_any_other(
        other in vec(any::<u8>(), 0..40),
        lba in any::<[u8; 3]>(),
    ) {
        let [low, mid, high] = lba;
        let mut bytes = vec![0x72, 1, 0x00, 0x1d, 0, 0, 0, 0];
        bytes[7] = (other.len() + 16) as u8;
        bytes.extend([0x80, other.len() as u8]);
        bytes.extend(&other);
        bytes.extend([0x09, 0x0c, 0, 0, 0, 0, 0, low, 0, mid, 0, high, 0xa0, 0x50]);
        let registers = Sense::parse(&bytes).ata_registers();
        prop_assert_eq!(registers.map(|registers| registers.lba), Some(lba));
    }
}
