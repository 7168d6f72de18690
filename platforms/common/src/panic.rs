//! A panic is printed, controllers are stopped, and the machine goes off with a failure.

use core::panic::PanicInfo;

use crate::{board, power, println};

#[panic_handler]
fn panic(information: &PanicInfo<'_>) -> ! {
    println!("\npanic: {}", information.message());
    if let Some(place) = information.location() {
        println!("  at {}:{}", place.file(), place.line());
    }
    (board::facts().stop_controllers)();
    power::off(Err("panic".into()))
}
