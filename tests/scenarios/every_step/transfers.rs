//! The n-th transfer of each endpoint ends with an error of the wire, an odd code, or never.

use super::survives;
use crate::controller::{BAD_ENDS, Faults, LINKS, NEVER_ENDS, TransferFault};

fn transfer(endpoint: u8, count: u64, fault: TransferFault) -> Faults {
    let mut faults = Faults::none();
    faults.transfers.insert((endpoint, count), fault);
    faults
}

#[test]
fn any_transfer_of_a_bulk_pipe_may_end_with_any_error() {
    for &link in LINKS {
        for endpoint in [0x81, 0x02] {
            for count in 0..12 {
                for &fault in BAD_ENDS {
                    let what = format!("{fault:?} at transfer {count} of {endpoint:#x}");
                    survives(link, count, transfer(endpoint, count, fault), &what);
                }
            }
        }
    }
}

#[test]
fn any_transfer_of_a_bulk_pipe_may_never_end() {
    for &link in LINKS {
        for endpoint in [0x81, 0x02] {
            for count in 0..12 {
                let faults = transfer(endpoint, count, NEVER_ENDS);
                let what = format!("no end of transfer {count} of {endpoint:#x}");
                survives(link, count, faults, &what);
            }
        }
    }
}

#[test]
fn any_stage_on_endpoint_zero_may_end_with_any_error_or_never() {
    for &link in LINKS {
        for count in 0..50 {
            // One of them at each stage.
            let which = count as usize % (BAD_ENDS.len() + 1);
            let fault = *BAD_ENDS.get(which).unwrap_or(&NEVER_ENDS);
            let what = format!("{fault:?} at stage {count} of endpoint 0");
            survives(link, count, transfer(0, count, fault), &what);
        }
    }
}
