//! A PCI bus for tests: configuration space with base addresses that size like real ones.

use core::cell::RefCell;
use std::collections::BTreeMap;

use super::config::{Address, ConfigSpace};

type Key = (u8, u8, u16);

/// A bus of a few functions. It fails the test when a base address changes while the function
/// decodes memory.
#[derive(Debug, Default)]
pub(super) struct FakeBus {
    words: RefCell<BTreeMap<Key, u32>>,
    /// Writable bits of words that have read-only ones.
    masks: BTreeMap<Key, u32>,
    stubborn: bool,
}

impl FakeBus {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn with(self, address: Address, class: u32) -> Self {
        self.set(address, 0, 0x000d_1b36);
        self.set(address, 4, 0);
        self.set(address, 8, class << 8);
        self
    }

    pub(super) fn bar32(mut self, address: Address, index: u16, size: u32) -> Self {
        self.set(address, 0x10 + 4 * index, 0);
        self.masks
            .insert(key(address, 0x10 + 4 * index), !(size - 1));
        self
    }

    pub(super) fn bar64(mut self, address: Address, index: u16, size: u32) -> Self {
        self = self.bar32(address, index, size);
        self.set(address, 0x10 + 4 * index, 0x4);
        self.set(address, 0x14 + 4 * index, 0);
        self
    }

    pub(super) fn pin(self, address: Address, pin: u32) -> Self {
        self.set(address, 0x3c, pin << 8);
        self
    }

    pub(super) fn multifunction(self, device: u8) -> Self {
        self.set(
            Address {
                device,
                function: 0,
            },
            0xc,
            1 << 23,
        );
        self
    }

    /// Bus mastering can be switched on but not off.
    pub(super) fn stubborn(mut self) -> Self {
        self.stubborn = true;
        self
    }

    pub(super) fn word(&self, address: Address, register: u16) -> u32 {
        *self.words.borrow().get(&key(address, register)).unwrap()
    }

    pub(super) fn set(&self, address: Address, register: u16, value: u32) {
        self.words
            .borrow_mut()
            .insert(key(address, register), value);
    }
}

impl ConfigSpace for &FakeBus {
    fn read(&self, address: Address, register: u16) -> u32 {
        let words = self.words.borrow();
        if !words.contains_key(&key(address, 0)) {
            return u32::MAX;
        }
        words.get(&key(address, register)).copied().unwrap_or(0)
    }

    fn write(&self, address: Address, register: u16, value: u32) {
        if (0x10..0x28).contains(&register) {
            assert_eq!(
                self.word(address, 4) & 2,
                0,
                "base address changed while decoding"
            );
        }
        let before = self.read(address, register);
        let mask = match (register, self.masks.get(&key(address, register))) {
            (4, _) => 0x0406,
            (_, Some(mask)) => *mask,
            (0x10..0x28, None) if !self.words.borrow().contains_key(&key(address, register)) => 0,
            _ => u32::MAX,
        };
        let kept = if self.stubborn && register == 4 {
            before & 4
        } else {
            0
        };
        self.set(address, register, before & !mask | value & mask | kept);
    }
}

fn key(address: Address, register: u16) -> Key {
    (address.device, address.function, register)
}
