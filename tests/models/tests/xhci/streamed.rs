//! A UAS disk at SuperSpeed under the raw driver, with its streams open: what the tests of streams
//! begin with.

use rootport_models::controller::xhci::{Faults, Traits};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Link, UasDisk, UasScript};

use crate::raw::{Event, IOC, ISP, NORMAL, Raw, Ring, machine};

/// Endpoint indices of the pipes.
pub(crate) const COMMAND: u32 = 2;
pub(crate) const STATUS: u32 = 5;
pub(crate) const DATA_IN: u32 = 7;
pub(crate) const DATA_OUT: u32 = 8;
/// Streams with a ring, from 1.
pub(crate) const STREAMS: u32 = 8;
/// Entries of the arrays, and the exponent that says so.
pub(crate) const ENTRIES: u32 = 16;
pub(crate) const EXPONENT: u32 = 3;
/// The type of a ring in a primary array, in a stream context.
pub(crate) const PRIMARY: u32 = 1 << 1;

/// The raw driver with the disk's pipes.
pub(crate) struct Streamed {
    pub(crate) raw: Raw,
    pub(crate) slot: u32,
    pub(crate) disk: UasDisk,
    /// The arrays of status, data in and data out.
    pub(crate) arrays: [u64; 3],
}

/// A disk whose data show where they are from.
pub(crate) fn script() -> UasScript {
    UasScript::new()
        .speed(Link::Super)
        .unit(LogicalUnit::stick(65536).content(b"block zero"))
}

impl Streamed {
    /// Everything good.
    pub(crate) fn new() -> Self {
        Self::with(Traits::default(), Faults::none(), script())
    }

    /// With something odd, configured.
    pub(crate) fn with(traits: Traits, faults: Faults, script: UasScript) -> Self {
        let mut streamed = Self::prepared(traits, faults, script);
        streamed.configure();
        streamed
    }

    /// Addressed, and the input context filled in.
    pub(crate) fn prepared(traits: Traits, faults: Faults, script: UasScript) -> Self {
        let machine = machine();
        let controller = machine.add_faulty_xhci(traits, faults);
        let disk = script.build();
        machine.plug(controller, 2, disk.clone());
        let mut raw = Raw::probe(&machine, controller);
        raw.bring_up();
        let slot = raw.address(2);
        let arrays = [0; 3].map(|_| machine.coherent(16 * ENTRIES as usize));
        let mut streamed = Self {
            raw,
            slot,
            disk,
            arrays,
        };
        streamed.prepare();
        streamed
    }

    fn prepare(&mut self) {
        let mut context = self.raw.slot_context(self.slot);
        context[0] = context[0] & 0x07ff_ffff | DATA_OUT << 27;
        self.raw.clear_input();
        self.raw.store_input(0, &[0, 0b1_1010_0101]);
        self.raw.store_input(1, &context[..3]);
        let ring = Ring::new(&self.raw.machine, 16);
        let (low, high) = (ring.base as u32 | 1, (ring.base >> 32) as u32);
        let shape = |burst: u32, kind: u32| 1024 << 16 | burst << 8 | kind << 3 | 3 << 1;
        self.raw
            .store_input(u64::from(COMMAND) + 1, &[0, shape(0, 2), low, high, 3072]);
        self.raw.rings.insert((self.slot, COMMAND), ring);
        for (array, (index, kind)) in
            self.arrays
                .into_iter()
                .zip([(STATUS, 6), (DATA_IN, 6), (DATA_OUT, 2)])
        {
            let words = [
                1 << 15 | EXPONENT << 10,
                shape(15, kind),
                array as u32,
                (array >> 32) as u32,
                3072,
            ];
            self.raw.store_input(u64::from(index) + 1, &words);
            for stream in 1..=STREAMS {
                let ring = Ring::new(&self.raw.machine, 16);
                let at = array + 16 * u64::from(stream);
                let (low, high) = (ring.base as u32 | PRIMARY | 1, (ring.base >> 32) as u32);
                self.raw.machine.store(at, &[low, high, 0, 0]);
                self.raw
                    .rings
                    .insert((self.slot, lane(index, stream)), ring);
            }
        }
        self.raw.machine.release();
    }

    fn configure(&mut self) {
        assert_eq!(self.raw.command_with_input(12, self.slot).code(), 1);
        self.raw.control_out(self.slot, [0, 9, 1, 0, 0, 0, 0, 0]);
    }

    /// Queues a transfer of one TRB on a stream, without its doorbell.
    pub(crate) fn queue(&mut self, index: u32, stream: u32, at: u64, length: u32) -> u64 {
        let words = [
            at as u32,
            (at >> 32) as u32,
            length,
            NORMAL << 10 | IOC | ISP,
        ];
        self.raw.push(self.slot, lane(index, stream), words)
    }

    pub(crate) fn kick(&self, index: u32, stream: u32) {
        self.raw.kick(self.slot, index | stream << 16);
    }

    /// Queues the status and, if there are any, the data of a command, then sends the command: where
    /// status and data will be.
    pub(crate) fn send(&mut self, tag: u32, block: [u8; 10], data: Option<(u32, u32)>) -> [u64; 2] {
        let status = self.raw.machine.coherent(64);
        let buffer = self.raw.machine.coherent(0x1_0000).next_multiple_of(0x8000);
        self.queue(STATUS, tag, status, 64);
        self.kick(STATUS, tag);
        if let Some((index, length)) = data {
            self.queue(index, tag, buffer, length);
            self.kick(index, tag);
        }
        let mut unit = [0_u8; 32];
        (unit[0], unit[3]) = (1, tag as u8);
        unit[16..26].copy_from_slice(&block);
        let words = unit.chunks_exact(4);
        let words = words.map(|chunk| u32::from_le_bytes(chunk.try_into().expect("four")));
        let at = self.raw.machine.coherent(32);
        self.raw.machine.store(at, &words.collect::<Vec<u32>>());
        self.raw.machine.release();
        self.raw.push_normal(self.slot, COMMAND, at, 32, 0);
        self.raw.kick(self.slot, COMMAND);
        [status, buffer]
    }

    /// A read of `blocks` blocks, not waited for.
    pub(crate) fn send_read(&mut self, tag: u32, lba: u8, blocks: u8) -> [u64; 2] {
        let block = [0x28, 0, 0, 0, 0, lba, 0, 0, blocks, 0];
        self.send(tag, block, Some((DATA_IN, u32::from(blocks) * 512)))
    }

    /// The unit ready: takes the attention that follows power-on.
    pub(crate) fn settle(&mut self) {
        for _ in 0..2 {
            self.send(1, [0; 10], None);
            assert_eq!(self.event().endpoint(), STATUS);
        }
    }

    pub(crate) fn event(&mut self) -> Event {
        self.raw.event_of(32)
    }

    /// Stop Endpoint to its completion: the transfer events before it.
    pub(crate) fn stop(&mut self, index: u32) -> Vec<Event> {
        self.command_among(15, [0; 2], index, 0)
    }

    /// Set TR Dequeue Pointer of a stream: the completion code.
    pub(crate) fn set_dequeue(&mut self, index: u32, stream: u32, pointer: u64) -> u32 {
        let low = pointer as u32;
        let words = [
            low,
            (pointer >> 32) as u32,
            stream << 16,
            self.slot << 24 | index << 16 | 16 << 10,
        ];
        self.raw.command(words).code()
    }

    fn command_among(&mut self, kind: u32, low: [u32; 2], index: u32, third: u32) -> Vec<Event> {
        let words = [
            low[0],
            low[1],
            third,
            self.slot << 24 | index << 16 | kind << 10,
        ];
        self.raw.queue_command(words);
        self.raw.write(self.raw.doorbells, 0);
        let mut events = Vec::new();
        loop {
            let event = self.raw.event();
            if event.kind() == 33 {
                assert_eq!(event.code(), 1);
                return events;
            }
            events.push(event);
        }
    }

    /// A word of the context of an endpoint's stream, in memory.
    pub(crate) fn stream_context(&self, index: u32, stream: u32) -> [u32; 4] {
        self.raw.machine.load(self.context_at(index, stream))
    }

    pub(crate) fn context_at(&self, index: u32, stream: u32) -> u64 {
        let array = match index {
            STATUS => self.arrays[0],
            DATA_IN => self.arrays[1],
            _ => self.arrays[2],
        };
        array + 16 * u64::from(stream)
    }
}

/// The key of a stream's ring among the raw driver's rings.
pub(crate) const fn lane(index: u32, stream: u32) -> u32 {
    stream << 8 | index
}
