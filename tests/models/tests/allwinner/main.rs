//! The bring-up of Allwinner's USB ports on the modelled board: whole, and with every step left out,
//! late or too early. The model names the step.

mod boards;
mod driver;
mod order;
mod rig;
mod rules;
mod steps;
mod whole;
