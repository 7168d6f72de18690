//! The board's console: text out, bytes in, both polled.
//!
//! One core writes and no lock is taken, so that an exception report can always get its words out;
//! an interrupt handler that prints may land in the middle of a line.

use core::fmt;

/// The console as a target for `write!`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write(text.as_bytes());
        Ok(())
    }
}

/// A byte that came in, if there is one.
#[cfg(target_os = "none")]
#[must_use]
pub fn read_byte() -> Option<u8> {
    (crate::board::facts().read_console)()
}

#[cfg(target_os = "none")]
fn write(bytes: &[u8]) {
    (crate::board::facts().write_console)(bytes);
}

/// On the host (tests) the console is standard output.
#[cfg(all(test, not(target_os = "none")))]
fn write(bytes: &[u8]) {
    std::print!("{}", std::string::String::from_utf8_lossy(bytes));
}

#[cfg(all(not(test), not(target_os = "none")))]
fn write(_bytes: &[u8]) {}

/// Prints to the board's console.
#[macro_export]
macro_rules! print {
    ($($arguments:tt)*) => {{
        use ::core::fmt::Write as _;
        // The console drops what it cannot send; it never fails.
        let _ = ::core::write!($crate::console::Console, $($arguments)*);
    }};
}

/// Prints to the board's console and ends the line.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($arguments:tt)*) => {{
        $crate::print!($($arguments)*);
        $crate::print!("\n");
    }};
}
