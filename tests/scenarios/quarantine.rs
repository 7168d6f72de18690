//! A controller that has died, cannot be stopped and cannot be cut off: what it may still reach is never
//! given back, and nobody else notices.

use std::collections::BTreeMap;

use rootport::block::queue::{DiskId, Operation, RequestId};
use rootport::block::{BlockError, Lba};
use rootport::policy::Policy;
use rootport::stack::Parting;
use rootport::time::Duration;
use rootport_models::adapter::owned;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::{LogicalUnit, pattern};
use rootport_models::device::uas::{What, on};
use rootport_models::device::{SECOND, Script, UasScript, UsbDevice};
use rootport_models::machine::{Machine, Options};

use crate::controller::{self, Death, Driver, Faults, LINKS};
use crate::rig::{HIGH_PORT, OTHER_PORT, POOL, Rig, port_for};

/// The controller that dies, and the one that does not.
const DYING: usize = 0;
const WELL: usize = 1;

/// When it dies: all disks are ready by then.
const DEATH: u64 = 10 * SECOND;

fn rig() -> Rig {
    let machine = Machine::new(Options {
        can_cut_dma: false,
        ..Options::default()
    });
    let mut faults = Faults::none();
    faults.death = Some((DEATH, Death::AllOnes));
    let dying = controller::add(&machine, controller::usual(), faults);
    let well = controller::add(&machine, controller::usual(), Faults::none());
    assert_eq!((dying, well), (DYING, WELL));
    let mut rig = Rig::on(machine, dying, POOL, Driver::default());
    rig.add_controller(well);
    rig
}

fn read(rig: &mut Rig, disk: DiskId, lba: u64) -> Result<RequestId, BlockError> {
    let buffer = owned(&mut rig.machine.buffer(512, 0));
    let submitted = rig
        .host
        .submit(disk, Operation::Read(Lba(lba)), Some(buffer));
    submitted.map_err(|(error, _)| error)
}

/// Keeps reads of the disk that is well in every slot that is free, until `until`: each ends once and with
/// its own data. Returns what other requests have ended with.
fn busy_until(
    rig: &mut Rig,
    disk: DiskId,
    pending: &mut BTreeMap<String, u64>,
    until: Duration,
) -> Vec<(RequestId, Result<(), BlockError>)> {
    let (mut others, mut lba) = (Vec::new(), 0);
    while rig.age() < until {
        while let Ok(id) = read(rig, disk, lba % 1000) {
            pending.insert(format!("{id:?}"), lba % 1000);
            lba += 1;
        }
        rig.run(Duration::from_millis(50));
        while let Some(completion) = rig.host.take_completion() {
            if completion.disk != disk {
                others.push((completion.id, completion.result));
                continue;
            }
            let lba = pending.remove(&format!("{:?}", completion.id));
            let lba = lba.expect("each ends once");
            assert_eq!(completion.result, Ok(()), "{}", rig.describe());
            let buffer = completion.buffer.expect("it comes back");
            assert!(buffer.as_slice() == pattern(lba, 512), "block {lba}");
        }
    }
    assert!(lba > 20, "it was busy");
    others
}

/// Commands that the dead controller's disks never end have deadlines, and by then their places in the table
/// are others'.
fn ends_alone(first: impl UsbDevice + 'static, second: impl UsbDevice + 'static) {
    let mut rig = rig();
    let one = rig.disk_on(DYING, HIGH_PORT, first);
    let two = rig.disk_on(DYING, OTHER_PORT, second);
    let slow = Script::new().on(opcode(0x28), Action::Delay(300_000_000));
    let slow = slow.unit(LogicalUnit::stick(4096)).pipes(0, 0x85, 0x06);
    let well = rig.disk_on(WELL, HIGH_PORT, slow.build());
    rig.run(Duration::from_micros(
        DEATH / 1_000 - 1_000 - rig.age().as_micros(),
    ));
    let one = read(&mut rig, one, 2000).expect("it is ready");
    let mut pending = BTreeMap::new();
    let mut others = busy_until(&mut rig, well, &mut pending, Duration::from_secs(16));
    let late = read(&mut rig, two, 2000);
    others.extend(busy_until(
        &mut rig,
        well,
        &mut pending,
        Duration::from_secs(60),
    ));
    let quarantined = Err(BlockError::Quarantined);
    let ended = |id| others.iter().filter(move |(it, _)| *it == id);
    // Some controllers tell of their death at once: nothing more is taken then.
    for id in [one].into_iter().chain(late.ok()) {
        assert!(ended(id).eq([&(id, quarantined)]), "{others:?}");
    }
}

#[test]
fn a_bulk_only_disk_whose_controller_is_quarantined_ends_no_request_but_its_own() {
    let hangs = || {
        let late = opcode(0x28).touching(2000..2001);
        let script = Script::new().unit(LogicalUnit::stick(4096));
        script.on(late, Action::Delay(3600 * SECOND))
    };
    ends_alone(hangs().build(), hangs().pipes(0, 0x83, 0x04).build());
}

/// The controller dies while the disk has a read under way and holds an unflushed write.
fn refuses(port: usize, device: impl UsbDevice + 'static) {
    let mut rig = rig();
    let disk = rig.disk_on(DYING, port, device);
    let buffer = owned(&mut rig.machine.buffer(512, 0));
    let write = Operation::Write(Lba(9));
    rig.host.submit(disk, write, Some(buffer)).expect("room");
    rig.run(Duration::from_micros(
        DEATH / 1_000 - 1_000 - rig.age().as_micros(),
    ));
    read(&mut rig, disk, 2000).expect("it is ready");
    rig.run(Duration::from_secs(30));
    while rig.host.take_completion().is_some() {}
    let gone = Err(BlockError::Disconnected);
    assert_eq!(rig.host.geometry(disk), Err(BlockError::Disconnected));
    assert_eq!(read(&mut rig, disk, 1), Err(BlockError::Disconnected));
    let flush = rig.host.submit(disk, Operation::Flush, None);
    assert_eq!(flush.map_err(|(error, _)| error).map(|_| ()), gone);
    let states: Vec<_> = rig.host.disks().map(|disk| disk.state).collect();
    assert!(states.is_empty(), "{states:?}");
    let leaving = rig.within(Duration::from_secs(5), |rig| {
        rig.host.shutdown(Parting::Flush, Duration::from_secs(2))
    });
    assert!(!leaving.quiet, "it may still reach memory");
}

#[test]
fn a_disk_whose_controller_is_quarantined_is_gone_and_holds_nobody_up() {
    let late = opcode(0x28).touching(2000..2001);
    let script = Script::new().unit(LogicalUnit::stick(4096));
    refuses(
        HIGH_PORT,
        script.on(late, Action::Delay(3600 * SECOND)).build(),
    );
    for link in LINKS {
        let hangs = on(0x28, What::Hang).after(1);
        refuses(
            port_for(*link),
            UasScript::new().speed(*link).fault(hangs).build(),
        );
    }
}

/// The dead controller's disk was away for a port reset: its place is free, and the next disk's.
#[test]
fn a_disk_that_takes_the_place_of_one_that_was_away_when_its_controller_died_has_deadlines() {
    let mut rig = rig();
    rig.host.set_policy(Policy {
        read_write: Duration::from_secs(2),
        ..Policy::DEFAULT
    });
    let hangs = || {
        let late = opcode(0x28).touching(2000..2001);
        let script = Script::new().unit(LogicalUnit::stick(4096));
        script.on(late, Action::Hang(Until::PowerCycle))
    };
    let first = hangs().build();
    let away = rig.disk_on(DYING, HIGH_PORT, first.clone());
    // It is deaf behind the reset of its port, which is under way when its controller dies.
    first.change(|device| device.recovery.after_reset = 60 * SECOND);
    let now = rig.age().as_micros();
    rig.run(Duration::from_micros(DEATH / 1_000 - 3_000_000 - now));
    read(&mut rig, away, 2000).expect("it is ready");
    rig.run(Duration::from_secs(30));
    while rig.host.take_completion().is_some() {}
    let next = rig.disk_on(WELL, HIGH_PORT, hangs().build());
    let id = read(&mut rig, next, 2000).expect("it is ready");
    rig.run(Duration::from_secs(60));
    let completion = rig.host.take_completion().expect("it has a deadline");
    assert_eq!(completion.id, id);
    assert!(completion.result.is_err());
}
