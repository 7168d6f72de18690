//! Devices on Bulk-Only, and the rules that go with them.
//!
//! Ids, releases and policies are those of the source; where it gives no releases here, all are
//! meant. Devices with other transports than Bulk-Only (CBI, vendor protocols) are left out, and so
//! are phones and cameras that need a command of their own to become a disk.

use super::entry::{Entry, Identity, Row, Story, Table, entries, stories};
use super::{Decision, Overrides, Quirks};
use crate::usb::speed::Speed;

/// What a device gets when it is used over Bulk-Only.
#[must_use]
pub fn bulk_only(identity: &Identity<'_>, overrides: &Overrides<'_>) -> Decision {
    let entry = Table::BulkOnly.find(identity);
    Decision::new(entry, Quirks::empty(), identity, overrides).with_vendor_rule(identity)
}

const LINUX: &str = "Linux, drivers/usb/storage/unusual_devs.h";

const fn row(vendor: u16, product: u16, quirks: Quirks, name: &'static str) -> Row {
    Row::new(vendor, product, quirks, name, LINUX)
}

const SINGLE_LUN: Quirks = Quirks::SINGLE_LUN;
const FIX_INQUIRY: Quirks = Quirks::FIX_INQUIRY;
const FIX_CAPACITY: Quirks = Quirks::FIX_CAPACITY;
const IGNORE_RESIDUE: Quirks = Quirks::IGNORE_RESIDUE;
const BULK32: Quirks = Quirks::BULK32;
const NOT_LOCKABLE: Quirks = Quirks::NOT_LOCKABLE;
const GO_SLOW: Quirks = Quirks::GO_SLOW;
const NO_WP_DETECT: Quirks = Quirks::NO_WP_DETECT;
const MAX_SECTORS_64: Quirks = Quirks::MAX_SECTORS_64;
const MAX_SECTORS_MIN: Quirks = Quirks::MAX_SECTORS_MIN;
const IGNORE_DEVICE: Quirks = Quirks::IGNORE_DEVICE;
const BULK_IGNORE_TAG: Quirks = Quirks::BULK_IGNORE_TAG;
const CAPACITY_HEURISTICS: Quirks = Quirks::CAPACITY_HEURISTICS;
const SANE_SENSE: Quirks = Quirks::SANE_SENSE;
const BAD_SENSE: Quirks = Quirks::BAD_SENSE;
const NO_READ_CAPACITY_16: Quirks = Quirks::NO_READ_CAPACITY_16;
const INITIAL_READ10: Quirks = Quirks::INITIAL_READ10;
const WRITE_CACHE: Quirks = Quirks::WRITE_CACHE;
const NEEDS_CAP16: Quirks = Quirks::NEEDS_CAP16;
const IGNORE_UAS: Quirks = Quirks::IGNORE_UAS;
const BROKEN_FUA: Quirks = Quirks::BROKEN_FUA;
const NO_ATA_1X: Quirks = Quirks::NO_ATA_1X;
const NO_REPORT_OPCODES: Quirks = Quirks::NO_REPORT_OPCODES;
const ALWAYS_SYNC: Quirks = Quirks::ALWAYS_SYNC;
const SENSE_AFTER_SYNC: Quirks = Quirks::SENSE_AFTER_SYNC;
const BULK_ONLY: Quirks = Quirks::BULK_ONLY;
const STATUS_LAST: Quirks = Quirks::STATUS_LAST;

/// Two at once.
const fn both(one: Quirks, other: Quirks) -> Quirks {
    one.union(other)
}

pub(super) static ENTRIES: [Entry; ROWS.len()] = entries(ROWS);
pub(super) static STORIES: [Story; ROWS.len()] = stories(ROWS);

#[rustfmt::skip]
const ROWS: &[Row; 200] = &[
    row(0x03eb, 0x2002, IGNORE_RESIDUE, "Atmel SND1 storage").release(0x0100),
    row(0x03ee, 0x6901, SINGLE_LUN, "Mitsumi USB floppy").releases(0x0000, 0x0200),
    row(0x03ee, 0x6906, IGNORE_RESIDUE, "Mitsumi multi card reader (VIA)").release(0x0003),
    row(0x03f0, 0x070c, SANE_SENSE, "HP Personal Media Drive").release(0x0000),
    row(0x03f0, 0x4002, FIX_CAPACITY, "HP PhotoSmart R707").release(0x0001),
    row(0x0409, 0x0040, SINGLE_LUN, "NEC UF000x floppy"),
    row(0x040d, 0x6205, IGNORE_RESIDUE, "VIA USB 2.0 card reader").release(0x0003),
    row(0x0411, 0x001c, FIX_INQUIRY, "Buffalo DUB-P40G").release(0x0113),
    row(0x0419, 0x0100, IGNORE_RESIDUE, "Samsung MP3 player").release(0x0100),
    row(0x0419, 0xaace, IGNORE_RESIDUE, "Samsung MP3 player").release(0x0100),
    row(0x0419, 0xaaf5, both(IGNORE_RESIDUE, NOT_LOCKABLE), "TrekStor i.Beat 115 2.0").release(0x0100),
    row(0x0419, 0xaaf6, IGNORE_RESIDUE, "TrekStor i.Beat Joy 2.0").release(0x0100),
    row(0x0420, 0x0001, IGNORE_RESIDUE, "MyMusix PD-205 MP3 player").release(0x0100),
    row(0x0421, 0x0019, MAX_SECTORS_64, "Nokia 6288").releases(0x0592, 0x0610),
    row(0x0421, 0x005d, FIX_CAPACITY, "Nokia 3110c").releases(0x0001, 0x0600),
    row(0x0421, 0x006a, FIX_CAPACITY, "Nokia 5310").releases(0x0000, 0x0591),
    row(0x0421, 0x042e, both(IGNORE_RESIDUE, FIX_CAPACITY), "Nokia 3250").release(0x0100),
    row(0x0421, 0x0433, both(IGNORE_RESIDUE, FIX_CAPACITY), "Nokia E70").release(0x0100),
    row(0x0421, 0x0434, both(IGNORE_RESIDUE, FIX_CAPACITY), "Nokia E60").release(0x0100),
    row(0x0421, 0x0444, both(IGNORE_RESIDUE, FIX_CAPACITY), "Nokia N91").release(0x0100),
    row(0x0421, 0x0446, both(IGNORE_RESIDUE, FIX_CAPACITY), "Nokia N80").release(0x0100),
    row(0x0421, 0x044e, both(IGNORE_RESIDUE, FIX_CAPACITY), "Nokia E61").release(0x0100),
    row(0x0421, 0x047c, MAX_SECTORS_64, "Nokia 6131").releases(0x0370, 0x0610),
    row(0x0421, 0x0492, MAX_SECTORS_64, "Nokia 6233").release(0x0452),
    row(0x0421, 0x0495, MAX_SECTORS_64, "Nokia 6234").release(0x0370),
    row(0x0421, 0x04b9, MAX_SECTORS_64, "Nokia 5300").releases(0x0500, 0x0551),
    row(0x0421, 0x05af, MAX_SECTORS_64, "Nokia 305").release(0x0742),
    row(0x0421, 0x06aa, MAX_SECTORS_64, "Nokia 502").release(0x1110),
    row(0x0421, 0x06c2, MAX_SECTORS_64, "Nokia 208").releases(0x0000, 0x0406),
    row(0x0424, 0x0fdc, SINGLE_LUN, "SMSC FDC GOLD").release(0x0210),
    row(0x0451, 0x5416, BULK_ONLY, "Neuros USB 2.0 HD").release(0x0100).at(Speed::High),
    row(0x0457, 0x0150, NOT_LOCKABLE, "USBest stick (Transcend)").release(0x0100),
    row(0x0457, 0x0151, NOT_LOCKABLE, "USBest MyFlash stick").release(0x0100),
    row(0x045e, 0xffff, MAX_SECTORS_64, "Mitac GPS").release(0x0000),
    row(0x046b, 0xff40, NO_WP_DETECT, "AMI virtual floppy").release(0x0100),
    row(0x0480, 0xd010, ALWAYS_SYNC, "Toshiba External USB 3.0"),
    row(0x0482, 0x0103, FIX_INQUIRY, "Kyocera Finecam S5").release(0x0100),
    row(0x0482, 0x0107, both(FIX_CAPACITY, NOT_LOCKABLE), "Contax SL300R").release(0x0100),
    row(0x04a5, 0x3010, IGNORE_RESIDUE, "BenQ DC5330").release(0x0100),
    row(0x04b0, 0x0301, NOT_LOCKABLE, "Nikon E2000").release(0x0010),
    row(0x04b0, 0x0401, FIX_CAPACITY, "Nikon D100").release(0x0200),
    row(0x04b0, 0x0405, FIX_CAPACITY, "Nikon D70").release(0x0100),
    row(0x04b0, 0x0409, FIX_CAPACITY, "Nikon D50").release(0x0100),
    row(0x04b0, 0x040d, FIX_CAPACITY, "Nikon D70s").release(0x0100),
    row(0x04b0, 0x040f, FIX_CAPACITY, "Nikon D200").releases(0x0100, 0x0200),
    row(0x04b0, 0x0411, FIX_CAPACITY, "Nikon D80").releases(0x0100, 0x0111),
    row(0x04b0, 0x0413, FIX_CAPACITY, "Nikon D40").releases(0x0110, 0x0111),
    row(0x04b0, 0x0415, FIX_CAPACITY, "Nikon D2Xs").release(0x0100),
    row(0x04b0, 0x0417, FIX_CAPACITY, "Nikon D40X").release(0x0100),
    row(0x04b0, 0x0419, FIX_CAPACITY, "Nikon D300").releases(0x0100, 0x0200),
    row(0x04b3, 0x4001, MAX_SECTORS_MIN, "IBM RSA2 virtual disk").release(0x0110),
    row(0x04b8, 0x0602, both(SINGLE_LUN, BULK_ONLY), "Epson 785EPX storage").release(0x0110),
    row(0x04c5, 0x2028, NOT_LOCKABLE, "Fujitsu device 2028"),
    row(0x04ce, 0x0002, both(FIX_CAPACITY, BULK_IGNORE_TAG), "ScanLogic SL11R-IDE").releases(0x0026, 0x026c),
    row(0x04da, 0x2372, both(FIX_CAPACITY, NOT_LOCKABLE), "Panasonic DMC-LCx"),
    row(0x04da, 0x2373, both(FIX_CAPACITY, NOT_LOCKABLE), "Leica D-Lux"),
    row(0x04e8, 0x507c, MAX_SECTORS_64, "Samsung YP-U3").release(0x0220),
    row(0x04e8, 0x5122, both(MAX_SECTORS_64, BULK_IGNORE_TAG), "Samsung YP-CP3"),
    row(0x04e8, 0x5136, MAX_SECTORS_64, "Samsung YP-Z3"),
    row(0x04fc, 0x80c2, BULK32, "Kobian Binocam DCB-132").release(0x0100),
    row(0x052b, 0x1801, IGNORE_RESIDUE, "Yakumo Mega Image 37").release(0x0100),
    row(0x052b, 0x1804, IGNORE_RESIDUE, "Tekom 300 camera").release(0x0100),
    row(0x052b, 0x1807, IGNORE_RESIDUE, "Tekom 300 camera").release(0x0100),
    row(0x052b, 0x1905, IGNORE_RESIDUE, "Yakumo Mega Image 47").release(0x0100),
    row(0x052b, 0x1911, IGNORE_RESIDUE, "Tekom 400 camera").release(0x0100),
    row(0x054c, 0x0010, both(both(SINGLE_LUN, NOT_LOCKABLE), NO_WP_DETECT), "Sony DSC-S30 to F717").releases(0x0106, 0x0450),
    row(0x054c, 0x0010, SINGLE_LUN, "Sony DSC-T1, T5, H5").releases(0x0500, 0x0610),
    row(0x054c, 0x0025, SINGLE_LUN, "Sony NW-MS7").release(0x0100),
    row(0x054c, 0x002c, SINGLE_LUN, "Sony USB floppy").releases(0x0501, 0x2000),
    row(0x054c, 0x002d, SINGLE_LUN, "Sony MSAC-US1").release(0x0100),
    row(0x054c, 0x002e, SINGLE_LUN, "Sony Handycam").releases(0x0106, 0x0310),
    row(0x054c, 0x002e, SINGLE_LUN, "Sony Handycam HC-85").release(0x0500),
    row(0x054c, 0x0032, SINGLE_LUN, "Sony MSC-U01N"),
    row(0x054c, 0x0058, FIX_INQUIRY, "Sony PEG N760c"),
    row(0x054c, 0x006d, FIX_INQUIRY, "Sony PEG mass storage"),
    row(0x054c, 0x0099, FIX_INQUIRY, "Sony PEG mass storage"),
    row(0x054c, 0x016a, FIX_INQUIRY, "Sony PEG mass storage"),
    row(0x054c, 0x02a5, NO_READ_CAPACITY_16, "Sony device 02a5").release(0x0100),
    row(0x055d, 0x2020, SINGLE_LUN, "Samsung SFD-321U floppy").releases(0x0000, 0x0210),
    row(0x057b, 0x0000, SINGLE_LUN, "Y-E Data Flashbuster-U").releases(0x0300, 0x9999),
    row(0x057b, 0x0022, BULK_ONLY, "Y-E Data Silicon Media R/W"),
    row(0x058f, 0x6387, MAX_SECTORS_64, "JetFlash TS1GJF2A/120").release(0x0141),
    row(0x059b, 0x0001, SINGLE_LUN, "Iomega Zip 100").release(0x0100),
    row(0x059b, 0x0040, SINGLE_LUN, "Iomega Jaz").release(0x0100),
    row(0x059f, 0x0643, GO_SLOW, "LaCie DVD+-RW").release(0x0000),
    row(0x059f, 0x0651, NO_WP_DETECT, "LaCie hard disk").release(0x0000),
    row(0x05ab, 0x0060, BULK_ONLY, "In-System PyroGate enclosure").releases(0x1104, 0x1110),
    row(0x05ac, 0x1202, FIX_CAPACITY, "Apple iPod").to(0x1203),
    row(0x05ac, 0x1204, both(FIX_CAPACITY, NOT_LOCKABLE), "Apple iPod"),
    row(0x05ac, 0x1205, FIX_CAPACITY, "Apple iPod"),
    row(0x05ac, 0x120a, FIX_CAPACITY, "Apple iPod Nano"),
    row(0x05dc, 0xb002, FIX_INQUIRY, "Lexar CF reader").releases(0x0000, 0x0113),
    row(0x05e3, 0x0701, both(both(GO_SLOW, MAX_SECTORS_64), IGNORE_RESIDUE), "Genesys USB to IDE, optical"),
    row(0x05e3, 0x0702, both(both(GO_SLOW, MAX_SECTORS_64), IGNORE_RESIDUE), "Genesys USB to IDE, disk"),
    row(0x05e3, 0x0723, SANE_SENSE, "Genesys USB to SATA").release(0x9451),
    row(0x0603, 0x8611, BULK_IGNORE_TAG, "Novatek NTK96550 camera"),
    row(0x0636, 0x0003, FIX_INQUIRY, "Vivitar Vivicam 35Xx"),
    row(0x066f, 0x8000, FIX_CAPACITY, "SigmaTel audio player").release(0x0001),
    row(0x067b, 0x1063, BAD_SENSE, "Prolific device 1063"),
    row(0x067b, 0x2317, NOT_LOCKABLE, "Prolific device 2317"),
    row(0x067b, 0x2507, both(FIX_CAPACITY, GO_SLOW), "Prolific PL-2507").release(0x0100),
    row(0x067b, 0x3507, both(FIX_CAPACITY, GO_SLOW), "Prolific PL-3507").release(0x0001),
    row(0x069b, 0x3004, FIX_CAPACITY, "RCA RD1080 MP3 player").release(0x0001),
    row(0x071b, 0x3203, both(both(NO_WP_DETECT, MAX_SECTORS_64), NO_READ_CAPACITY_16), "Rockchip MP3 player").release(0x0000),
    row(0x071b, 0x3203, MAX_SECTORS_64, "Rockchip MP3 player: leaves the bus above 64 KiB").release(0x0100),
    row(0x071b, 0x32bb, both(NO_WP_DETECT, MAX_SECTORS_64), "Rockchip MP3 player").release(0x0000),
    row(0x0727, 0x0306, IGNORE_RESIDUE, "Atmel SND1 storage").release(0x0100),
    row(0x0781, 0x0002, FIX_CAPACITY, "SanDisk ImageMate CompactFlash").release(0x0009),
    row(0x07ab, 0xfccd, FIX_CAPACITY, "Freecom FHD-Classic"),
    row(0x07c4, 0xa400, both(FIX_INQUIRY, FIX_CAPACITY), "Datafab KECF-USB"),
    row(0x07c4, 0xa4a5, IGNORE_RESIDUE, "Datafab CF and SM reader"),
    row(0x0839, 0x000a, FIX_INQUIRY, "Samsung Digimax 410").release(0x0001),
    row(0x0840, 0x0082, FIX_CAPACITY, "Argosy storage").release(0x0001),
    row(0x0840, 0x0084, FIX_CAPACITY, "Argosy storage").to(0x0085).release(0x0001),
    row(0x084d, 0x0011, BULK32, "Grandtech DC2MEGA").release(0x0110),
    row(0x0851, 0x1542, BULK_ONLY, "Maxell WS30 camera").release(0x0002),
    row(0x0851, 0x1543, NOT_LOCKABLE, "PanDigital photo frame").release(0x0200),
    row(0x08bd, 0x1100, SINGLE_LUN, "Citizen X1DE-USB floppy").release(0x0000),
    row(0x08ca, 0x3103, IGNORE_RESIDUE, "Aiptek keychain MP3 player").release(0x0100),
    row(0x090a, 0x1001, BULK_ONLY, "Trumpion t33520").release(0x0100),
    row(0x090c, 0x1132, FIX_CAPACITY, "Feiya 5-in-1 card reader"),
    row(0x090c, 0x3350, BAD_SENSE, "Silicon Motion SM3350 UFS bridge"),
    row(0x090c, 0x6000, INITIAL_READ10, "Feiya SD reader").release(0x0100).says("refuses its first read; Linux, drivers/usb/storage/unusual_devs.h"),
    row(0x0951, 0x1697, NO_WP_DETECT, "Kingston DT Ultimate G3").release(0x0100),
    row(0x0a17, 0x0004, FIX_INQUIRY, "Pentax Optio 2/3/400").release(0x1000),
    row(0x0a17, 0x0006, FIX_INQUIRY, "Pentax Optio S/S4"),
    row(0x0ace, 0x2011, IGNORE_DEVICE, "ZyXEL G-220F, driver CD").release(0x0101),
    row(0x0ace, 0x20ff, IGNORE_DEVICE, "SiteCom WL-117, driver CD").release(0x0101),
    row(0x0bc2, 0x2300, WRITE_CACHE, "Seagate Portable"),
    row(0x0bc2, 0x3010, SANE_SENSE, "Seagate FreeAgent Pro").release(0x0000),
    row(0x0bc2, 0x3332, NO_WP_DETECT, "Seagate External"),
    row(0x0bda, 0x1a2b, IGNORE_DEVICE, "Realtek Wi-Fi, driver CD"),
    row(0x0bda, 0xa192, IGNORE_DEVICE, "Realtek Wi-Fi, driver CD"),
    row(0x0c45, 0x1060, SINGLE_LUN, "stick that answers for two units").release(0x0100),
    row(0x0d49, 0x7310, SANE_SENSE, "Maxtor USB to SATA"),
    row(0x0d96, 0x410a, FIX_INQUIRY, "Medion MD 7425").releases(0x0001, 0xffff),
    row(0x0d96, 0x5200, FIX_INQUIRY, "Jenoptik JD 5200 z3").releases(0x0001, 0x0200),
    row(0x0dc4, 0x0073, FIX_CAPACITY, "Macpower enclosure").release(0x0000),
    row(0x0dd8, 0x1060, FIX_INQUIRY, "Netac CF reader"),
    row(0x0dd8, 0xd202, IGNORE_RESIDUE, "Netac OnlyDisk"),
    row(0x0dda, 0x0001, IGNORE_RESIDUE, "Winward Music Disk").release(0x0012),
    row(0x0dda, 0x0301, IGNORE_RESIDUE, "PNP MP3 player").release(0x0012),
    row(0x0e21, 0x0520, BULK_ONLY, "Cowon iAudio M5").release(0x0100),
    row(0x0ea0, 0x2168, IGNORE_RESIDUE, "Ours Technology flash disk").release(0x0110),
    row(0x0ea0, 0x6828, IGNORE_RESIDUE, "Ours Technology flash disk").release(0x0110),
    row(0x0ed1, 0x6660, FIX_INQUIRY, "solid state disk 6660").releases(0x0100, 0x0300),
    row(0x0ed1, 0x7636, both(both(IGNORE_RESIDUE, GO_SLOW), MAX_SECTORS_64), "Typhoon My DJ 1820").release(0x0103),
    row(0x0f19, 0x0103, IGNORE_RESIDUE, "Oracom ORC-200M").release(0x0100),
    row(0x0f19, 0x0105, IGNORE_RESIDUE, "C-MEX A-VOX").release(0x0100),
    row(0x0f88, 0x042e, FIX_CAPACITY, "VTech Kidizoom").release(0x0100),
    row(0x0fca, 0x8004, MAX_SECTORS_64, "BlackBerry").release(0x0201),
    row(0x0fce, 0xd008, NO_WP_DETECT, "Sony Ericsson V800").release(0x0000),
    row(0x0fce, 0xd0e1, IGNORE_DEVICE, "Sony Ericsson MD400, driver CD"),
    row(0x0fce, 0xe030, both(FIX_CAPACITY, IGNORE_RESIDUE), "Sony Ericsson P990i").release(0x0000),
    row(0x0fce, 0xe031, both(FIX_CAPACITY, IGNORE_RESIDUE), "Sony Ericsson M600i").release(0x0000),
    row(0x0fce, 0xe092, IGNORE_RESIDUE, "Sony Ericsson P1i").release(0x0000),
    row(0x1058, 0x0704, SANE_SENSE, "Western Digital My Passport"),
    row(0x1058, 0x070a, WRITE_CACHE, "Western Digital My Passport"),
    row(0x1199, 0x0fff, IGNORE_DEVICE, "Sierra Wireless modem, driver CD"),
    row(0x1210, 0x0003, IGNORE_RESIDUE, "DigiTech GNX4").release(0x0100),
    row(0x1370, 0x6828, IGNORE_RESIDUE, "Swissbit Black Silver").release(0x0110),
    row(0x13fd, 0x3609, IGNORE_RESIDUE, "Initio INIC-3619").release(0x0209),
    row(0x13fd, 0x3940, both(NO_ATA_1X, IGNORE_RESIDUE), "Initio INIC-3069"),
    row(0x13fe, 0x3600, BULK_IGNORE_TAG, "Kingston DT 101 G2").release(0x0100),
    row(0x14cd, 0x6600, IGNORE_RESIDUE, "Super Top IDE device").release(0x0201),
    row(0x152d, 0x0567, BROKEN_FUA, "JMicron JMS567").releases(0x0114, 0x0117),
    row(0x152d, 0x0578, BROKEN_FUA, "JMicron JMS578"),
    row(0x152d, 0x2329, both(IGNORE_RESIDUE, SANE_SENSE), "JMicron USB to ATA").release(0x0100),
    row(0x152d, 0x2566, BROKEN_FUA, "JMicron JMS566").release(0x0114),
    row(0x152d, 0x2567, BROKEN_FUA, "JMicron JMS567").release(0x0117),
    row(0x152d, 0x9561, NO_REPORT_OPCODES, "JMicron JMS56x"),
    row(0x1652, 0x6600, IGNORE_RESIDUE, "Teac HD-35PUK-B (Super Top)").release(0x0201),
    row(0x174c, 0x55aa, NEEDS_CAP16, "ASMedia AS2105").release(0x0100).says("its short capacity lies above 2 TiB; Linux, drivers/usb/storage/unusual_devs.h"),
    row(0x177f, 0x0400, both(BULK_IGNORE_TAG, MAX_SECTORS_64), "Yarvik PMP400").release(0x0000),
    row(0x1908, 0x1315, BAD_SENSE, "digital photo frame").release(0x0000),
    row(0x1908, 0x1320, BAD_SENSE, "digital photo frame").release(0x0000),
    row(0x1949, 0x0004, SENSE_AFTER_SYNC, "Amazon Kindle"),
    row(0x19d2, 0x1225, SINGLE_LUN, "ZTE modem's card reader"),
    row(0x1b1c, 0x1ab5, INITIAL_READ10, "Corsair Padlock v2").release(0x0200).says("its first read brings junk; Linux, drivers/usb/storage/unusual_devs.h"),
    row(0x1de1, 0xc102, IGNORE_DEVICE, "device 1de1:c102"),
    row(0x1e68, 0x001b, both(IGNORE_RESIDUE, SANE_SENSE), "TrekStor DataStation maxi g.u").release(0x0000),
    row(0x1e74, 0x4621, both(BULK_IGNORE_TAG, MAX_SECTORS_64), "Coby MP3 player").release(0x0000),
    row(0x1fc9, 0x0117, IGNORE_RESIDUE, "device 1fc9:0117"),
    row(0x2109, 0x0715, IGNORE_UAS, "VIA VL817").release(0x9999),
    row(0x2116, 0x0320, FIX_CAPACITY, "ST 2A").release(0x0001),
    row(0x22b8, 0x3010, both(FIX_CAPACITY, IGNORE_RESIDUE), "Motorola RAZR V3x").release(0x0001),
    row(0x22b8, 0x6426, both(both(FIX_INQUIRY, FIX_CAPACITY), BULK_IGNORE_TAG), "Motorola ROKR Z6").release(0x0101),
    row(0x2735, 0x100b, GO_SLOW, "MPIO HS200"),
    row(0x2ca3, 0x0031, NO_ATA_1X, "DJI CineSSD"),
    row(0x3340, 0xffff, MAX_SECTORS_64, "Mitac Mio DigiWalker").release(0x0000),
    row(0x357d, 0x7788, both(NO_REPORT_OPCODES, BROKEN_FUA), "JMicron JMS566 (Sharkoon)").release(0x0114),
    row(0x4102, 0x1020, IGNORE_RESIDUE, "iRiver T10").release(0x0100),
    row(0x4102, 0x1059, MAX_SECTORS_64, "iRiver P7K").release(0x0000),
    row(0x4146, 0xba01, NOT_LOCKABLE, "Iomega Micro Mini 1GB").release(0x0100),
    row(0x46f4, 0x0001, STATUS_LAST, "QEMU usb-storage").says("tried with QEMU 7.2 and 11.1: a write's status read is stalled, a slow read's is lost"),
    row(0x4971, 0x8024, ALWAYS_SYNC, "G-Technology G-Drive"),
    row(0xc251, 0x4003, NOT_LOCKABLE, "Keil V2M motherboard"),
    row(0xe5b7, 0x0811, IGNORE_DEVICE, "JieLi BR21"),
    row(0xed06, 0x4500, CAPACITY_HEURISTICS, "DataStor USB4500").release(0x0001),
    row(0xed10, 0x7636, NOT_LOCKABLE, "Typhoon device 7636"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::quirks::entry::checks::{a_table_is_in_order, neighbours_are_spared};

    fn identity(vendor: u16, product: u16, release: u16) -> Identity<'static> {
        Identity {
            vendor,
            product,
            release,
            speed: Speed::High,
            manufacturer: b"",
            product_name: b"",
        }
    }

    fn quirks(vendor: u16, product: u16, release: u16) -> Quirks {
        bulk_only(&identity(vendor, product, release), &Overrides::NONE).quirks
    }

    #[test]
    fn the_table_is_in_order_and_every_entry_is_reached() {
        a_table_is_in_order(Table::BulkOnly);
    }

    #[test]
    fn the_next_product_and_the_next_release_are_spared() {
        neighbours_are_spared(Table::BulkOnly);
    }

    #[test]
    fn a_release_range_tells_two_devices_of_one_id_apart() {
        assert!(quirks(0x071b, 0x3203, 0).contains(NO_READ_CAPACITY_16));
        assert_eq!(quirks(0x071b, 0x3203, 0x0100), MAX_SECTORS_64);
        assert_eq!(quirks(0x071b, 0x3203, 0x0101), Quirks::empty());
    }

    #[test]
    fn four_vendors_count_too_high_unless_it_is_known_better() {
        assert_eq!(quirks(0x0421, 0x0001, 0), CAPACITY_HEURISTICS);
        assert_eq!(quirks(0x04b0, 0x0401, 0x0200), FIX_CAPACITY);
        let known = Overrides::new("0421:0001:o");
        let decision = bulk_only(&identity(0x0421, 1, 0), &known);
        assert_eq!(decision.quirks, Quirks::CAPACITY_OK);
        assert_eq!(quirks(0x0420, 0x0009, 0), Quirks::empty());
    }

    #[test]
    fn the_string_replaces_what_has_a_letter_and_keeps_the_rest() {
        let genesys = identity(0x05e3, 0x0702, 0x0002);
        let decide = |text| bulk_only(&genesys, &Overrides::new(text));
        assert_eq!(decide("05e3:0702:u").quirks, GO_SLOW | IGNORE_UAS);
        assert_eq!(decide("05e3:0702:").quirks, GO_SLOW);
        assert_eq!(
            decide("05e3:0701:u").quirks,
            GO_SLOW | MAX_SECTORS_64 | IGNORE_RESIDUE
        );
        let source = decide("1:2:k, 05e3:0702:k").source;
        let replaced = GO_SLOW | MAX_SECTORS_64 | IGNORE_RESIDUE;
        assert_eq!(source.replaced, Some((replaced, 7)));
    }
}
