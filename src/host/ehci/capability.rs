//! What the chip says about itself, read once and checked.
//!
//! Called by [`Ehci::new`](super::Ehci::new). Everything here may be nonsense: the window may belong
//! to a controller without clock, power or decoder, so each value is checked before it is used as an
//! offset or a count. `EHCI 1.0 §2.2`.

use super::regs::{
    CAPBASE, CAPBASE_REGISTER, HCCPARAMS, HCCPARAMS_REGISTER, HCSPARAMS, HCSPARAMS_REGISTER,
    PORTSC_OFFSET,
};
use crate::host::{CapabilityField, ControllerFault};
use crate::mmio::{Bus, Registers};

/// Constant facts of one controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Capability {
    /// Where the operational registers begin, in bytes from the start of the window.
    pub(super) operational: usize,
    /// Number of root ports, 1 to 15.
    pub(super) ports: u8,
    /// Port power can be switched.
    pub(super) power_switching: bool,
    /// There are companion controllers for full and low speed.
    pub(super) companions: bool,
    /// Queue heads and qTDs have extended pointers (`EHCI 1.0 appendix B`).
    pub(super) wide: bool,
}

/// Below this, CAPLENGTH would overlap the capability registers (§2.2.1).
const SHORTEST_CAPABILITIES: usize = 0x0c;

impl Capability {
    /// Reads and checks the capability registers.
    pub(super) fn read<B: Bus>(bus: &B) -> Result<Self, ControllerFault> {
        let registers = Registers::new(bus.clone(), 0);
        let base = registers.read(CAPBASE_REGISTER);
        let structural = registers.read(HCSPARAMS_REGISTER);
        if base.get() == u32::MAX || structural.get() == u32::MAX {
            return Err(ControllerFault::Absent);
        }
        let operational = base.read(CAPBASE::CAPLENGTH) as usize;
        if operational < SHORTEST_CAPABILITIES || !operational.is_multiple_of(4) {
            return Err(ControllerFault::Implausible(CapabilityField::Length));
        }
        if base.read(CAPBASE::HCIVERSION) == 0 {
            return Err(ControllerFault::Implausible(CapabilityField::Version));
        }
        let ports = structural.read(HCSPARAMS::N_PORTS) as u8;
        let end = operational + PORTSC_OFFSET + 4 * usize::from(ports);
        if ports == 0 || end > bus.length() {
            return Err(ControllerFault::Implausible(CapabilityField::Ports));
        }
        Ok(Self {
            operational,
            ports,
            power_switching: structural.is_set(HCSPARAMS::PPC),
            companions: structural.read(HCSPARAMS::N_CC) != 0,
            wide: registers.read(HCCPARAMS_REGISTER).is_set(HCCPARAMS::AC64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ehci::testing::FakeBus;

    fn probe(base: u32, structural: u32, parameters: u32) -> Result<Capability, ControllerFault> {
        let bus = FakeBus::new(0x100);
        bus.set(0, base);
        bus.set(4, structural);
        bus.set(8, parameters);
        Capability::read(&bus)
    }

    #[test]
    fn a_usual_controller_is_understood() {
        let capability = probe(0x0100_0020, 0x0000_1116, 0x1).unwrap();
        assert_eq!(capability.operational, 0x20);
        assert_eq!(capability.ports, 6);
        assert!(capability.power_switching && capability.companions && capability.wide);
    }

    #[test]
    fn a_window_of_ones_is_absent() {
        assert_eq!(
            probe(u32::MAX, u32::MAX, u32::MAX),
            Err(ControllerFault::Absent)
        );
    }

    #[test]
    fn hostile_values_are_refused_by_name() {
        let refused = |base, structural| match probe(base, structural, 0) {
            Err(ControllerFault::Implausible(what)) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            refused(0, 0),
            CapabilityField::Length,
            "not clocked: all zeros"
        );
        assert_eq!(
            refused(0x0100_0008, 1),
            CapabilityField::Length,
            "overlaps itself"
        );
        assert_eq!(
            refused(0x0100_0021, 1),
            CapabilityField::Length,
            "not a word"
        );
        assert_eq!(refused(0x20, 1), CapabilityField::Version);
        assert_eq!(refused(0x0100_0020, 0), CapabilityField::Ports);
        assert_eq!(
            refused(0x0100_0090, 15),
            CapabilityField::Ports,
            "ports outside the window"
        );
    }
}
