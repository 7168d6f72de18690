//! What a board must say about itself, and how its crate and this one are joined.
//!
//! [`board!`](crate::board!) turns an implementation of [`Board`] into a handful of symbols that
//! entry, vectors and panic handler call. A board that forgets a part does not compile; an image
//! without a board does not link.

#[cfg(target_os = "none")]
use crate::power::Reason;
use crate::region::Region;

/// One board: its memory map, its console, its way to power off.
///
/// All functions are associated: the methods may be called from an exception report, when nothing
/// is known to be sane, so none of them keeps state outside its own registers.
pub trait Board {
    /// The name in the console's first line and in `platforms/`.
    const NAME: &'static str;

    /// Registers that are mapped before `main` (console, interrupt controller), as device memory.
    const DEVICES: &'static [Region];

    /// Where a device tree may lie when the boot loader passed none.
    const DEVICE_TREE: Option<usize> = None;

    /// RAM, for boot loaders that do not tell.
    const RAM: Option<Ram> = None;

    /// Writes bytes to the console; bounded, drops what does not fit in time.
    fn write_console(bytes: &[u8]);

    /// A byte that came in at the console, if there is one.
    fn read_console() -> Option<u8>;

    /// Takes the interrupts that are pending. Called with interrupts masked.
    fn interrupt();

    /// Stops all controllers without a lock, for panics and exception reports.
    fn stop_controllers();

    /// Switches the power off. Returns only if that failed.
    fn power_off();

    /// The board's work. It ends in [`power::off`](crate::power::off) with what is returned.
    #[cfg(target_os = "none")]
    fn main(start: crate::cpu::Start) -> Result<(), Reason>;
}

/// What a kind of board knows of its RAM without being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ram {
    /// What every board of the kind has.
    pub least: Region,
    /// Where RAM may be at all: only there is a boot loader's pointer followed.
    pub space: Region,
}

/// Makes `$board` the board of this image. To be used once, in the board's crate.
#[macro_export]
macro_rules! board {
    ($board:ty) => {
        const _: () = {
            use $crate::board::Board;

            // SAFETY: nothing else defines symbols of these names, and `board_common::board`
            // declares them with these very signatures.
            #[unsafe(no_mangle)]
            static ROOTPORT_BOARD: $crate::board::Facts = $crate::board::Facts {
                name: <$board>::NAME,
                devices: <$board>::DEVICES,
                device_tree: <$board>::DEVICE_TREE,
                ram: <$board>::RAM,
                write_console: <$board>::write_console,
                read_console: <$board>::read_console,
                interrupt: <$board>::interrupt,
                stop_controllers: <$board>::stop_controllers,
                power_off: <$board>::power_off,
                main: <$board>::main,
            };
        };
    };
}

/// A [`Board`] as a record, made by [`board!`](crate::board!) and nowhere else.
#[cfg(target_os = "none")]
#[derive(Debug)]
pub struct Facts {
    /// [`Board::NAME`].
    pub name: &'static str,
    /// [`Board::DEVICES`].
    pub devices: &'static [Region],
    /// [`Board::DEVICE_TREE`].
    pub device_tree: Option<usize>,
    /// [`Board::RAM`].
    pub ram: Option<Ram>,
    /// [`Board::write_console`].
    pub write_console: fn(&[u8]),
    /// [`Board::read_console`].
    pub read_console: fn() -> Option<u8>,
    /// [`Board::interrupt`].
    pub interrupt: fn(),
    /// [`Board::stop_controllers`].
    pub stop_controllers: fn(),
    /// [`Board::power_off`].
    pub power_off: fn(),
    /// [`Board::main`].
    pub main: fn(crate::cpu::Start) -> Result<(), Reason>,
}

/// The board of this image.
#[cfg(target_os = "none")]
pub(crate) fn facts() -> &'static Facts {
    unsafe extern "Rust" {
        safe static ROOTPORT_BOARD: Facts;
    }
    &ROOTPORT_BOARD
}
