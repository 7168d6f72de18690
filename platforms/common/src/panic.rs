//! A panic is printed, and the machine goes off with a failure.

use core::panic::PanicInfo;

use crate::{power, println};

#[panic_handler]
fn panic(information: &PanicInfo<'_>) -> ! {
    println!("\npanic: {}", information.message());
    if let Some(place) = information.location() {
        println!("  at {}:{}", place.file(), place.line());
    }
    power::off(Err("panic".into()))
}
