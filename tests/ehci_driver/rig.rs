//! The driver of an EHCI on its machine.

use rootport::host::ehci::{Ehci, EhciMemory, Options};
use rootport_models::adapter::ModelBus;
use rootport_models::controller::ehci::{Faults, Traits};
use rootport_models::machine::{self, Machine};

pub(crate) use crate::driver_rig::*;

/// The driver on its machine.
pub(crate) type Rig<'s> = crate::driver_rig::Rig<'s, Ehci<'s, ModelBus>>;

pub(crate) type Setting = crate::driver_rig::Setting<Traits, Faults, Options>;

impl From<Traits> for Setting {
    fn from(traits: Traits) -> Self {
        Self {
            traits,
            ..Self::default()
        }
    }
}

impl From<Faults> for Setting {
    fn from(faults: Faults) -> Self {
        Self {
            faults,
            ..Self::default()
        }
    }
}

/// A controller of each shape: the usual one, and one that is odd in all that a driver must read. Their
/// first port has a PHY.
pub(crate) fn shapes() -> [Setting; 2] {
    let odd = Traits {
        missing_phys: Vec::new(),
        ..Traits::odd()
    };
    [Traits::default(), odd].map(Setting::from)
}

/// Runs `test` with a driver that was not started.
pub(crate) fn with_rig<R>(setting: impl Into<Setting>, test: impl FnOnce(&mut Rig<'_>) -> R) -> R {
    let setting = setting.into();
    let machine = Machine::new(setting.machine);
    let controller = machine.add_faulty_ehci(setting.traits, setting.faults);
    with_driver(&machine, controller, setting.options, test)
}

fn with_driver<R>(
    machine: &Machine,
    controller: usize,
    options: Options,
    test: impl FnOnce(&mut Rig<'_>) -> R,
) -> R {
    let mut memory = EhciMemory::<4, 16, 32>::new();
    with_memory(machine, |platform, pool, data| {
        let bus = platform.bus(controller);
        let driver = Ehci::new(bus, 0, memory.slices(), options).unwrap();
        test(&mut Rig::new(machine, platform, driver, pool, data))
    })
}

/// The same with a controller that a boot loader has left running.
pub(crate) fn with_left_running<R>(traits: Traits, test: impl FnOnce(&mut Rig<'_>) -> R) -> R {
    let machine = Machine::new(machine::Options::default());
    let (controller, _) = machine.add_ehci_left_running(traits, Faults::none());
    with_driver(&machine, controller, Options::default(), test)
}

/// The same with a driver that runs.
pub(crate) fn with_running<R>(
    setting: impl Into<Setting>,
    test: impl FnOnce(&mut Rig<'_>) -> R,
) -> R {
    with_rig(setting, |rig| {
        assert_eq!(rig.start(), Ok(()));
        test(rig)
    })
}

/// No answer of a doorbell got lost.
pub(crate) fn assert_nothing_was_missed(rig: &Rig<'_>) {
    assert_eq!(rig.driver.missed_doorbells(), 0);
}
