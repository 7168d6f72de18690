//! The driver of an EHCI on its machine.

use rootport::dma::{self, Class, Owner, Pool, PoolRecord, Rules};
use rootport::host::ehci::{Ehci, EhciMemory, Options};
use rootport_models::adapter::{ModelBus, ModelPlatform};
use rootport_models::controller::ehci::{Faults, Traits};
use rootport_models::machine::{self, Machine};

pub(crate) use crate::driver_rig::*;

/// The driver on its machine.
pub(crate) type Rig<'s> = crate::driver_rig::Rig<'s, Ehci<'s, ModelBus>>;

/// A machine with one controller, before a driver has it.
pub(crate) struct Setting {
    pub(crate) machine: machine::Options,
    pub(crate) traits: Traits,
    pub(crate) faults: Faults,
    pub(crate) options: Options,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            machine: machine::Options::default(),
            traits: Traits::default(),
            faults: Faults::none(),
            options: Options::default(),
        }
    }
}

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
    let platform = ModelPlatform::new(machine);
    let mut records = [PoolRecord::EMPTY; 64];
    let mut pool = Pool::new(platform.coherent_region(1 << 20), &mut records);
    let rules = Rules::aligned(0x1_0000);
    let data = pool
        .allocate(Owner::Host, Class::Bounce, 0x4_0000, rules)
        .unwrap();
    dma::release();
    let mut memory = EhciMemory::<4, 16, 32>::new();
    let bus = platform.bus(controller);
    let driver = Ehci::new(bus, 0, memory.slices(), options).unwrap();
    test(&mut Rig {
        machine: machine.clone(),
        platform,
        driver,
        pool,
        data,
        left: Vec::new(),
        handler: None,
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
