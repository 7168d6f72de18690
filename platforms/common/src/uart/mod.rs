//! UARTs, polled: the console needs no interrupt and no buffer.

pub mod pl011;
