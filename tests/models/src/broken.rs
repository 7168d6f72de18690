//! [`broken!`]: how a model says that the driver broke a rule.
//!
//! A rule names its section and is told at once, by a panic: the backtrace then leads to the very
//! access of the driver that broke it.

/// Panics with the section whose rule was broken, and how.
macro_rules! broken {
    ($section:literal, $($text:tt)+) => {
        panic!("{}: {}", $section, format_args!($($text)+))
    };
}

/// Panics with the section unless a condition holds.
macro_rules! require {
    ($condition:expr, $section:literal, $($text:tt)+) => {
        if !$condition {
            $crate::broken::broken!($section, $($text)+)
        }
    };
}

pub(crate) use {broken, require};
