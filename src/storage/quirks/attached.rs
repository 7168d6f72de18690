//! Whether UAS is used, and with which policies: devices, families of bridges, and what the host
//! can do.
//!
//! A bridge that offers UAS may be one of those that corrupt or hang under it. The rules are those of
//! Linux's `uas-detect.h`, in its order; [`attached`] is a function of what the descriptors and the
//! host say and is asked again after every enumeration, since the answer may differ at another
//! speed.

use super::entry::{Entry, Identity, Row, Story, Table, entries, stories};
use super::{Decision, Overrides, Quirks};

/// ASMedia, and the two products that five generations of its bridges share.
const ASMEDIA: (u16, [u16; 2]) = (0x174c, [0x5106, 0x55aa]);

/// All of Seagate's enclosures mind ATA PASS-THROUGH under UAS.
const SEAGATE: u16 = 0x0bc2;

/// What the descriptors and the host say about UAS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// There is a complete UAS setting.
    pub is_offered: bool,
    /// `bMaxPower` of the configuration, in its own units.
    pub raw_max_power: u8,
    /// Streams that the status pipe announces; 0 below SuperSpeed.
    pub status_streams: u32,
    /// The controller has streams.
    pub host_has_streams: bool,
}

/// Why UAS is not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Avoidance {
    /// The device has no complete UAS setting.
    NotOffered,
    /// The policy [`Quirks::IGNORE_UAS`], from the table or the string.
    Quirk,
    /// It is one of ASMedia's, with 32 streams and a draw of power: perhaps an ASM1051.
    PerhapsAsm1051,
    /// It is one of ASMedia's below SuperSpeed, where they cannot be told apart.
    UnknownAsmedia,
    /// The link is SuperSpeed and the controller has no streams.
    HostWithoutStreams,
}

/// How a device is to be driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UasChoice {
    /// With UAS.
    Uas,
    /// With Bulk-Only, and why.
    BulkOnly(Avoidance),
}

/// What a device gets when UAS is considered, and whether it is used. Bulk-Only has policies of its
/// own: see [`bulk_only`](super::bulk_only).
#[must_use]
pub fn attached(
    identity: &Identity<'_>,
    setting: &Setting,
    overrides: &Overrides<'_>,
) -> (UasChoice, Decision) {
    let entry = Table::Attached.find(identity);
    let family = asmedia(identity, setting);
    let mut rule = match family {
        Ok(quirks) => quirks,
        Err(_) => Quirks::IGNORE_UAS,
    };
    if identity.vendor == SEAGATE {
        rule |= Quirks::NO_ATA_1X;
    }
    let decision = Decision::new(entry, rule, identity, overrides).with_vendor_rule(identity);
    let choice = if !setting.is_offered {
        UasChoice::BulkOnly(Avoidance::NotOffered)
    } else if decision.quirks.contains(Quirks::IGNORE_UAS) {
        let is_rule = decision.source.replaced.is_none() && decision.source.entry.is_none();
        let reason = family.err().filter(|_| is_rule);
        UasChoice::BulkOnly(reason.unwrap_or(Avoidance::Quirk))
    } else if identity.speed.is_super() && !setting.host_has_streams {
        UasChoice::BulkOnly(Avoidance::HostWithoutStreams)
    } else {
        UasChoice::Uas
    };
    (choice, decision)
}

/// ASMedia's bridges under two shared ids: ASM1051, which must not be used, ASM1053, which fails
/// above 120 KiB, and ASM1153, which is good. An ASM1153 announces no draw of power; an ASM1053 has 16
/// streams, an ASM1051 may have 32.
fn asmedia(identity: &Identity<'_>, setting: &Setting) -> Result<Quirks, Avoidance> {
    let (vendor, products) = ASMEDIA;
    if identity.vendor != vendor || !products.contains(&identity.product) {
        return Ok(Quirks::empty());
    }
    if setting.raw_max_power == 0 {
        Ok(Quirks::empty())
    } else if !identity.speed.is_super() {
        Err(Avoidance::UnknownAsmedia)
    } else if setting.status_streams == 32 {
        Err(Avoidance::PerhapsAsm1051)
    } else {
        Ok(Quirks::MAX_SECTORS_240)
    }
}

const LINUX: &str = "Linux, drivers/usb/storage/unusual_uas.h";

const fn row(vendor: u16, product: u16, quirks: Quirks, name: &'static str) -> Row {
    Row::new(vendor, product, quirks, name, LINUX)
}

const BROKEN_FUA: Quirks = Quirks::BROKEN_FUA;
const IGNORE_UAS: Quirks = Quirks::IGNORE_UAS;
const NO_ATA_1X: Quirks = Quirks::NO_ATA_1X;
const NO_REPORT_LUNS: Quirks = Quirks::NO_REPORT_LUNS;
const NO_REPORT_OPCODES: Quirks = Quirks::NO_REPORT_OPCODES;

pub(super) static ENTRIES: [Entry; ROWS.len()] = entries(ROWS);
pub(super) static STORIES: [Story; ROWS.len()] = stories(ROWS);

#[rustfmt::skip]
const ROWS: &[Row; 26] = &[
    row(0x054c, 0x087d, NO_REPORT_OPCODES, "Sony PSZ-HA"),
    row(0x059f, 0x105f, NO_REPORT_OPCODES.union(Quirks::NO_SAME), "LaCie 2Big Quadra USB3"),
    row(0x059f, 0x1061, NO_REPORT_OPCODES.union(Quirks::NO_SAME), "LaCie Rugged USB3-FW"),
    row(0x0781, 0x55e8, IGNORE_UAS, "SanDisk device 55e8"),
    row(0x090c, 0x2000, IGNORE_UAS, "Hiksemi External HDD"),
    row(0x0984, 0x0301, IGNORE_UAS, "Apricorn dongle: answers with Bulk-Only status words").release(0x0128),
    row(0x0b05, 0x1932, IGNORE_UAS, "ASUS External HDD"),
    row(0x0bc2, 0x331a, NO_REPORT_LUNS, "Seagate Expansion Desk"),
    row(0x0bda, 0x9210, IGNORE_UAS, "Hiksemi MD202 (RTL9210)").named(&["HIKSEMI", "MD202"]).says("Linux, drivers/usb/storage/uas-detect.h"),
    row(0x125f, 0xa94a, NO_ATA_1X, "ADATA CH94").release(0x0160),
    row(0x13fd, 0x3940, NO_ATA_1X.union(Quirks::IGNORE_RESIDUE), "Initio INIC-3069"),
    row(0x152d, 0x0539, NO_REPORT_OPCODES, "JMicron JMS539"),
    row(0x152d, 0x0567, BROKEN_FUA.union(NO_REPORT_OPCODES), "JMicron JMS567"),
    row(0x152d, 0x0578, BROKEN_FUA, "JMicron JMS578"),
    row(0x152d, 0x0583, NO_REPORT_OPCODES, "JMicron JMS583"),
    row(0x154b, 0xf00b, NO_ATA_1X, "PNY Pro Elite SSD"),
    row(0x154b, 0xf00d, NO_ATA_1X, "PNY Pro Elite SSD"),
    row(0x17ef, 0x3899, IGNORE_UAS, "Thinkplus External HDD"),
    row(0x2109, 0x0711, NO_ATA_1X, "VIA VL711"),
    row(0x2109, 0x0715, IGNORE_UAS, "VIA VL817").release(0x9999).says("Linux, drivers/usb/storage/unusual_devs.h"),
    row(0x2537, 0x1066, IGNORE_UAS, "Norelsys NS1066").says("Armbian's default usb-storage.quirks; not in Linux 6.17"),
    row(0x2537, 0x1068, IGNORE_UAS, "Norelsys NS1068X"),
    row(0x357d, 0x7788, NO_REPORT_OPCODES.union(IGNORE_UAS), "JMicron JMS566 (Sharkoon)"),
    row(0x4971, 0x1012, IGNORE_UAS, "Hitachi External HDD"),
    row(0x4971, 0x8017, NO_REPORT_OPCODES, "SimpleTech device 8017"),
    row(0x4971, 0x8024, Quirks::ALWAYS_SYNC, "G-Technology G-Drive"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::quirks::entry::checks::{a_table_is_in_order, neighbours_are_spared};
    use crate::usb::speed::Speed;

    const OFFERED: Setting = Setting {
        is_offered: true,
        raw_max_power: 36,
        status_streams: 16,
        host_has_streams: true,
    };

    fn identity(vendor: u16, product: u16) -> Identity<'static> {
        Identity {
            vendor,
            product,
            release: 0x0100,
            speed: Speed::Super,
            manufacturer: b"",
            product_name: b"",
        }
    }

    fn choice(identity: &Identity<'_>, setting: &Setting) -> UasChoice {
        attached(identity, setting, &Overrides::NONE).0
    }

    #[test]
    fn the_table_is_in_order_and_every_entry_is_reached() {
        a_table_is_in_order(Table::Attached);
    }

    #[test]
    fn the_next_product_and_the_next_release_are_spared() {
        neighbours_are_spared(Table::Attached);
    }

    #[test]
    fn asmedias_shared_ids_are_told_apart_by_power_and_streams() {
        for product in [0x5106, 0x55aa] {
            let bridge = identity(0x174c, product);
            let with = |raw_max_power, status_streams| {
                let setting = Setting {
                    raw_max_power,
                    status_streams,
                    ..OFFERED
                };
                attached(&bridge, &setting, &Overrides::NONE)
            };
            let (asm1153, decision) = with(0, 32);
            assert_eq!(
                (asm1153, decision.quirks),
                (UasChoice::Uas, Quirks::empty())
            );
            let (asm1051, _) = with(36, 32);
            assert_eq!(asm1051, UasChoice::BulkOnly(Avoidance::PerhapsAsm1051));
            let (asm1053, decision) = with(36, 16);
            assert_eq!(
                (asm1053, decision.quirks),
                (UasChoice::Uas, Quirks::MAX_SECTORS_240)
            );
            let slow = Identity {
                speed: Speed::High,
                ..bridge
            };
            let unknown = UasChoice::BulkOnly(Avoidance::UnknownAsmedia);
            assert_eq!(
                choice(
                    &slow,
                    &Setting {
                        status_streams: 0,
                        ..OFFERED
                    }
                ),
                unknown
            );
        }
        // An ASM1053-s has 32 streams under an id of its own.
        let other = Setting {
            status_streams: 32,
            ..OFFERED
        };
        assert_eq!(choice(&identity(0x174c, 0x1153), &other), UasChoice::Uas);
    }

    #[test]
    fn every_seagate_minds_ata_commands_and_no_other_vendor() {
        let quirks = |vendor, product| {
            attached(&identity(vendor, product), &OFFERED, &Overrides::NONE)
                .1
                .quirks
        };
        assert_eq!(quirks(0x0bc2, 0xab20), NO_ATA_1X);
        assert_eq!(quirks(0x0bc2, 0x331a), NO_ATA_1X | NO_REPORT_LUNS);
        assert_eq!(quirks(0x0bc3, 0xab20), Quirks::empty());
    }

    #[test]
    fn a_rebranded_bridge_is_known_by_its_strings() {
        let plain = identity(0x0bda, 0x9210);
        assert_eq!(choice(&plain, &OFFERED), UasChoice::Uas);
        let hiksemi = Identity {
            manufacturer: b"HIKSEMI",
            product_name: b"MD202",
            ..plain
        };
        assert_eq!(
            choice(&hiksemi, &OFFERED),
            UasChoice::BulkOnly(Avoidance::Quirk)
        );
    }

    #[test]
    fn the_host_needs_streams_at_super_speed_and_none_below() {
        let disk = identity(0x04e8, 0x4001);
        let without = Setting {
            host_has_streams: false,
            ..OFFERED
        };
        let avoided = UasChoice::BulkOnly(Avoidance::HostWithoutStreams);
        assert_eq!(choice(&disk, &without), avoided);
        let slow = Identity {
            speed: Speed::High,
            ..disk
        };
        assert_eq!(choice(&slow, &without), UasChoice::Uas);
        let none = Setting {
            is_offered: false,
            ..OFFERED
        };
        assert_eq!(
            choice(&disk, &none),
            UasChoice::BulkOnly(Avoidance::NotOffered)
        );
    }

    #[test]
    fn the_string_decides_over_table_and_rules_both_ways() {
        let decide = |vendor, product, setting: &Setting, text| {
            attached(&identity(vendor, product), setting, &Overrides::new(text)).0
        };
        let quirk = UasChoice::BulkOnly(Avoidance::Quirk);
        assert_eq!(decide(0x152d, 0x0578, &OFFERED, "152d:0578:u"), quirk);
        assert_eq!(
            decide(0x2537, 0x1068, &OFFERED, "2537:1068:"),
            UasChoice::Uas
        );
        let asm1051 = Setting {
            status_streams: 32,
            ..OFFERED
        };
        assert_eq!(
            decide(0x174c, 0x55aa, &asm1051, "174c:55aa:"),
            UasChoice::Uas
        );
        assert_eq!(decide(0x174c, 0x55aa, &asm1051, "174c:55aa:u"), quirk);
    }
}
