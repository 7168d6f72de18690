//! The base address array and the scratchpads behind its first entry (xHCI 1.2 §4.20, §6.1, §6.6).

use super::Xhci;
use super::checks::crosses;
use crate::broken::require;
use crate::controller::Surroundings;

impl Xhci {
    /// §6.1, §4.20, table 6-1: the base address array and what its first entry leads to.
    pub(super) fn load_scratchpads(&mut self, around: &mut Surroundings<'_>) {
        let base = self.operational.device_contexts;
        let length = 8 * (u64::from(self.operational.slots_enabled()) + 1);
        require!(
            around.memory.is_mapped(base, length as usize),
            "xHCI 1.2 §6.1",
            "{length} bytes of the device context array at {base:#x} are not all memory"
        );
        require!(
            !crosses(base, length, self.traits.page_size as u64),
            "xHCI 1.2 table 6-1",
            "the device context array at {base:#x} crosses a page"
        );
        let array = around.memory.read64(base);
        if self.traits.scratchpads == 0 {
            require!(
                array == 0,
                "xHCI 1.2 §6.1",
                "entry 0 of the device context array is {array:#x}, but there are no scratchpads"
            );
            return;
        }
        require!(
            array != 0 && array.is_multiple_of(64),
            "xHCI 1.2 §4.20",
            "entry 0 of the device context array is {array:#x}: no scratchpad array"
        );
        self.scratchpads = (0..self.traits.scratchpads as u64)
            .map(|index| self.load_scratchpad(around, array + 8 * index))
            .collect();
    }

    fn load_scratchpad(&self, around: &mut Surroundings<'_>, entry: u64) -> u64 {
        let size = self.traits.page_size;
        let page = around.memory.read64(entry);
        require!(
            page != 0 && page.is_multiple_of(size as u64),
            "xHCI 1.2 §6.6",
            "the scratchpad at {page:#x} is not a page of {size} bytes"
        );
        self.check_reach(page, "a scratchpad");
        let mut content = vec![0; size];
        around.memory.read(page, &mut content);
        require!(
            content.iter().all(|&byte| byte == 0),
            "xHCI 1.2 §4.20",
            "the scratchpad at {page:#x} was not cleared"
        );
        page
    }

    /// The controller keeps what it likes in its scratchpads.
    pub(super) fn scribble(&self, around: &mut Surroundings<'_>) {
        if self.scratchpads.is_empty() {
            return;
        }
        let index = around.random.below(self.scratchpads.len() as u64) as usize;
        let words = self.traits.page_size as u64 / 8;
        let at = self.scratchpads[index] + 8 * around.random.below(words);
        let noise = around.random.bits().to_le_bytes();
        around.memory.write(at, &noise);
    }
}
