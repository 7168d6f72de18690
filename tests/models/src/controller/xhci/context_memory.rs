//! Input contexts read from memory and checked against the topology; output contexts written, and
//! kept from the driver's hands (xHCI 1.2 §4.5.2, §6.2.2, §6.2.5).

use super::Xhci;
use super::checks::crosses;
use super::contexts::{SlotContext, Words};
use super::traits::Protocol;
use crate::broken::{broken, require};
use crate::controller::Surroundings;
use crate::device::Link;

/// An input context that a command points to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    base: u64,
    stride: u64,
    pub(super) drop: u32,
    pub(super) add: u32,
}

impl Xhci {
    /// Reads the input control context at `base` (§6.2.5.1).
    pub(super) fn load_input(&self, around: &mut Surroundings<'_>, base: u64) -> Input {
        let stride = self.traits.context_bytes();
        require!(
            base != 0 && base.is_multiple_of(16),
            "xHCI 1.2 §6.2.5",
            "an input context at {base:#x}"
        );
        self.check_reach(base, "an input context");
        require!(
            !crosses(base, 33 * stride, self.traits.page_size as u64),
            "xHCI 1.2 table 6-1",
            "the input context at {base:#x} crosses a page"
        );
        let words: Words = around.memory.read_words(base);
        require!(
            words[2..].iter().all(|&word| word == 0),
            "xHCI 1.2 §6.2.5.1",
            "reserved words of the input control context are not zero: {words:08x?}"
        );
        Input {
            base,
            stride,
            drop: words[0],
            add: words[1],
        }
    }

    /// A context of an input context: 0 for the slot, else the endpoint's index.
    pub(super) fn input_context(
        &self,
        around: &mut Surroundings<'_>,
        input: &Input,
        index: u32,
    ) -> Words {
        let at = input.base + input.stride * (u64::from(index) + 1);
        let words: Words = around.memory.read_words(at);
        let mut reserved = vec![0; input.stride as usize - 32];
        around.memory.read(at + 32, &mut reserved);
        let tail = if index == 0 { 4 } else { 5 };
        require!(
            words[tail..].iter().all(|&word| word == 0) && reserved.iter().all(|&byte| byte == 0),
            "xHCI 1.2 §6.2",
            "reserved words of input context {index} are not zero: {words:08x?}"
        );
        words
    }

    /// §6.2.2: a slot context that a command hands in, against the topology.
    pub(super) fn check_slot_context(&self, slot: u8, context: SlotContext) {
        let words = context.0;
        require!(
            words[0] & 1 << 24 == 0 && words[2] & 0x003c_0000 == 0 && words[3] & 0x07ff_ff00 == 0,
            "xHCI 1.2 §6.2.2",
            "reserved bits of the slot context are not zero: {words:08x?}"
        );
        let output = self.slots[usize::from(slot)].output[0];
        require!(
            words[3] == 0 || words[3] == output[3],
            "xHCI 1.2 §6.2.2",
            "address and state of an input slot context are {:#x}, neither zero nor the slot's own",
            words[3]
        );
        let port = context.root_port();
        require!(
            (1..=self.ports.len()).contains(&port),
            "xHCI 1.2 §6.2.2",
            "Root Hub Port Number {port} of {}",
            self.ports.len()
        );
        let Some(link) = context.link() else {
            broken!("xHCI 1.2 §6.2.2", "Speed {} is undefined", context.speed())
        };
        let protocol = self.ports[port - 1].protocol();
        require!(
            link.is_super() == (protocol == Protocol::Usb3),
            "xHCI 1.2 §6.2.2",
            "a device of {link:?} speed on root port {port}, a {protocol:?} port"
        );
        let shown = self.ports[port - 1].speed();
        require!(
            context.route() != 0 || !self.ports[port - 1].is_enabled() || shown == context.speed(),
            "xHCI 1.2 §6.2.2",
            "Speed {} in the slot context, but root port {port} shows {shown}",
            context.speed()
        );
        require!(
            usize::try_from(context.interrupter()).is_ok_and(|one| one < self.interrupters.len()),
            "xHCI 1.2 §6.2.2",
            "Interrupter Target {} of {}",
            context.interrupter(),
            self.interrupters.len()
        );
        self.check_translator(context, link);
    }

    /// Full and low speed below a high-speed hub go through its translator; nothing else does.
    fn check_translator(&self, context: SlotContext, link: Link) {
        let slot = context.translator_slot();
        let slow = matches!(link, Link::Low | Link::Full);
        if slot == 0 {
            require!(
                context.translator_port() == 0,
                "xHCI 1.2 §6.2.2",
                "TT Port Number without a TT Hub Slot ID"
            );
            return;
        }
        require!(
            slow && context.route() != 0,
            "xHCI 1.2 §6.2.2",
            "a transaction translator for a device of {link:?} speed, route {:#x}",
            context.route()
        );
        let hub = self
            .slots
            .get(slot as usize)
            .map(|slot| SlotContext(slot.output[0]));
        require!(
            hub.is_some_and(|hub| hub.is_hub() && hub.link() == Some(Link::High)),
            "xHCI 1.2 §6.2.2",
            "slot {slot} is named as translator, but is no high-speed hub"
        );
    }

    /// Writes output context `index` of a slot as the model keeps it.
    pub(super) fn write_output(&mut self, around: &mut Surroundings<'_>, slot: u8, index: u32) {
        let stride = self.traits.context_bytes();
        let slot = &self.slots[usize::from(slot)];
        let at = slot.contexts + stride * u64::from(index);
        around.memory.write_words(at, &slot.output[index as usize]);
    }

    /// §4.5.2: the output device context is the controller's; the driver only reads it.
    pub(super) fn check_output(&self, around: &mut Surroundings<'_>, slot: u8) {
        let stride = self.traits.context_bytes();
        let number = slot;
        let slot = &self.slots[usize::from(slot)];
        if slot.contexts == 0 {
            return;
        }
        let entry = self.operational.device_contexts + 8 * u64::from(number);
        let named = around.memory.read64(entry);
        require!(
            named == slot.contexts,
            "xHCI 1.2 §6.1",
            "entry {number} of the device context array became {named:#x} while the slot is enabled"
        );
        for (index, kept) in slot.output.iter().enumerate() {
            let words: Words = around
                .memory
                .read_words(slot.contexts + stride * index as u64);
            require!(
                words == *kept,
                "xHCI 1.2 §4.5.2",
                "the driver wrote to the output device context of slot {number}, context {index}: \
                 {words:08x?}, was {kept:08x?}"
            );
        }
    }
}
