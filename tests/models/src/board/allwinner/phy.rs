//! One PHY: the settings that were shifted into it, and the PMU before it.

use super::Chip;
use crate::broken::{broken, require};

/// PMU + 0: AHB bursts of 8 and 4, aligned ones, and the bypass of ULPI without which a controller
/// has no PHY.
const PASSBY: u32 = 0x701;
/// PMU + 0x10: the PHY is powered down.
const SIDDQ: u32 = 1 << 1;

#[derive(Clone, Copy, Debug)]
pub(super) struct Phy {
    settings: [bool; 256],
    passby: u32,
    power: u32,
}

/// A setting: first address, bits from the lowest on.
type Setting = (usize, &'static [bool]);
const CALIBRATION: Setting = (0x0c, &[true]);
/// 0x14, five bits.
const AMPLITUDE: Setting = (0x20, &[false, false, true, false, true]);
/// Where the threshold is; its value is the chip's.
const THRESHOLD: usize = 0x2a;

impl Phy {
    /// Off, with settings that are not what is wanted.
    pub(super) const COLD: Self = Self {
        settings: [false; 256],
        passby: 0x8000_0000,
        power: SIDDQ | 0x100,
    };

    /// As after U-Boot's bring-up.
    pub(super) fn started(chip: &Chip, port: usize) -> Self {
        let mut phy = Self::COLD;
        for (first, bits) in wanted(chip, port).map(|(setting, _)| setting) {
            phy.settings[first..first + bits.len()].copy_from_slice(bits);
        }
        phy.passby |= PASSBY;
        phy.power &= !SIDDQ;
        phy
    }

    /// One bit was shifted in.
    pub(super) fn set(&mut self, address: u32, bit: bool) {
        self.settings[address as usize] = bit;
    }

    pub(super) fn access_pmu(&mut self, chip: &Chip, offset: u32, write: Option<u32>) -> u32 {
        let (register, own) = match offset {
            0x00 => (&mut self.passby, PASSBY),
            0x10 if chip.has_phy_power => (&mut self.power, SIDDQ),
            _ => broken!("PMU", "register {offset:#x} is not known"),
        };
        if let Some(value) = write {
            require!(
                (value ^ *register) & !own == 0,
                "PMU",
                "{value:#010x} over {register:#010x} changes bits that are not known"
            );
            *register = value;
        }
        *register
    }

    /// The step that is missing before the controller can use the PHY of `port`.
    pub(super) fn missing(&self, chip: &Chip, port: usize) -> Option<&'static str> {
        if chip.has_phy_power && self.power & SIDDQ != 0 {
            return Some("PHY power");
        }
        for ((first, bits), step) in wanted(chip, port) {
            if self.settings[first..first + bits.len()] != *bits {
                return Some(step);
            }
        }
        (self.passby & PASSBY != PASSBY).then_some("passby")
    }
}

/// What a PHY's settings must be, with their steps.
fn wanted(chip: &Chip, port: usize) -> impl Iterator<Item = (Setting, &'static str)> + use<> {
    let calibration = (port == 0).then_some((CALIBRATION, "PHY calibration"));
    calibration.into_iter().chain([
        (AMPLITUDE, "PHY amplitude"),
        ((THRESHOLD, chip.threshold), "PHY disconnect threshold"),
    ])
}
