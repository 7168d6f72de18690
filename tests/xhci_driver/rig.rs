//! The driver of an xHCI on its machine.

use rootport::host::xhci::{Options, Xhci, XhciMemory};
use rootport::host::{Endpoints, Report, RootPort, RootPorts, Token};
use rootport::time::Duration;
use rootport_models::adapter::ModelBus;
use rootport_models::controller::xhci::{Faults, Traits};
use rootport_models::machine::Machine;

pub(crate) use crate::driver_rig::*;

/// The driver on its machine.
pub(crate) type Rig<'s> = crate::driver_rig::Rig<'s, Xhci<'s, ModelBus>>;

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

/// A controller of each shape: the usual one, the project's own chip, and one that is odd in all that a
/// driver must read. Their first port is for high speed.
pub(crate) fn shapes() -> [Setting; 3] {
    let odd = Traits {
        ports: Traits::default().ports,
        ..Traits::odd()
    };
    [Traits::default(), Traits::rk3328(), odd].map(Setting::from)
}

/// Runs `test` with a driver that was not started.
pub(crate) fn with_rig<R>(setting: impl Into<Setting>, test: impl FnOnce(&mut Rig<'_>) -> R) -> R {
    let setting = setting.into();
    let machine = Machine::new(setting.machine);
    let controller = machine.add_faulty_xhci(setting.traits, setting.faults);
    let mut memory = XhciMemory::<4, 16, 32>::new();
    with_memory(&machine, |platform, pool, data| {
        let bus = platform.bus(controller);
        let driver = Xhci::new(bus, 0, memory.slices(), setting.options).unwrap();
        test(&mut Rig::new(&machine, platform, driver, pool, data))
    })
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

impl Rig<'_> {
    /// Queues READ(10) with a status that is held back until the data are there.
    pub(crate) fn queue_read_held(&mut self, disk: &mut DiskRig, lba: u32, blocks: u16) {
        self.queue_read_data(disk, (lba, blocks, 0), Report::Always);
        let status = self.segment(STATUS, 1024);
        let held = self.driver.hold_segment(disk.input, Token(3), status);
        assert_eq!(held, Ok(()));
        self.driver.kick(disk.input, 0);
    }

    /// A disk in a port that was used before: resets it first.
    pub(crate) fn disk_again(&mut self, port: usize) -> DiskRig {
        self.driver.begin_reset(RootPort(port as u8));
        self.idle(Duration::from_millis(100));
        self.disk(port)
    }
}

/// The driver has found every event where it was to be, and none that fitted nothing.
pub(crate) fn assert_nothing_was_missed(rig: &Rig<'_>) {
    let statistics = rig.driver.statistics();
    assert_eq!(statistics.missed_events, 0);
    assert_eq!(statistics.unexpected_events, 0);
}
