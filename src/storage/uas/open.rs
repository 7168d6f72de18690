//! How a UAS function is opened: its pipes, memory and slots, all of them or nothing.
//!
//! The other half of [`transport`](super::transport). With streams, all three pipes that have them get
//! one for each tag; the depth is the least of policy, device, controller and slots.

use super::machine::{Machine, Mode};
use super::memory::{CommandSlot, Layout, bounces, release, reserve};
use super::tags::{MARGIN, MAX_TAGS, TagSet, Tags};
use super::transport::{Pipes, QUIET, Transport};
use super::wire::CommandUnit;
use crate::dma::{Class, Owner, PoolError, Rules, SegmentRules};
use crate::host::HostError;
use crate::policy::Policy;
use crate::storage::bot::transport::CopyCount;
use crate::time::{Duration, Instant};
use crate::usb::descriptor::UasPipes;
use crate::usb::{Bus, DeviceId, Driver, Table, UsbError};

/// A controller cuts what crosses 64 KiB (xHCI 1.2 §6.4.1): no unit is to be cut.
const MEMORY: Rules = Rules::aligned(128).within(0x1_0000);

/// Data transfers on a pipe without streams: the device has one phase a direction, and may announce
/// the next before the end of the last was seen.
const READY_TRANSFERS: u8 = 3;

impl Transport {
    /// Opens the pipes and reserves memory and slots, for as many commands in flight as policy,
    /// device, controller, slots and memory allow: what does not fit is tried with one fewer. The
    /// device is described, and is to be configured next.
    ///
    /// # Errors
    ///
    /// [`HostError::Unsupported`] if the link needs streams and there are none, or too few; else what
    /// is short. Nothing was reserved.
    pub fn open<C: Driver>(
        bus: &mut Bus<'_, C>,
        commands: &mut [CommandSlot],
        function: u8,
        device: DeviceId,
        pipes: &UasPipes,
        policy: &Policy,
        longest: u32,
    ) -> Result<Self, UsbError> {
        let speed = bus.speed(device).ok_or(UsbError::Disconnected)?;
        let capabilities = bus.capabilities(device).ok_or(UsbError::Disconnected)?;
        let wanted = policy.depth.max(1).saturating_add(MARGIN).min(MAX_TAGS);
        let (mode, limit) = if speed.is_super() {
            let streams = pipes.stream_count().min(u32::from(capabilities.streams));
            (Mode::Streams, wanted.min(streams.min(255) as u8))
        } else {
            (Mode::Ready, wanted)
        };
        let unsupported = UsbError::Controller(HostError::Unsupported);
        let mut depth = Tags::new(limit).ok_or(unsupported)?.depth();
        let mut shortage = None;
        loop {
            let (base, fits) =
                reserve(commands, function, depth).ok_or(UsbError::TableFull(Table::Commands))?;
            if fits < depth {
                shortage = Some(UsbError::TableFull(Table::Commands));
            }
            let tags = Tags::new(fits + MARGIN).ok_or(unsupported)?;
            let opened = Self::open_all(
                bus,
                commands,
                function,
                device,
                pipes,
                (mode, tags),
                base,
                longest,
            );
            match opened {
                Ok(mut transport) => {
                    transport.shortage = shortage;
                    // Both functions together leave half of an episode to the rungs above.
                    let most = policy.episode.half().half();
                    transport.task_timeout = policy.task_management.min(most);
                    return Ok(transport);
                }
                Err(error) => {
                    release(commands, function);
                    bus.pool().reclaim(Owner::Function(function));
                    if fits == 1 || !wants_memory(error) {
                        return Err(error);
                    }
                    shortage = Some(error);
                    depth = fits - 1;
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the second half of `open`")]
    fn open_all<C: Driver>(
        bus: &mut Bus<'_, C>,
        commands: &mut [CommandSlot],
        function: u8,
        device: DeviceId,
        pipes: &UasPipes,
        (mode, tags): (Mode, Tags),
        base: u16,
        longest: u32,
    ) -> Result<Self, UsbError> {
        let owner = Owner::Function(function);
        let layout = Layout::new(mode, tags.depth());
        let short = |error: PoolError| UsbError::Controller(error.into());
        let memory = bus
            .pool()
            .allocate(owner, Class::Command, layout.length(), MEMORY)
            .map_err(short)?;
        let rules = bus.segment_rules(device);
        let rules = rules.unwrap_or(SegmentRules { mask: 0, grain: 1 });
        let grain = rules.grain.max(128);
        let bouncing = bounces(grain, tags.depth());
        let length = 2 * grain * usize::from(bouncing);
        let aligned = Rules::aligned(grain);
        let area = bus.pool().allocate(owner, Class::Bounce, length, aligned);
        let area = area.map_err(short)?;
        let slots = commands.iter_mut().skip(usize::from(base));
        for (slot, number) in slots.zip(0..usize::from(bouncing)) {
            slot.bounce = area.part(2 * grain * number, 2 * grain);
        }
        let pipes = open_pipes(bus, device, pipes, mode, tags.depth(), longest)?;
        Ok(Self {
            function,
            pipes,
            rules,
            memory,
            layout,
            machine: Machine::new(mode, tags.depth()),
            tags,
            bouncing: TagSet::first(bouncing),
            base,
            flying: TagSet::EMPTY,
            marked: TagSet::EMPTY,
            put_off: TagSet::EMPTY,
            put_off_until: Instant::NEVER,
            ended: TagSet::EMPTY,
            overtaken: TagSet::EMPTY,
            scratch: None,
            quiet: 0,
            unsent: TagSet::EMPTY,
            unsent_since: Instant::NEVER,
            deadline: Instant::NEVER,
            task: None,
            task_timeout: Duration::from_secs(2),
            recovery_end: Instant::NEVER,
            operation: Instant::NEVER,
            waiting: None,
            quiescent: false,
            calm: mode == Mode::Streams,
            held_up: false,
            resumed: false,
            stuck: false,
            copies: CopyCount::default(),
            shortage: None,
        })
    }
}

/// Whether fewer commands in flight may fit where so many do not.
fn wants_memory(error: UsbError) -> bool {
    use HostError::{LedgerFull, PoolExhausted, Resources, StorageFull};
    matches!(
        error,
        UsbError::Controller(PoolExhausted | LedgerFull | Resources | StorageFull)
    )
}

/// Opens the four pipes, or none.
fn open_pipes<C: Driver>(
    bus: &mut Bus<'_, C>,
    device: DeviceId,
    pipes: &UasPipes,
    mode: Mode,
    depth: u8,
    longest: u32,
) -> Result<Pipes, UsbError> {
    let tags = depth + MARGIN;
    let (streams, transfers) = match mode {
        Mode::Streams => (u16::from(tags), 1),
        Mode::Ready => (0, READY_TRANSFERS),
    };
    let status_transfers = match mode {
        Mode::Streams => 1,
        Mode::Ready => 2,
    };
    let plan = [
        (
            &pipes.command,
            0,
            tags + QUIET + 1,
            CommandUnit::LENGTH as u32,
        ),
        (&pipes.data_in, streams, transfers, longest),
        (&pipes.data_out, streams, transfers, longest),
        // The last: a driver that looks at one pipe after the other finds the data before their status.
        (&pipes.status, streams, status_transfers, 1024),
    ];
    let mut opened = [None; 4];
    for ((endpoint, streams, transfers, longest), place) in plan.into_iter().zip(0..) {
        match bus.open_stream_pipe(device, endpoint, streams, transfers, longest) {
            Ok(pipe) => {
                if let Some(slot) = opened.get_mut(place) {
                    *slot = Some(pipe);
                }
            }
            Err(error) => {
                for pipe in opened.into_iter().flatten() {
                    bus.close_pipe(&pipe);
                }
                return Err(error);
            }
        }
    }
    match opened {
        [Some(command), Some(data_in), Some(data_out), Some(status)] => Ok(Pipes {
            command,
            status,
            data_in,
            data_out,
        }),
        _ => Err(UsbError::Disconnected),
    }
}
