//! An EHCI beside an xHCI in one host, as on boards that have both: a disk on each, by interrupts; one of them dies,
//! and the other goes on.
#![cfg(all(feature = "xhci", feature = "ehci"))]

use rootport::Host;
use rootport::block::queue::DiskId;
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::host::ehci::{self, Ehci, EhciMemory};
use rootport::host::xhci::{self, Xhci, XhciMemory};
use rootport::host::{Controller, ControllerFault};
use rootport::platform::ControllerId;
use rootport::stack::{DiskState, Parting, Tables};
use rootport::time::Duration;
use rootport::usb::ControllerState;
use rootport_models::adapter::{ModelBus, ModelPlatform};
use rootport_models::controller::{ehci as ehci_model, xhci as xhci_model};
use rootport_models::device::field::good_stick;
use rootport_models::device::{Nanoseconds, SECOND, scsi::pattern};
use rootport_models::machine::{Machine, Options, Sleep};

type ModelHost = Host<'static, ModelPlatform, Controller<'static, ModelBus>>;

/// The kinds of controllers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Xhci,
    Ehci,
}

/// What happens to one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Death {
    /// It leaves the bus for good.
    ForGood,
    /// It stops at an error of the system's bus, and a start mends it.
    Mendable,
}

/// Both orders in which a host may get them.
const ORDERS: [[Kind; 2]; 2] = [[Kind::Xhci, Kind::Ehci], [Kind::Ehci, Kind::Xhci]];

/// When one dies: all disks are ready by then.
const DEATH: Nanoseconds = 10 * SECOND;

struct Rig {
    machine: Machine,
    host: ModelHost,
}

impl Rig {
    /// A host with the controllers in this order, each with a disk; `dying` is the place of one that dies.
    fn new(order: [Kind; 2], dying: Option<(usize, Death)>) -> Self {
        let machine = Machine::new(Options {
            sleep: Sleep::UntilInterrupt,
            ..Options::default()
        });
        let platform = ModelPlatform::new(&machine);
        let tables: &'static mut Tables<Controller<'static, ModelBus>, 2, 16, 8, 8> =
            Box::leak(Box::new(Tables::new()));
        let region = platform.coherent_region(1 << 20);
        let mut host = Host::new(platform.clone(), region, tables.storage());
        for (place, kind) in order.into_iter().enumerate() {
            let death = dying.filter(|(dying, _)| *dying == place);
            let death = death.map(|(_, death)| death);
            let driver = match kind {
                Kind::Xhci => add_xhci(&machine, &platform, place, death),
                Kind::Ehci => add_ehci(&machine, &platform, place, death),
            };
            machine.plug(place, 0, good_stick());
            host.add_controller(driver).unwrap();
        }
        host.start();
        Self { machine, host }
    }

    /// The disk behind a controller, when it can be used.
    fn disk(&mut self, place: usize) -> DiskId {
        let find = |host: &ModelHost| {
            let mut disks = host.disks();
            let found = disks.find(|disk| {
                disk.device.controller == ControllerId(place as u8)
                    && matches!(disk.state, DiskState::Ready(_))
            });
            found.map(|disk| disk.id)
        };
        let limit = Duration::from_secs(30);
        self.host.poll_until(limit, |host| find(host).is_some());
        find(&self.host).unwrap_or_else(|| panic!("no disk at {place}: {:?}", self.machine.log()))
    }

    /// Reads three blocks, which must be the disk's.
    fn read(&mut self, disk: DiskId, lba: u64) -> Result<(), BlockError> {
        let mut buffer = self.machine.buffer(3 * 512, 0);
        self.host.disk(disk).read(Lba(lba), &mut buffer)?;
        for (block, bytes) in (lba..).zip(buffer.chunks(512)) {
            assert!(bytes == pattern(block, 512), "block {block}");
        }
        Ok(())
    }

    fn state(&self, place: usize) -> ControllerState {
        let id = ControllerId(place as u8);
        self.host.bus().controller_state(id).unwrap()
    }
}

fn add_xhci(
    machine: &Machine,
    platform: &ModelPlatform,
    place: usize,
    death: Option<Death>,
) -> Controller<'static, ModelBus> {
    let mut faults = xhci_model::Faults::none();
    faults.death = death.map(|death| match death {
        Death::ForGood => (DEATH, xhci_model::Death::AllOnes),
        Death::Mendable => (DEATH, xhci_model::Death::HostSystemError),
    });
    assert_eq!(
        machine.add_faulty_xhci(xhci_model::Traits::default(), faults),
        place
    );
    let memory: &'static mut XhciMemory<4, 12, 32> = Box::leak(Box::new(XhciMemory::new()));
    let options = xhci::Options {
        interrupts: xhci::Interrupts::Wired,
        ..xhci::Options::default()
    };
    let bus = platform.bus(place);
    let driver = Xhci::new(bus, place as u8, memory.slices(), options).unwrap();
    let half = driver.interrupt_half();
    machine.on_interrupt(place, move || {
        half.acknowledge();
    });
    Controller::Xhci(driver)
}

fn add_ehci(
    machine: &Machine,
    platform: &ModelPlatform,
    place: usize,
    death: Option<Death>,
) -> Controller<'static, ModelBus> {
    let mut faults = ehci_model::Faults::none();
    faults.death = death.map(|death| match death {
        Death::ForGood => (DEATH, ehci_model::Death::AllOnes),
        Death::Mendable => (DEATH, ehci_model::Death::HostSystemError),
    });
    assert_eq!(
        machine.add_faulty_ehci(ehci_model::Traits::default(), faults),
        place
    );
    let memory: &'static mut EhciMemory<4, 12, 32> = Box::leak(Box::new(EhciMemory::new()));
    let options = ehci::Options {
        interrupts: ehci::Interrupts::Wired,
        ..ehci::Options::default()
    };
    let bus = platform.bus(place);
    let driver = Ehci::new(bus, place as u8, memory.slices(), options).unwrap();
    let half = driver.interrupt_half();
    machine.on_interrupt(place, move || {
        half.acknowledge();
    });
    Controller::Ehci(driver)
}

#[test]
fn a_disk_on_each_is_read_and_written_and_all_of_it_is_left_quiet() {
    for order in ORDERS {
        let mut rig = Rig::new(order, None);
        let disks = [rig.disk(0), rig.disk(1)];
        for lba in 0..40 {
            for disk in disks {
                assert_eq!(rig.read(disk, lba), Ok(()), "{order:?}");
            }
        }
        let buffer = rig.machine.buffer(512, 0);
        for disk in disks {
            rig.host.disk(disk).write(Lba(100), &buffer).unwrap();
        }
        let leaving = rig.host.shutdown(Parting::Flush, Duration::from_secs(2));
        assert_eq!((leaving.unflushed, leaving.quiet), (None, true));
    }
}

/// Reads both disks until well after the death of one's controller: those of the other never fail.
fn reads_on(order: [Kind; 2], dying: usize, death: Death) -> Rig {
    let mut rig = Rig::new(order, Some((dying, death)));
    let [mut dies, lives] = [rig.disk(dying), rig.disk(1 - dying)];
    let mut lba = 0;
    while rig.machine.now() < DEATH + 30 * SECOND {
        let what = format!("{order:?}, {death:?} of {dying}");
        assert_eq!(rig.read(lives, lba % 1000), Ok(()), "{what}");
        if let Err(error) = rig.read(dies, lba % 1000) {
            assert_eq!(error, BlockError::Disconnected, "{what}");
            assert!(rig.machine.now() >= DEATH, "{what}");
            if death == Death::Mendable {
                dies = rig.disk(dying);
            }
        }
        rig.host.poll_until(Duration::from_millis(100), |_| false);
        lba += 1;
    }
    assert_eq!(rig.state(1 - dying), ControllerState::Running);
    rig
}

#[test]
fn when_one_leaves_the_bus_the_other_goes_on() {
    for order in ORDERS {
        for dying in [0, 1] {
            let mut rig = reads_on(order, dying, Death::ForGood);
            let failed = ControllerState::Failed(ControllerFault::Absent);
            assert_eq!(rig.state(dying), failed, "{order:?}");
            assert_eq!(rig.host.disks().count(), 1);
            let leaving = rig.host.shutdown(Parting::Flush, Duration::from_secs(2));
            assert!(leaving.quiet, "the one that is gone was cut off");
        }
    }
}

#[test]
fn when_one_is_started_again_the_other_does_not_notice() {
    for order in ORDERS {
        for dying in [0, 1] {
            let mut rig = reads_on(order, dying, Death::Mendable);
            assert_eq!(rig.state(dying), ControllerState::Running, "{order:?}");
            let disk = rig.disk(dying);
            assert_eq!(rig.read(disk, 7), Ok(()));
        }
    }
}
