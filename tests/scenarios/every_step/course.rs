//! What must hold whatever goes wrong: every call ends in time, the neighbour's data come right,
//! nothing of the pool is lost, and a good plug-in afterwards works.

use crate::controller::{self, Faults};
use crate::rig::{CALL_LIMIT, OTHER_PORT, QUEUEINGS, Rig, disk_at, port_for};
use rootport::block::queue::DiskId;
use rootport::block::{BlockError, Lba};
use rootport::policy::Policy;
use rootport::stack::DiskState;
use rootport::time::Duration;
use rootport::usb::PortState;
use rootport_models::device::scsi::{Sense, StatusLoss, Target, pattern};
use rootport_models::device::{BothDisk, Disk, Link, Script, UasDisk, UsbDevice};
use rootport_models::machine::Options;

/// A disk that a course can be run with. Clones are the same disk.
pub(crate) trait Subject: UsbDevice + Clone + 'static {
    /// A block as it would be after a power cut.
    fn durable(&self, lba: u64) -> Vec<u8>;
    /// Whether its plug was pulled.
    fn is_pulled(&self) -> bool;
    /// Pulls its plug at the transaction with this number from now on.
    fn pull_at(&self, transaction: u64);
    /// Makes it ready to be plugged in again.
    fn put_back(&self);
    /// The disk behind its bridge loses power for a moment, and says these things when it is asked again.
    /// The status with the first unit attention among them may be lost on its way.
    fn brown_out(&self, says: &[Sense], loss: Option<StatusLoss>);
}

/// What is lost with the power of the disk alone.
fn lose_power(target: &mut Target, says: &[Sense], loss: Option<StatusLoss>) {
    let unit = &mut target.units[0];
    unit.image.drop_cache();
    says.iter().for_each(|sense| unit.raise(*sense));
    target.attention_loss = loss;
}

impl Subject for Disk {
    fn durable(&self, lba: u64) -> Vec<u8> {
        self.durable_block(lba)
    }

    fn pull_at(&self, transaction: u64) {
        Disk::pull_at(self, transaction);
    }

    fn put_back(&self) {
        Disk::put_back(self);
    }

    fn is_pulled(&self) -> bool {
        self.change(|device| device.pulled_after == Some(0))
    }

    fn brown_out(&self, says: &[Sense], loss: Option<StatusLoss>) {
        self.change(|device| lose_power(&mut device.function.target, says, loss));
    }
}

impl Subject for UasDisk {
    fn durable(&self, lba: u64) -> Vec<u8> {
        self.durable_block(lba)
    }

    fn pull_at(&self, transaction: u64) {
        UasDisk::pull_at(self, transaction);
    }

    fn put_back(&self) {
        UasDisk::put_back(self);
    }

    fn is_pulled(&self) -> bool {
        self.change(|device| device.pulled_after == Some(0))
    }

    fn brown_out(&self, says: &[Sense], loss: Option<StatusLoss>) {
        self.change(|device| lose_power(&mut device.function.target, says, loss));
    }
}

impl Subject for BothDisk {
    fn durable(&self, lba: u64) -> Vec<u8> {
        self.durable_block(lba)
    }

    fn pull_at(&self, transaction: u64) {
        BothDisk::pull_at(self, transaction);
    }

    fn put_back(&self) {
        BothDisk::put_back(self);
    }

    fn is_pulled(&self) -> bool {
        self.change(|device| device.pulled_after == Some(0))
    }

    fn brown_out(&self, says: &[Sense], loss: Option<StatusLoss>) {
        self.change(|device| lose_power(&mut device.function.uas.target, says, loss));
    }
}

/// What is plugged in is a disk, or known to be none, within this time: the readiness budget, an
/// episode of recovery, and three attempts on the port.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);

/// Blocks that a course reads and writes: more than a packet, and an odd number.
const BLOCKS: u64 = 5;

/// Where a course writes.
const TARGET: u64 = 200;

/// A rig with a neighbour that must not notice anything.
pub(super) struct Course {
    pub(super) rig: Rig,
    link: Link,
    neighbour: DiskId,
    /// Where buffers begin, behind a page.
    offset: usize,
    /// Bytes of the pool that are held while the neighbour is alone.
    held: usize,
    /// Which step it is, for messages.
    step: u64,
}

/// How the calls of a course ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Results {
    pub(super) read: Result<(), BlockError>,
    pub(super) write: Result<(), BlockError>,
    pub(super) flush: Result<(), BlockError>,
}

impl Results {
    /// The data are right; that a loss is possible may be told, once.
    pub(super) fn data_are_good(&self) -> bool {
        let told = matches!(self.flush, Ok(()) | Err(BlockError::WritesMayBeLost));
        self.read.is_ok() && self.write.is_ok() && told
    }

    pub(super) fn all_good(&self) -> bool {
        self.read.is_ok() && self.write.is_ok() && self.flush.is_ok()
    }
}

impl Course {
    /// A course for this step, with a controller that goes wrong as planned.
    pub(super) fn new(link: Link, step: u64, faults: Faults) -> Self {
        let options = Options {
            seed: step + 1,
            cache_line: [32, 64, 128][step as usize % 3],
            coherent: step % 4 == 3,
            ..Options::default()
        };
        let traits = controller::shaped(controller::usual(), step);
        let mut rig = Rig::faulty(options, traits, faults);
        rig.queue(QUEUEINGS[(step + step / 4) as usize % 4]);
        // Other pipes than the subject's, so that transfers can be told apart.
        let neighbour = Script::new().pipes(0, 0x85, 0x06).build();
        let neighbour = rig.disk(OTHER_PORT, neighbour);
        rig.run(Duration::from_millis(1));
        let held = rig.pool_used();
        Self {
            rig,
            link,
            neighbour,
            offset: (step as usize * 13) % 160,
            held,
            step,
        }
    }

    /// Plugs the device in, and reads, writes and flushes it if it becomes a disk. `None` if it does
    /// not.
    pub(super) fn run(&mut self, device: &impl Subject) -> Option<Results> {
        let port = port_for(self.link);
        self.rig.plug(port, device.clone());
        let disk = self.settle(device)?;
        let (offset, bytes) = (self.offset, 512 * BLOCKS as usize);
        let read = self.call(CALL_LIMIT, |rig| rig.read_at(disk, 0, bytes, offset));
        if let Ok(found) = &read {
            let wanted: Vec<u8> = (0..BLOCKS).flat_map(|lba| pattern(lba, 512)).collect();
            assert!(*found == wanted, "step {}: the read lied", self.step);
        }
        let data: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
        let write = self.call(CALL_LIMIT, |rig| rig.write_at(disk, TARGET, &data, offset));
        let flush_limit = Policy::DEFAULT.flush + CALL_LIMIT;
        let flush = self.call(flush_limit, |rig| rig.flush(disk));
        if write.is_ok() && flush.is_ok() {
            let stored: Vec<u8> = (TARGET..TARGET + BLOCKS)
                .flat_map(|lba| device.durable(lba))
                .collect();
            assert!(stored == data, "step {}: the write was lost", self.step);
        }
        Some(Results {
            read: read.map(|_| ()),
            write,
            flush,
        })
    }

    /// A call within its limit, and the neighbour after it.
    fn call<T>(&mut self, limit: Duration, work: impl FnOnce(&mut Rig) -> T) -> T {
        let result = self.rig.within(limit, work);
        self.check_neighbour();
        result
    }

    /// Waits until the device is a disk, or will be none.
    fn settle(&mut self, device: &impl Subject) -> Option<DiskId> {
        let port = port_for(self.link);
        let settled = |rig: &Rig| {
            let units = rig.units_at(port);
            let pending = units.iter().any(|unit| unit.state == DiskState::NotReady);
            match rig.port_state(port) {
                PortState::Failed(_) => true,
                PortState::Empty => device.is_pulled(),
                PortState::Occupied(_) => !units.is_empty() && !pending,
                _ => false,
            }
        };
        let until = self.rig.now() + SETTLE_LIMIT;
        while !settled(&self.rig) {
            let is_late = self.rig.now() >= until;
            if is_late && matches!(self.rig.port_state(port), PortState::Occupied(_)) {
                // A device that refused INQUIRY has no unit, whatever it may say later.
                assert!(self.rig.units_at(port).is_empty());
                break;
            }
            assert!(
                !is_late,
                "step {}: not settled in time: {}",
                self.step,
                self.rig.describe()
            );
            self.rig.run(Duration::from_millis(250));
        }
        self.check_neighbour();
        let units = self.rig.units_at(port);
        let ready = |state| matches!(state, DiskState::Ready(_));
        units
            .iter()
            .find(|unit| ready(unit.state))
            .map(|unit| unit.id)
    }

    /// The disk in the other port is there, and its data are right.
    pub(super) fn check_neighbour(&mut self) {
        let mut read = vec![0; 0];
        let lba = self.step;
        let result = self.rig.within(Duration::from_secs(1), |rig| {
            rig.read(self.neighbour, lba, 1024)
                .map(|bytes| read = bytes)
        });
        assert_eq!(
            result,
            Ok(()),
            "step {}: {}",
            self.step,
            self.rig.describe()
        );
        assert!(read == [pattern(lba, 512), pattern(lba + 1, 512)].concat());
    }

    /// Pulls whatever is in the port: all memory is back, and a good disk in the same port works, with
    /// a handle of its own.
    pub(super) fn end(mut self) {
        let port = port_for(self.link);
        self.rig.unplug(port);
        assert_eq!(
            self.rig.pool_used(),
            self.held,
            "step {}: the pool after the unplug: {:?}",
            self.step,
            self.rig.host.pool_usage()
        );
        let disk = self.rig.disk(port, disk_at(self.link).build());
        self.rig.check(disk, 1, BLOCKS);
        self.check_neighbour();
    }
}

/// Unused places are refused, whatever their number: a handle that outlived its disk.
pub(super) fn is_refused(course: &mut Course, disk: DiskId) {
    let mut buffer = course.rig.machine.buffer(512, 0);
    use rootport::block::BlockDevice;
    let read = course.rig.host.disk(disk).read(Lba(0), &mut buffer);
    assert_eq!(read, Err(BlockError::Disconnected));
}

/// A fault of the controller, and the disk that works on all the same.
pub(crate) fn survives(link: Link, step: u64, faults: Faults, what: &str) {
    let mut course = Course::new(link, step, faults);
    let results = course.run(&disk_at(link).build());
    let good = results.is_some_and(|results| results.all_good());
    assert!(good, "{what}: {results:?}; {}", course.rig.describe());
    course.end();
}
