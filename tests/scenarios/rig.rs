//! What every scenario needs: a modelled machine with a controller, and a host on it.
//!
//! A [`Rig`] is made with what is odd about it, devices are plugged in, and time runs as the host
//! waits. The models panic at the first rule that the drivers break.

use rootport::Host;
use rootport::block::queue::DiskId;
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::host::Controller;
use rootport::host::xhci::{Options as XhciOptions, Xhci, XhciMemory};
use rootport::platform::Platform;
use rootport::stack::{DiskInfo, DiskState, Tables};
use rootport::time::Duration;
use rootport_models::adapter::{ModelBus, ModelPlatform};
use rootport_models::controller::xhci::{Faults, Traits};
use rootport_models::device::UsbDevice;
use rootport_models::machine::{Machine, Options};

/// A host of the library on modelled hardware.
pub(crate) type ModelHost = Host<'static, ModelPlatform, ModelController>;
/// Its controllers.
pub(crate) type ModelController = Controller<'static, ModelBus>;

/// The first SuperSpeed port of the default controller, and its first USB 2 port.
pub(crate) const SUPER_PORT: usize = 2;
/// The first USB 2 port of the default controller.
pub(crate) const HIGH_PORT: usize = 0;

/// Pool that is ample for the scenarios.
const POOL: usize = 1 << 20;

/// A machine and the host on it.
pub(crate) struct Rig {
    /// The modelled machine.
    pub(crate) machine: Machine,
    /// The stack.
    pub(crate) host: ModelHost,
}

impl Default for Rig {
    fn default() -> Self {
        Self::new(Options::default(), Traits::default())
    }
}

impl Rig {
    /// A rig with one xHCI.
    pub(crate) fn new(options: Options, traits: Traits) -> Self {
        Self::faulty(options, traits, Faults::none())
    }

    /// A rig with one xHCI that goes wrong as planned.
    pub(crate) fn faulty(options: Options, traits: Traits, faults: Faults) -> Self {
        let machine = Machine::new(options);
        let index = machine.add_faulty_xhci(traits, faults);
        let platform = ModelPlatform::new(&machine);
        let bus = platform.bus(index);
        let tables: &'static mut Tables<ModelController, 2, 16, 8, 8> =
            Box::leak(Box::new(Tables::new()));
        let region = platform.coherent_region(POOL);
        let mut host = Host::new(platform, region, tables.storage());
        let memory: &'static mut XhciMemory<8, 32, 64> = Box::leak(Box::new(XhciMemory::new()));
        let xhci = Xhci::new(bus, 0, memory.slices(), XhciOptions::default());
        let xhci = xhci.expect("the model is a plausible controller");
        host.add_controller(Controller::Xhci(xhci))
            .expect("there is room for a controller");
        host.start();
        Self { machine, host }
    }

    /// Plugs a device into a root port of the first controller, from 0.
    pub(crate) fn plug(&self, port: usize, device: impl UsbDevice + 'static) {
        self.machine.plug(0, port, device);
    }

    /// Lets time run for `span`, with the host polled.
    pub(crate) fn run(&mut self, span: Duration) {
        self.host.poll_until(span, |_| false);
    }

    /// Waits until so many units are there and each is settled, at most 60 s.
    pub(crate) fn settle(&mut self, units: usize) -> Vec<DiskInfo> {
        let settled = |host: &ModelHost| {
            let pending = |disk: &DiskInfo| disk.state == DiskState::NotReady;
            host.disks().count() >= units && !host.disks().any(|disk| pending(&disk))
        };
        self.host.poll_until(Duration::from_secs(60), settled);
        self.host.disks().collect()
    }

    /// Plugs a device in and waits for its one disk.
    pub(crate) fn disk(&mut self, port: usize, device: impl UsbDevice + 'static) -> DiskId {
        self.plug(port, device);
        let ready = |host: &ModelHost| host.first_disk().is_ok();
        assert!(
            self.host.poll_until(Duration::from_secs(60), ready),
            "no disk after 60 s: {:?}; {:?}",
            self.host.disks().collect::<Vec<_>>(),
            self.machine.log(),
        );
        self.host.first_disk().expect("it was there a moment ago")
    }

    /// Reads whole blocks from `lba` on.
    pub(crate) fn read(
        &mut self,
        disk: DiskId,
        lba: u64,
        bytes: usize,
    ) -> Result<Vec<u8>, BlockError> {
        let mut buffer = self.machine.buffer(bytes, 0);
        self.host.disk(disk).read(Lba(lba), &mut buffer)?;
        Ok(buffer.to_vec())
    }

    /// Virtual time since the start.
    pub(crate) fn now(&self) -> Duration {
        let zero = rootport::time::Instant::from_micros(0);
        self.host.platform().now() - zero
    }
}
