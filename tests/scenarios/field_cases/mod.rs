//! Faults that people reported in public: what each device gets, and what its user.
//!
//! One file for each report, named after what the device does. The devices are in
//! `rootport_models::device::field`; the outcome that a good stack owes its user is asserted here.

mod attention_until_request_sense;
mod block_sizes;
mod cache_lines;
mod class_reset_spoils_writes;
mod dma_reach;
mod empty_slots;
mod errors_that_halt;
mod first_descriptor_read;
mod first_read_lies;
mod get_max_lun_answers;
mod halts_until_cleared;
mod lack_of_power;
mod large_disks;
mod last_block;
mod malformed_configurations;
mod mode_sense_10_kills;
mod mode_sense_halts_the_status;
mod never_ready;
mod nonsense_capacity;
mod recovery_times;
mod size_limits;
mod slow_spin_up;
mod status_in_place_of_data;
mod unexpected_speed;
mod wrong_status_wrappers;
