//! The strict EHCI model under a raw driver: first driven well, then with one rule broken at a
//! time. Each broken rule must be named by its section.

mod bring_up;
mod ownership;
mod periodic;
mod ports;
mod probe;
mod raw;
mod registers;
mod schedule;
mod splits;
mod transfers;
