//! Models of what stands between the processor and a USB controller on real boards: clocks, resets,
//! PHYs, pins.
//!
//! A board fails the run at the access that came too early, and names the step that is missing.

pub mod allwinner;
