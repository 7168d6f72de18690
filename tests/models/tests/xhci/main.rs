//! The strict xHCI model under a raw driver: first driven well, then with one rule broken at a
//! time. Each broken rule must be named by its section.

mod bring_up;
mod command_rules;
mod context_rules;
mod departure;
mod event_rules;
mod port_rules;
mod raw;
mod register_rules;
mod ring_rules;
mod stream_rules;
mod streamed;
mod streams;
mod transfer_rules;
mod transfers;
