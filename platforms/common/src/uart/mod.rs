//! UARTs, polled: the console needs no interrupt and no buffer.

pub mod ns16550;
pub mod pl011;
