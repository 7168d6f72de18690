//! Completion codes that no transfer should have: reserved ones, a vendor's own, those of commands.

use rootport_models::controller::xhci::CompletionFault;
use rootport_models::device::Link;

use super::Faults;
use crate::scenarios::every_step::course::survives;

#[test]
fn a_transfer_may_end_with_any_of_the_256_codes() {
    for code in 0..=255 {
        // Of the bring-up, of the first read, of commands: another for each code.
        let place = [(0x81, 2), (0x81, 9), (0x02, 3), (0, 6)][usize::from(code) % 4];
        let mut faults = Faults::none();
        faults.transfers.insert(place, CompletionFault::Code(code));
        let what = format!("code {code} at {place:x?}");
        survives(Link::High, u64::from(code), faults, &what);
    }
}
