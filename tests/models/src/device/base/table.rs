//! Scripted answers to control requests.
//!
//! A rule matches on the setup bytes and gives an [`Answer`] in place of the usual one, always or for
//! some times. The first rule that matches and is not used up wins. Rules come before every other
//! handling, so that a device can stall even a standard request.

use super::super::setup::Setup;
use super::function::Answer;

/// A pattern over setup bytes; `None` matches anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// Direction, type and recipient.
    pub request_type: Option<u8>,
    /// The request's number.
    pub request: Option<u8>,
    /// The whole value field.
    pub value: Option<u16>,
    /// The index field.
    pub index: Option<u16>,
    /// The length field.
    pub length: Option<u16>,
    /// The upper byte of the value field alone: the type in GET_DESCRIPTOR.
    pub value_high: Option<u8>,
}

impl Request {
    /// Any request at all.
    pub const ANY: Self = Self {
        request_type: None,
        request: None,
        value: None,
        index: None,
        length: None,
        value_high: None,
    };
    /// Get Max LUN (BOT 1.0 §3.2).
    pub const GET_MAX_LUN: Self = Self::of(0xa1, 0xfe);
    /// Bulk-Only Mass Storage Reset (BOT 1.0 §3.1).
    pub const BULK_ONLY_RESET: Self = Self::of(0x21, 0xff);
    /// SET_ADDRESS (USB 2.0 §9.4.6).
    pub const SET_ADDRESS: Self = Self::of(0x00, 5);
    /// SET_CONFIGURATION (USB 2.0 §9.4.7).
    pub const SET_CONFIGURATION: Self = Self::of(0x00, 9);
    /// SET_INTERFACE (USB 2.0 §9.4.10).
    pub const SET_INTERFACE: Self = Self::of(0x01, 11);
    /// CLEAR_FEATURE of an endpoint: of its halt, there is no other (USB 2.0 §9.4.1).
    pub const CLEAR_HALT: Self = Self::of(0x02, 1);

    /// A request by type and number.
    #[must_use]
    pub const fn of(request_type: u8, request: u8) -> Self {
        Self {
            request_type: Some(request_type),
            request: Some(request),
            ..Self::ANY
        }
    }

    /// GET_DESCRIPTOR of `kind`: 1 device, 2 configuration, 3 string, 15 BOS (USB 2.0 §9.4.3).
    #[must_use]
    pub const fn get_descriptor(kind: u8) -> Self {
        Self {
            value_high: Some(kind),
            ..Self::of(0x80, 6)
        }
    }

    /// The same with this length field.
    #[must_use]
    pub const fn length(self, length: u16) -> Self {
        Self {
            length: Some(length),
            ..self
        }
    }

    /// The same with this index field.
    #[must_use]
    pub const fn index(self, index: u16) -> Self {
        Self {
            index: Some(index),
            ..self
        }
    }

    /// Whether `setup` is such a request.
    #[must_use]
    pub fn matches(&self, setup: &Setup) -> bool {
        fn fits<T: PartialEq>(wanted: Option<T>, actual: T) -> bool {
            wanted.is_none_or(|wanted| wanted == actual)
        }
        fits(self.request_type, setup.request_type)
            && fits(self.request, setup.request)
            && fits(self.value, setup.value)
            && fits(self.index, setup.index)
            && fits(self.length, setup.length)
            && fits(self.value_high, setup.value.to_be_bytes()[0])
    }
}

#[derive(Clone, Debug)]
struct Rule {
    request: Request,
    answer: Answer,
    skip: u32,
    times: u32,
}

/// The rules of a device, in order.
#[derive(Clone, Debug, Default)]
pub struct ControlTable {
    rules: Vec<Rule>,
}

impl ControlTable {
    /// Answers each such request so.
    pub fn always(&mut self, request: Request, answer: Answer) {
        self.some(request, answer, 0..u32::MAX);
    }

    /// Answers the requests with these numbers so, counted from 0.
    pub fn some(&mut self, request: Request, answer: Answer, which: core::ops::Range<u32>) {
        let times = which.end.saturating_sub(which.start);
        self.rules.push(Rule {
            request,
            answer,
            skip: which.start,
            times,
        });
    }

    /// The answer to `setup`, if a rule has one; counts the use.
    pub(super) fn answer(&mut self, setup: &Setup) -> Option<Answer> {
        let mut found = None;
        for rule in self
            .rules
            .iter_mut()
            .filter(|rule| rule.request.matches(setup))
        {
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if rule.times > 0 && found.is_none() {
                rule.times -= 1;
                found = Some(rule.answer.clone());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_applies_to_the_requests_it_counts_and_to_no_other() {
        let mut table = ControlTable::default();
        table.some(Request::GET_MAX_LUN, Answer::Stall, 1..2);
        let max_lun = Setup::parse([0xa1, 0xfe, 0, 0, 0, 0, 1, 0]);
        let reset = Setup::parse([0x21, 0xff, 0, 0, 0, 0, 0, 0]);
        assert_eq!(table.answer(&max_lun), None);
        assert_eq!(table.answer(&reset), None);
        assert_eq!(table.answer(&max_lun), Some(Answer::Stall));
        assert_eq!(table.answer(&max_lun), None);
    }

    #[test]
    fn a_descriptor_request_matches_by_type_with_any_index() {
        let strings = Request::get_descriptor(3);
        assert!(strings.matches(&Setup::parse([0x80, 6, 2, 3, 9, 4, 255, 0])));
        assert!(!strings.matches(&Setup::parse([0x80, 6, 0, 2, 0, 0, 9, 0])));
        assert!(
            !strings
                .length(4)
                .matches(&Setup::parse([0x80, 6, 2, 3, 9, 4, 255, 0]))
        );
    }
}
