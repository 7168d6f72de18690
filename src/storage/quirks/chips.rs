//! Which chip is behind an id: for people, who buy enclosures and not chips.
//!
//! An id says little for sure: makers rebrand, and several generations of a chip share one. What
//! stands here is what public lists say. The policies do not depend on it.

/// A bridge chip.
#[derive(Clone, Copy, Debug)]
pub struct Chip {
    vendor: u16,
    product: u16,
    releases: (u16, u16),
    /// Its name, or the names that share the id.
    pub name: &'static str,
    /// Its bus and what hangs on it.
    pub links: &'static str,
    /// What people report, if anything.
    pub reports: &'static str,
}

/// What public lists say is behind an id: the first entry that fits.
#[must_use]
pub fn chip(vendor: u16, product: u16, release: u16) -> Option<&'static Chip> {
    CHIPS.iter().find(|chip| {
        (chip.vendor, chip.product) == (vendor, product)
            && (chip.releases.0..=chip.releases.1).contains(&release)
    })
}

const fn row(vendor: u16, product: u16, name: &'static str, links: &'static str) -> Chip {
    Chip {
        vendor,
        product,
        releases: (0, u16::MAX),
        name,
        links,
        reports: "",
    }
}

impl Chip {
    const fn release(mut self, release: u16) -> Self {
        self.releases = (release, release);
        self
    }

    const fn says(mut self, reports: &'static str) -> Self {
        self.reports = reports;
        self
    }
}

const SATA_5: &str = "5 Gb/s to SATA";
const SATA_10: &str = "10 Gb/s to SATA";
const NVME_10: &str = "10 Gb/s to NVMe";
const NVME_20: &str = "20 Gb/s to NVMe";
const PATA_2: &str = "480 Mb/s to PATA";
const SATA_2: &str = "480 Mb/s to SATA";

/// What Home Assistant's image for the Raspberry Pi does; part of the faults there are the host's.
const AVOIDED: &str = "Home Assistant OS forces Bulk-Only on the Raspberry Pi";

#[rustfmt::skip]
static CHIPS: [Chip; 101] = [
    row(0x0080, 0x0578, "JMicron JMS578", SATA_5),
    row(0x045b, 0x0229, "Renesas uPD720231", SATA_5),
    row(0x045b, 0x022a, "Renesas uPD720231A", SATA_5),
    row(0x045b, 0x3483, "Renesas uPD720231 (not certain)", SATA_5).says("Bulk-Only was forced on a Raspberry Pi"),
    row(0x0451, 0x9261, "Texas Instruments TUSB9261", SATA_5),
    row(0x0451, 0x926b, "Texas Instruments TUSB9261, in its boot mode", "without firmware: no disk"),
    row(0x04c5, 0x201d, "Fujitsu MB86C311 (not certain)", SATA_5),
    row(0x04e8, 0x4001, "ASMedia ASM2362 or ASM2364 (Samsung T7)", NVME_10),
    row(0x04e8, 0x4011, "bridge of a Samsung disk", NVME_10).says("Bulk-Only was forced in one project"),
    row(0x04e8, 0x61f5, "bridge of a Samsung disk", SATA_5).says("Bulk-Only was forced in one project"),
    row(0x05e3, 0x0701, "Genesys Logic USB to IDE, optical", PATA_2),
    row(0x05e3, 0x0702, "Genesys Logic USB to IDE, disk", PATA_2),
    row(0x05e3, 0x0723, "Genesys Logic USB to SATA", SATA_2),
    row(0x05e3, 0x0731, "Genesys Logic GL3310", SATA_5),
    row(0x05e3, 0x0735, "Genesys Logic GL3321G or a relative", SATA_5),
    row(0x05e3, 0x0761, "Genesys Logic GL3321G or a relative", SATA_5),
    row(0x05e3, 0x2013, "Genesys Logic GL3321G or a relative", SATA_5),
    row(0x0781, 0x558c, "ASMedia ASM2362 (SanDisk Extreme)", NVME_10),
    row(0x0984, 0x0320, "Initio INIC-3607 (Apricorn)", SATA_5),
    row(0x0bc2, 0xaa1a, "ASMedia ASM2364 (Seagate FireCuda)", NVME_20),
    row(0x0bda, 0x9201, "Realtek RTL9201", SATA_10),
    row(0x0bda, 0x9210, "Realtek RTL9210 or RTL9210B", "10 Gb/s to NVMe or SATA").says("disconnects with some firmware"),
    row(0x0bda, 0x9211, "Realtek RTL9211 (not certain)", "10 Gb/s to NVMe or SATA"),
    row(0x0bda, 0x9220, "Realtek RTL9220", NVME_20),
    row(0x0dd8, 0x9210, "Realtek RTL9210 (Netac)", NVME_10),
    row(0x0634, 0x5605, "bridge of the Crucial X9", NVME_10).says(AVOIDED),
    row(0x125f, 0xa88a, "bridge of an ADATA disk", SATA_5).says(AVOIDED),
    row(0x13fd, 0x160f, "Initio INIC-1610 or INIC-1611", SATA_2),
    row(0x13fd, 0x1640, "Initio INIC-1610", SATA_2),
    row(0x13fd, 0x1650, "Initio INIC-1611", SATA_2),
    row(0x13fd, 0x1840, "Initio INIC-1608", SATA_2).says("no UAS"),
    row(0x13fd, 0x1e40, "Initio INIC-1610 or INIC-1611", SATA_2),
    row(0x13fd, 0x3609, "Initio INIC-3619", SATA_5),
    row(0x13fd, 0x3940, "Initio INIC-3069", SATA_5),
    row(0x13fd, 0x3960, "Initio INIC-3639", SATA_5).says("Bulk-Only was asked for in raspberrypi/linux 5153"),
    row(0x14b0, 0x0206, "bridge of a StarTech adapter (not certain)", SATA_5).says(AVOIDED),
    row(0x152d, 0x0539, "JMicron JMS539", SATA_5),
    row(0x152d, 0x0551, "JMicron JMS551", "5 Gb/s to two SATA"),
    row(0x152d, 0x0561, "JMicron JMS561 (ODROID CloudShell 2; not certain)", "5 Gb/s to two SATA").release(0x0003),
    row(0x152d, 0x0561, "JMicron JMS551", "5 Gb/s to two SATA"),
    row(0x152d, 0x0562, "JMicron JMS562", "5 Gb/s to two SATA").says(AVOIDED),
    row(0x152d, 0x0567, "JMicron JMS567", SATA_5).says("good under UAS but for forced unit access"),
    row(0x152d, 0x0576, "JMicron JMS576", SATA_5),
    row(0x152d, 0x0577, "JMicron JMS577", SATA_5),
    row(0x152d, 0x0578, "JMicron JMS578", SATA_5).says("aborts and hangs under UAS on the Raspberry Pi 4: raspberrypi/linux 3070, 5060, 5246"),
    row(0x152d, 0x0579, "JMicron JMS579", SATA_5).says(AVOIDED),
    row(0x152d, 0x0580, "JMicron JMS580", SATA_10),
    row(0x152d, 0x0581, "JMicron JMS581", "10 Gb/s to SATA and NVMe"),
    row(0x152d, 0x0583, "JMicron JMS583", NVME_10).says(AVOIDED),
    row(0x152d, 0x0901, "JMicron JMS578", SATA_5),
    row(0x152d, 0x1561, "JMicron JMS561U", "5 Gb/s to two SATA").says(AVOIDED),
    row(0x152d, 0x1576, "JMicron JMS576", SATA_5),
    row(0x152d, 0x2329, "JMicron USB to ATA", PATA_2),
    row(0x152d, 0x2509, "JMicron JMS551", "5 Gb/s to two SATA"),
    row(0x152d, 0x2551, "JMicron JMS551", "5 Gb/s to two SATA"),
    row(0x152d, 0x2566, "JMicron JMS566", SATA_5),
    row(0x152d, 0x2567, "JMicron JMS567", SATA_5),
    row(0x152d, 0x2590, "JMicron JMS567", SATA_5),
    row(0x152d, 0x3562, "JMicron JMS567", SATA_5),
    row(0x152d, 0x3569, "JMicron JMS566", SATA_5),
    row(0x152d, 0x578e, "JMicron JMS578", SATA_5),
    row(0x152d, 0x8561, "JMicron JMS561", "5 Gb/s to two SATA"),
    row(0x152d, 0x9561, "JMicron JMS56x", "5 Gb/s to two SATA"),
    row(0x152d, 0xa561, "JMicron JMS561", "5 Gb/s to two SATA"),
    row(0x152d, 0xa576, "JMicron JMS576", SATA_5),
    row(0x152d, 0xa578, "JMicron JMS578", SATA_5).says(AVOIDED),
    row(0x152d, 0xa580, "JMicron JMS580", SATA_10),
    row(0x152d, 0xa581, "JMicron JMS581", "10 Gb/s to SATA and NVMe"),
    row(0x152d, 0xa583, "JMicron JMS583", NVME_10).says(AVOIDED),
    row(0x152d, 0xb567, "JMicron JMS567", SATA_5),
    row(0x152d, 0xb581, "JMicron JMS581", "10 Gb/s to SATA and NVMe"),
    row(0x174c, 0x0829, "ASMedia, of unknown kind", SATA_5).says(AVOIDED),
    row(0x174c, 0x1153, "ASMedia ASM1153", SATA_5),
    row(0x174c, 0x1156, "ASMedia ASM1156", SATA_5).says("hang under UAS: raspberrypi/linux 7570"),
    row(0x174c, 0x225c, "ASMedia ASM225CM", SATA_10).says(AVOIDED),
    row(0x174c, 0x235c, "ASMedia ASM235CM", SATA_10),
    row(0x174c, 0x2362, "ASMedia ASM2362", NVME_10),
    row(0x174c, 0x2364, "ASMedia ASM2364", NVME_20),
    row(0x174c, 0x2463, "ASMedia ASM2464PD", NVME_20),
    row(0x174c, 0x5106, "ASMedia ASM1051, ASM1053 or ASM1153", SATA_5),
    row(0x174c, 0x5136, "ASMedia ASM1053", SATA_5),
    row(0x174c, 0x51d6, "ASMedia ASM1051", SATA_5),
    row(0x174c, 0x55aa, "ASMedia ASM1051E, ASM1053E, ASM1153E or AS2105", SATA_5).release(0x0100).says(AVOIDED),
    row(0x174c, 0x55aa, "ASMedia ASM1051E, ASM1053E or ASM1153E", SATA_5).says(AVOIDED),
    row(0x174d, 0x1352, "ASMedia ASM1352-PM", "5 Gb/s to two SATA"),
    row(0x1de1, 0xe101, "Realtek RTL9210 (Actions AM8180)", NVME_10),
    row(0x2109, 0x0700, "VIA VL700", SATA_5),
    row(0x2109, 0x0701, "VIA VL701", SATA_5),
    row(0x2109, 0x0711, "VIA VL711", SATA_5),
    row(0x2109, 0x0715, "VIA VL817", SATA_5).release(0x9999),
    row(0x2109, 0x0715, "VIA VL715", SATA_5).says(AVOIDED),
    row(0x2109, 0x0716, "VIA VL716", SATA_10),
    row(0x2109, 0x0717, "VIA VL717", SATA_10),
    row(0x2109, 0x711f, "VIA VL711", SATA_5),
    row(0x2537, 0x1066, "Norelsys NS1066", SATA_5).says("Armbian forces Bulk-Only"),
    row(0x2537, 0x1068, "Norelsys NS1068", SATA_5).says("Armbian forces Bulk-Only"),
    row(0x2eb9, 0x9211, "Realtek RTL9211 or RTL9220 (Sabrent)", "10 or 20 Gb/s to NVMe"),
    row(0x357d, 0x7788, "JMicron JMS566 (Sharkoon)", SATA_5),
    row(0x7825, 0xa2a4, "bridge of unknown make", SATA_5).says(AVOIDED),
    row(0xa152, 0xb566, "JMicron JMS566", SATA_5),
    row(0xab12, 0x34cd, "JMicron JMS578", SATA_5),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_that_share_an_id_are_told_apart_by_their_release() {
        let name = |release| chip(0x2109, 0x0715, release).map(|chip| chip.name);
        assert_eq!(name(0x9999), Some("VIA VL817"));
        assert_eq!(name(0x0336), Some("VIA VL715"));
        assert!(chip(0x1209, 0x0001, 0x0100).is_none());
        // One release of three generations and a fourth chip has one name.
        let name = |release| chip(0x174c, 0x55aa, release).map(|chip| chip.name);
        assert!(name(0x0100).is_some_and(|name| name.contains("ASM1153E or AS2105")));
        assert!(
            name(0x0001).is_some_and(|name| name.contains("ASM1153E") && !name.contains("AS2105"))
        );
    }

    #[test]
    fn every_chip_is_reached() {
        for wanted in &CHIPS {
            let found = chip(wanted.vendor, wanted.product, wanted.releases.0).unwrap();
            let first = found.releases == wanted.releases || wanted.releases == (0, u16::MAX);
            assert!(first && !wanted.links.is_empty(), "{wanted:04x?}");
        }
    }
}
