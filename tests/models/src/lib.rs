//! Models of USB hardware, for tests on a PC.

pub mod device;
