//! The end of an image: the verdict on the console, then power off.
//!
//! The exit status goes over the console because a board has no other way to tell it; the host
//! reads the marker line (`docs/demo-protocol.md`).

use crate::{board, println};

/// Prints the verdict and switches the power off.
pub fn off(verdict: Result<(), &'static str>) -> ! {
    match verdict {
        Ok(()) => println!("@done result=ok"),
        Err(reason) => println!("@fail reason={reason}"),
    }
    (board::facts().power_off)();
    println!("The power does not go off; stopped.");
    crate::aarch64::park()
}
