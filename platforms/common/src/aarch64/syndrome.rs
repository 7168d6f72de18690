//! The exception syndrome in words.
//!
//! Who calls it: the exception report. Read first: ARM DDI 0487 §D17.2.37 (ESR_EL1).

use tock_registers::{LocalRegisterCopy, register_bitfields};

use crate::fault;

register_bitfields! {u64,
    Esr [
        FAULT_STATUS OFFSET(0) NUMBITS(6) [],
        /// Data aborts: a write caused it.
        WRITE OFFSET(6) NUMBITS(1) [],
        CLASS OFFSET(26) NUMBITS(6) [
            Unknown = 0x00,
            WaitTrapped = 0x01,
            FloatingPoint = 0x07,
            IllegalState = 0x0e,
            SupervisorCall = 0x15,
            SystemRegister = 0x18,
            InstructionAbortLower = 0x20,
            InstructionAbort = 0x21,
            ProgramCounter = 0x22,
            DataAbortLower = 0x24,
            DataAbort = 0x25,
            StackPointer = 0x26,
            SystemError = 0x2f,
            Breakpoint = 0x3c,
        ],
    ]
}

/// A saved ESR_EL1.
#[derive(Clone, Copy, Debug)]
pub struct Syndrome(LocalRegisterCopy<u64, Esr::Register>);

impl Syndrome {
    /// From the value of ESR_EL1.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(LocalRegisterCopy::new(value))
    }

    /// What kind of exception it was.
    #[must_use]
    #[doc(alias = "EC")]
    pub fn class(self) -> &'static str {
        use Esr::CLASS::Value as Class;
        match self.0.read_as_enum(Esr::CLASS) {
            Some(Class::Unknown) => "undefined instruction",
            Some(Class::WaitTrapped) => "trapped WFI or WFE",
            Some(Class::FloatingPoint) => "floating point or SIMD, which this image does not use",
            Some(Class::IllegalState) => "illegal execution state",
            Some(Class::SupervisorCall) => "supervisor call",
            Some(Class::SystemRegister) => "trapped system register access",
            Some(Class::InstructionAbortLower | Class::InstructionAbort) => "instruction abort",
            Some(Class::ProgramCounter) => "misaligned program counter",
            Some(Class::DataAbortLower | Class::DataAbort) => self.data_abort(),
            Some(Class::StackPointer) => "misaligned stack pointer",
            Some(Class::SystemError) => "system error",
            Some(Class::Breakpoint) => "breakpoint instruction",
            None => "other exception class",
        }
    }

    /// Why an access was aborted, where the exception is an abort.
    #[must_use]
    #[doc(alias = "DFSC")]
    pub fn fault(self) -> Option<&'static str> {
        use Esr::CLASS::Value as Class;
        let abort = matches!(
            self.0.read_as_enum(Esr::CLASS),
            Some(
                Class::InstructionAbortLower
                    | Class::InstructionAbort
                    | Class::DataAbortLower
                    | Class::DataAbort
            )
        );
        abort.then(|| fault::words(self.0.read(Esr::FAULT_STATUS) as u32))
    }

    fn data_abort(self) -> &'static str {
        if self.0.is_set(Esr::WRITE) {
            "data abort on a write"
        } else {
            "data abort on a read"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Syndrome;

    #[test]
    fn a_read_of_an_unmapped_address_is_told_so() {
        let syndrome = Syndrome::new(0x9600_0006);
        assert_eq!(syndrome.class(), "data abort on a read");
        assert_eq!(syndrome.fault(), Some("nothing is mapped there"));
    }

    #[test]
    fn a_write_to_constants_is_told_so() {
        let syndrome = Syndrome::new(0x9600_004f);
        assert_eq!(syndrome.class(), "data abort on a write");
        assert_eq!(syndrome.fault(), Some("the mapping does not allow it"));
    }

    #[test]
    fn only_aborts_have_a_fault() {
        assert_eq!(Syndrome::new(0x0200_0000).class(), "undefined instruction");
        assert_eq!(Syndrome::new(0x0200_0000).fault(), None);
        assert_eq!(Syndrome::new(0x3f << 26).class(), "other exception class");
    }
}
