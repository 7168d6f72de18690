//! How a device is used, and why not otherwise: for people, in the tree and in the log.

use core::fmt;

use super::fallback::FellBack;
use super::quirks::Avoidance;

/// How commands travel to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usage {
    /// Over UAS.
    Uas,
    /// Over Bulk-Only, and why not over UAS.
    BulkOnly(Instead),
}

/// Why Bulk-Only is used and not UAS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instead {
    /// What device and controller say, or what is known of them.
    Avoided(Avoidance),
    /// [`Policy::uas`](crate::policy::Policy::uas) says so.
    Policy,
    /// UAS was tried.
    FellBack(FellBack),
}

impl Usage {
    /// In one word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Uas => "uas",
            Self::BulkOnly(_) => "bot",
        }
    }

    /// Why UAS is not used although the device offers it.
    #[must_use]
    pub fn reason(&self) -> Option<Instead> {
        match self {
            Self::Uas | Self::BulkOnly(Instead::Avoided(Avoidance::NotOffered)) => None,
            Self::BulkOnly(reason) => Some(*reason),
        }
    }
}

impl fmt::Display for Usage {
    /// `uas`, `bot`, or `bot` with the reason in parentheses.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())?;
        match self.reason() {
            None => Ok(()),
            Some(reason) => write!(formatter, " ({reason})"),
        }
    }
}

impl fmt::Display for Instead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Avoided(avoidance) => formatter.write_str(match avoidance {
                Avoidance::NotOffered => "no uas",
                Avoidance::Quirk => "quirk u",
                Avoidance::PerhapsAsm1051 => "perhaps an ASM1051",
                Avoidance::UnknownAsmedia => "an ASMedia of unknown kind",
                Avoidance::HostWithoutStreams => "controller without streams",
            }),
            Self::Policy => formatter.write_str("policy"),
            Self::FellBack(reason) => reason.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn the_reason_stands_behind_the_name_where_there_is_one() {
        let bulk_only = |reason| Usage::BulkOnly(reason).to_string();
        assert_eq!(Usage::Uas.to_string(), "uas");
        assert_eq!(bulk_only(Instead::Avoided(Avoidance::NotOffered)), "bot");
        assert_eq!(
            bulk_only(Instead::Avoided(Avoidance::Quirk)),
            "bot (quirk u)"
        );
        assert_eq!(bulk_only(Instead::Policy), "bot (policy)");
        let resets = FellBack::Resets(2, Duration::from_secs(60));
        assert_eq!(
            bulk_only(Instead::FellBack(resets)),
            "bot (fell back: 2 resets in 60 s)"
        );
    }
}
