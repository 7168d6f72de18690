//! For drivers that are written by hand inside tests: coherent memory without the library.

use super::Machine;

impl Machine {
    /// Coherent memory of `length` bytes, zeroed: its bus address, a multiple of 4096.
    #[must_use]
    pub fn coherent(&self, length: usize) -> u64 {
        self.world().memory.add_region(length).1
    }

    /// The CPU stores words at a bus address of coherent memory, one after the other.
    pub fn store(&self, bus: u64, words: &[u32]) {
        for (index, word) in words.iter().enumerate() {
            let mut world = self.world();
            let cpu = world.memory.store(bus + 4 * index as u64, *word);
            world.stored(cpu, 4);
        }
    }

    /// The CPU loads `N` words from a bus address of coherent memory.
    #[must_use]
    pub fn load<const N: usize>(&self, bus: u64) -> [u32; N] {
        let bytes = self.load_bytes(bus, 4 * N);
        let mut words = [0; N];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        words
    }

    /// The CPU loads `length` bytes from a bus address of coherent memory.
    #[must_use]
    pub fn load_bytes(&self, bus: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        assert!(
            self.world().memory.peek(bus, &mut bytes),
            "{bus:#x} is no coherent memory"
        );
        bytes
    }

    /// The CPU passes a release: what it stored becomes visible.
    pub fn release(&self) {
        self.world().memory.released();
    }
}
