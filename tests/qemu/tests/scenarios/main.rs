//! Board images in QEMU, scenario by scenario. Each test starts its own machine.

mod start;
