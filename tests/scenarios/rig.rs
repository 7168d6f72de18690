//! What every scenario needs: a modelled machine with a controller, and a host on it.
//!
//! A [`Rig`] is made with what is odd about it, devices are plugged in, and time runs as the host
//! waits. The models panic at the first rule that the drivers break, and a modelled device fails
//! the test when it is dropped with a violation that nobody has taken.

use rootport::Host;
use rootport::block::queue::DiskId;
use rootport::block::{BlockDevice, BlockError, Geometry, Lba};
use rootport::host::{Controller, ControllerFault};
use rootport::policy::{Policy, Queueing};
use rootport::stack::{DiskInfo, DiskState, Tables};
use rootport::time::{Duration, Instant};
use rootport::usb::ControllerState;
use rootport::usb::port::PortState;
use rootport_models::adapter::{ModelBus, ModelPlatform};
use rootport_models::device::scsi::{LogicalUnit, pattern};
use rootport_models::device::{Disk, Link, Script, UsbDevice};
use rootport_models::machine::{Machine, Options};

use crate::controller::{self, Driver, Faults, LINKS, Traits};

/// A host of the library on modelled hardware.
pub(crate) type ModelHost = Host<'static, ModelPlatform, ModelController>;
/// Its controllers.
pub(crate) type ModelController = Controller<'static, ModelBus>;

/// The first USB 2 port of the usual controller.
pub(crate) const HIGH_PORT: usize = 0;
/// Its second USB 2 port.
pub(crate) const OTHER_PORT: usize = 1;
/// Its first port with the fastest link it has.
pub(crate) const FAST_PORT: usize = 2;
/// The fastest link of the usual controller.
pub(crate) const FASTEST: Link = LINKS[LINKS.len() - 1];

/// Pool that is ample for the scenarios.
pub(crate) const POOL: usize = 1 << 20;

/// A read or write of one command ends within this time, whatever happens: its own deadline of
/// 10 s, 20 s for the episode of recovery that follows it, and 20 s for a disk that was opened again
/// to be ready (`Policy`).
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(10 + 20 + 20);

/// Every way to queue the transfers of a Bulk-Only command; boards take the second.
pub(crate) const QUEUEINGS: [Queueing; 4] = [
    Queueing::AfterCommand,
    Queueing::Eager,
    Queueing::StatusLast,
    Queueing::AfterData,
];

/// A machine and the host on it.
pub(crate) struct Rig {
    /// The modelled machine.
    pub(crate) machine: Machine,
    /// The stack.
    pub(crate) host: ModelHost,
}

impl Default for Rig {
    fn default() -> Self {
        Self::new(Options::default(), controller::usual())
    }
}

impl Rig {
    /// A rig with one controller.
    pub(crate) fn new(options: Options, traits: Traits) -> Self {
        Self::faulty(options, traits, Faults::none())
    }

    /// A rig with one controller that goes wrong as planned.
    pub(crate) fn faulty(options: Options, traits: Traits, faults: Faults) -> Self {
        Self::with_pool(options, traits, faults, POOL)
    }

    /// The same with so many bytes of pool.
    pub(crate) fn with_pool(options: Options, traits: Traits, faults: Faults, pool: usize) -> Self {
        Self::made(options, traits, faults, pool, Driver::default())
    }

    /// The same with everything chosen.
    pub(crate) fn made(
        options: Options,
        traits: Traits,
        faults: Faults,
        pool: usize,
        driver: Driver,
    ) -> Self {
        let machine = Machine::new(options);
        let index = controller::add(&machine, traits, faults);
        Self::on(machine, index, pool, driver)
    }

    /// A rig whose pool has so many lines in its ledger.
    pub(crate) fn with_ledger(options: Options, lines: usize) -> Self {
        let machine = Machine::new(options);
        let index = controller::add(&machine, controller::usual(), Faults::none());
        Self::assembled(machine, index, (POOL, lines), Driver::default())
            .expect("the model is a plausible controller")
    }

    /// A rig on a controller that is in its machine already.
    pub(crate) fn on(machine: Machine, index: usize, pool: usize, driver: Driver) -> Self {
        Self::try_on(machine, index, pool, driver).expect("the model is a plausible controller")
    }

    /// The same on a controller whose driver may refuse it.
    pub(crate) fn try_on(
        machine: Machine,
        index: usize,
        pool: usize,
        driver: Driver,
    ) -> Result<Self, ControllerFault> {
        Self::assembled(machine, index, (pool, usize::MAX), driver)
    }

    fn assembled(
        machine: Machine,
        index: usize,
        (pool, lines): (usize, usize),
        driver: Driver,
    ) -> Result<Self, ControllerFault> {
        let platform = ModelPlatform::new(&machine);
        let driver = controller::try_drive(&machine, &platform, index, driver)?;
        let tables: &'static mut Tables<ModelController, 2, 16, 8, 8> =
            Box::leak(Box::new(Tables::new()));
        let region = platform.coherent_region(pool);
        let mut storage = tables.storage();
        let lines = lines.min(storage.pool.len());
        storage.pool = &mut storage.pool[..lines];
        let mut host = Host::new(platform, region, storage);
        host.add_controller(driver)
            .expect("there is room for a controller");
        host.start();
        let mut rig = Self { machine, host };
        if std::env::var("ROOTPORT_QUEUEING").is_ok_and(|words| words == "eager") {
            rig.queue(Queueing::Eager);
        }
        Ok(rig)
    }

    /// Queues Bulk-Only commands in this way from the next disk on.
    pub(crate) fn queue(&mut self, queueing: Queueing) {
        self.host.set_policy(Policy {
            queueing,
            ..Policy::DEFAULT
        });
    }

    /// Gives the host one more controller of its machine, by its index there.
    pub(crate) fn add_controller(&mut self, index: usize) {
        let platform = self.host.platform().clone();
        let driver = controller::drive(&self.machine, &platform, index, Driver::default());
        self.host
            .add_controller(driver)
            .expect("there is room for two");
        self.host.start();
    }

    /// Plugs a disk into any controller's root port and waits until it can be used, at most 5 s.
    pub(crate) fn disk_on(
        &mut self,
        controller: usize,
        port: usize,
        device: impl UsbDevice + 'static,
    ) -> DiskId {
        let known: Vec<DiskId> = self.host.disks().map(|disk| disk.id).collect();
        self.machine.plug(controller, port, device);
        let find = |host: &ModelHost| {
            let mut disks = host.disks();
            let ready = |state| matches!(state, DiskState::Ready(_));
            let new = disks.find(|disk| ready(disk.state) && !known.contains(&disk.id));
            new.map(|disk| disk.id)
        };
        let found = self
            .host
            .poll_until(Duration::from_secs(5), |host| find(host).is_some());
        assert!(found, "{}", self.describe());
        find(&self.host).expect("it was there a moment ago")
    }

    /// Plugs a device into a root port of the first controller, from 0.
    pub(crate) fn plug(&self, port: usize, device: impl UsbDevice + 'static) {
        self.machine.plug(0, port, device);
    }

    /// Pulls a device out, if one is still in, and lets the host notice it.
    pub(crate) fn unplug(&mut self, port: usize) {
        drop(self.machine.unplug(0, port));
        let empty = |host: &ModelHost| port_state(host, port) == PortState::Empty;
        let gone = |host: &ModelHost| units_at(host, port).is_empty();
        let noticed = self.host.poll_until(Duration::from_secs(60), |host| {
            empty(host) && gone(host) && host.bus().devices().all(|device| !is_at(&device, port))
        });
        assert!(
            noticed,
            "port {port} after it was unplugged: {}",
            self.describe()
        );
    }

    /// Lets time run for `span`, with the host polled.
    pub(crate) fn run(&mut self, span: Duration) {
        self.host.poll_until(span, |_| false);
    }

    /// Plugs a device in and waits until the port and all units are settled, at most 60 s.
    pub(crate) fn settle(
        &mut self,
        port: usize,
        device: impl UsbDevice + 'static,
    ) -> Vec<DiskInfo> {
        self.plug(port, device);
        self.settle_port(port);
        units_at(&self.host, port)
    }

    /// Waits until what is in a port is a device whose units are settled, or is given up.
    pub(crate) fn settle_port(&mut self, port: usize) -> PortState {
        self.host.poll_until(Duration::from_secs(60), |host| {
            let units = units_at(host, port);
            let pending = |disk: &DiskInfo| disk.state == DiskState::NotReady;
            match port_state(host, port) {
                PortState::Failed(_) => true,
                PortState::Occupied(_) => !units.is_empty() && !units.iter().any(pending),
                _ => false,
            }
        });
        port_state(&self.host, port)
    }

    /// Where a port is.
    pub(crate) fn port_state(&self, port: usize) -> PortState {
        port_state(&self.host, port)
    }

    /// Where the controller is.
    pub(crate) fn controller_state(&self) -> ControllerState {
        let mut controllers = self.host.bus().controllers();
        controllers.next().expect("there is one").1
    }

    /// The units of the device in a port.
    pub(crate) fn units_at(&self, port: usize) -> Vec<DiskInfo> {
        units_at(&self.host, port)
    }

    /// Plugs a device in and waits for its first disk that can be used.
    pub(crate) fn disk(&mut self, port: usize, device: impl UsbDevice + 'static) -> DiskId {
        self.plug(port, device);
        self.wait_for_disk(port)
    }

    /// Waits for the first disk that can be used in a port, at most 60 s.
    pub(crate) fn wait_for_disk(&mut self, port: usize) -> DiskId {
        self.host.poll_until(Duration::from_secs(60), |host| {
            ready_at(host, port).is_some()
        });
        match ready_at(&self.host, port) {
            Some(disk) => disk,
            None => panic!("no disk in port {port} after 60 s: {}", self.describe()),
        }
    }

    /// Reads whole blocks from `lba` on.
    pub(crate) fn read(
        &mut self,
        disk: DiskId,
        lba: u64,
        bytes: usize,
    ) -> Result<Vec<u8>, BlockError> {
        self.read_at(disk, lba, bytes, 0)
    }

    /// The same into a buffer that begins `offset` bytes behind a page.
    pub(crate) fn read_at(
        &mut self,
        disk: DiskId,
        lba: u64,
        bytes: usize,
        offset: usize,
    ) -> Result<Vec<u8>, BlockError> {
        let mut buffer = self.machine.buffer(bytes, offset);
        self.host.disk(disk).read(Lba(lba), &mut buffer)?;
        Ok(buffer.to_vec())
    }

    /// Writes whole blocks from `lba` on.
    pub(crate) fn write(&mut self, disk: DiskId, lba: u64, bytes: &[u8]) -> Result<(), BlockError> {
        self.write_at(disk, lba, bytes, 0)
    }

    /// The same from a buffer that begins `offset` bytes behind a page.
    pub(crate) fn write_at(
        &mut self,
        disk: DiskId,
        lba: u64,
        bytes: &[u8],
        offset: usize,
    ) -> Result<(), BlockError> {
        let mut buffer = self.machine.buffer(bytes.len(), offset);
        buffer.copy_from_slice(bytes);
        self.host.disk(disk).write(Lba(lba), &buffer)
    }

    /// Flushes a disk.
    pub(crate) fn flush(&mut self, disk: DiskId) -> Result<(), BlockError> {
        self.host.disk(disk).flush()
    }

    /// Reads `blocks` blocks and compares them with what an untouched medium holds.
    pub(crate) fn check(&mut self, disk: DiskId, lba: u64, blocks: u64) {
        let size = self.geometry(disk).block_bytes as usize;
        let found = self.read(disk, lba, size * blocks as usize);
        let wanted: Vec<u8> = (lba..lba + blocks)
            .flat_map(|lba| pattern(lba, size))
            .collect();
        match found {
            Ok(found) => assert!(found == wanted, "blocks {lba} and on are not the disk's"),
            Err(error) => panic!("blocks {lba} and on: {error}; {}", self.describe()),
        }
    }

    /// A disk's geometry; it is ready.
    pub(crate) fn geometry(&self, disk: DiskId) -> Geometry {
        self.host.geometry(disk).expect("the disk is ready")
    }

    /// What `work` returns, and how much virtual time it took.
    pub(crate) fn timed<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, Duration) {
        let before = self.now();
        let result = work(self);
        (result, self.now() - before)
    }

    /// The same, with `limit` asserted.
    pub(crate) fn within<T>(&mut self, limit: Duration, work: impl FnOnce(&mut Self) -> T) -> T {
        let (result, took) = self.timed(work);
        assert!(
            took <= limit,
            "took {} ms of at most {}: {}",
            took.as_millis(),
            limit.as_millis(),
            self.describe(),
        );
        result
    }

    /// Bytes of the pool in use.
    pub(crate) fn pool_used(&mut self) -> usize {
        self.host.pool_usage().used
    }

    /// Virtual time, which the platform's clock need not show.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(self.machine.now() / 1_000)
    }

    /// The same, as time since the start.
    pub(crate) fn age(&self) -> Duration {
        self.now() - Instant::from_micros(0)
    }

    /// What is there, for a message.
    pub(crate) fn describe(&self) -> String {
        let ports: Vec<_> = self.host.bus().ports().map(|port| port.state()).collect();
        let units: Vec<_> = self.host.disks().map(|disk| disk.state).collect();
        let controllers: Vec<_> = self
            .host
            .bus()
            .controllers()
            .map(|(_, state, _)| state)
            .collect();
        let log = self.machine.log();
        format!("controllers {controllers:?}, ports {ports:?}, units {units:?}, log {log:?}")
    }
}

/// The port for a device with this link.
pub(crate) fn port_for(link: Link) -> usize {
    if link == Link::High {
        HIGH_PORT
    } else {
        FAST_PORT
    }
}

/// A good disk with this link, to which something is added.
pub(crate) fn disk_at(link: Link) -> Script {
    match link {
        Link::Super => Script::new()
            .speed(link)
            .unit(LogicalUnit::disk(65536, 512)),
        _ => Script::new(),
    }
}

/// A default rig with a device in its first USB 2 port, settled.
pub(crate) fn with_device(device: &Disk) -> (Rig, Vec<DiskInfo>) {
    let mut rig = Rig::default();
    let units = rig.settle(HIGH_PORT, device.clone());
    (rig, units)
}

/// A default rig with a disk in its first USB 2 port, ready.
pub(crate) fn with_disk(device: &Disk) -> (Rig, DiskId) {
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, device.clone());
    (rig, disk)
}

fn is_at(device: &rootport::usb::DeviceInfo, port: usize) -> bool {
    usize::from(device.attachment.root_port.0) == port
}

fn units_at(host: &ModelHost, port: usize) -> Vec<DiskInfo> {
    host.disks()
        .filter(|disk| is_at(&disk.device, port))
        .collect()
}

fn ready_at(host: &ModelHost, port: usize) -> Option<DiskId> {
    let units = units_at(host, port);
    let ready = |disk: &&DiskInfo| matches!(disk.state, DiskState::Ready(_));
    units.iter().find(ready).map(|disk| disk.id)
}

fn port_state(host: &ModelHost, port: usize) -> PortState {
    let mut ports = host.bus().ports();
    let entry = ports.find(|entry| usize::from(entry.port().0) == port);
    entry.expect("there is such a port").state()
}
