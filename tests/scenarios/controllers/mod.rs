//! Controllers of every shape, controllers that die or hang, and the interrupt half.

mod death;
mod hangs;
mod interrupts;
mod shapes;
