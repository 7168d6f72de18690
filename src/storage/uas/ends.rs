//! What the end of a command is to whoever wanted it.
//!
//! Called by [`transport`](super::transport). Each status and each cause becomes what the layers above
//! act on: issue it again, ask the ladder, or report.

use super::machine::{Cause, End};
use super::wire::{ResponseCode, ScsiStatus};
use crate::scsi::sense::Sense;
use crate::scsi::transport::{Completion, Fault, Outcome, Status, TransportError};

/// What an end means.
pub(super) fn outcome_of(end: End) -> Outcome {
    let check = |sense, moved| {
        Ok(Completion {
            status: Status::Check(sense),
            moved,
        })
    };
    match end {
        End::Status {
            status,
            sense,
            moved,
        } => match status {
            ScsiStatus::Good => Ok(Completion {
                status: Status::Good,
                moved,
            }),
            // It was sent again as long as it had time.
            ScsiStatus::Busy | ScsiStatus::TaskSetFull => Err(TransportError::DeviceBusy),
            ScsiStatus::ReservationConflict => Err(TransportError::Reserved),
            // The device says nothing more.
            ScsiStatus::TaskAborted => check(Sense::ABORTED, moved),
            ScsiStatus::CheckCondition | ScsiStatus::Other(_) => check(sense, moved),
        },
        End::Failed(Cause::Timeout) => Err(TransportError::Timeout),
        End::Failed(Cause::Neighbour) => Err(TransportError::Neighbour),
        End::Failed(Cause::Refused(ResponseCode::IncorrectLun)) => check(Sense::NO_SUCH_UNIT, 0),
        End::Failed(Cause::Refused(_) | Cause::Status(_)) => {
            Err(TransportError::Protocol(Fault::BadStatus))
        }
        End::Failed(Cause::Transfer(_)) => Err(TransportError::Protocol(Fault::Wire)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::UnitFault;
    use super::*;
    use crate::host::Outcome as TransferOutcome;
    use crate::scsi::sense::Verdict;

    #[test]
    fn every_end_says_whether_the_command_may_be_issued_again() {
        let status = |status| End::Status {
            status,
            sense: Sense::NONE,
            moved: 7,
        };
        let good = Completion {
            status: Status::Good,
            moved: 7,
        };
        assert_eq!(outcome_of(status(ScsiStatus::Good)), Ok(good));
        let Ok(Completion {
            status: Status::Check(sense),
            ..
        }) = outcome_of(status(ScsiStatus::TaskAborted))
        else {
            panic!("it is a status");
        };
        assert_eq!(sense.verdict(), Verdict::Retry);
        for (code, error) in [
            (ScsiStatus::Busy, TransportError::DeviceBusy),
            (ScsiStatus::TaskSetFull, TransportError::DeviceBusy),
            (ScsiStatus::ReservationConflict, TransportError::Reserved),
        ] {
            assert_eq!(outcome_of(status(code)), Err(error), "{code:?}");
        }
        let refused = outcome_of(End::Failed(Cause::Refused(ResponseCode::IncorrectLun)));
        let Ok(Completion {
            status: Status::Check(sense),
            ..
        }) = refused
        else {
            panic!("{refused:?}");
        };
        assert_eq!(sense.verdict(), Verdict::NoSuchUnit);
        let errors = [
            (Cause::Timeout, TransportError::Timeout),
            (Cause::Neighbour, TransportError::Neighbour),
            (
                Cause::Refused(ResponseCode::InvalidUnit),
                TransportError::Protocol(Fault::BadStatus),
            ),
            (
                Cause::Status(UnitFault::BulkOnlyStatus),
                TransportError::Protocol(Fault::BadStatus),
            ),
            (
                Cause::Transfer(TransferOutcome::Babble),
                TransportError::Protocol(Fault::Wire),
            ),
        ];
        for (cause, error) in errors {
            assert_eq!(outcome_of(End::Failed(cause)), Err(error));
        }
    }
}
