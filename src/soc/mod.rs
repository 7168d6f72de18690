//! What a chip needs before its controllers can be driven: clocks, resets, PHYs, power on the bus.
//!
//! Called by a board, before it hands the controllers to the stack. Each family of chips is a
//! feature of its own, so that an embedder can use it without the boot code of `platforms/`. The
//! sequences are data, short lists of steps, made from a row of facts per chip; one runner carries
//! them out. They assume neither that a boot loader did the work nor that it did not.

pub mod allwinner;
