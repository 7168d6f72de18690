//! `cargo xtask bench`: what the stack costs, counted in QEMU, against what it may cost.
//!
//! | module | what it does |
//! |---|---|
//! | [`runs`] | boots the bench image in one way after another |
//! | [`ehci`] | the same for an EHCI, on two machines |
//! | [`uas`] | the same for a UAS disk |
//! | [`beside`] | times a disk beside U-Boot, which reads the same one |
//! | [`sample`] | reads what the image prints |
//! | [`traffic`] | counts what QEMU's trace says about the controller, between the same lines |
//! | [`weight`] | sums up the sections of the smallest images |
//! | [`figures`] | what follows from all that: the figures, each with its target |
//! | [`timed`] | what disks reach on the timed models, and what was published for real ones |
//! | [`table`] | the table on the console and in `docs/performance.md` |
//!
//! What is counted is explained in `docs/performance.md`.

pub mod beside;
pub mod ehci;
pub mod figures;
pub mod runs;
pub mod sample;
pub mod table;
pub mod timed;
pub mod traffic;
pub mod uas;
pub mod weight;

use anyhow::Result;

use crate::progress::say;
use crate::{board, image, packages};
use runs::Runs;

/// What the user chose.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The shortest runs: good for the counts, not for the times.
    pub quick: bool,
    /// What is measured.
    pub scope: Scope,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything: the document gets it.
    All,
    /// An EHCI only; the document stays as it is.
    Ehci,
    /// UAS disks only; the document stays as it is.
    Uas,
    /// Only the times beside U-Boot; the document stays as it is.
    Beside,
    /// Only the timed models: the document gets that.
    Timed,
}

/// The board that is measured.
const BOARD: &str = "qemu-virt";

/// Measures everything, prints the table and writes it to `docs/performance.md`.
///
/// # Errors
///
/// When a run fails. A figure that misses its target is no error: the table says so.
pub fn run(options: Options) -> Result<()> {
    let scope = options.scope;
    if matches!(scope, Scope::All | Scope::Timed) {
        let text = timed::measure()?;
        println!("{text}");
        table::write(&timed::PLACE, &text)?;
    }
    if scope == Scope::Timed {
        return Ok(());
    }
    packages::ensure(&packages::QEMU)?;
    let board = board::named(BOARD)?;
    let fast = image::build_flavour(&board, &runs::FAST)?;
    let mut figures = Vec::new();
    if scope == Scope::All {
        figures.extend(figures::all(&Runs::perform(&board, &fast, options)?)?);
    }
    if matches!(scope, Scope::All | Scope::Uas) {
        figures.extend(uas::Runs::perform(&board, &fast)?.figures()?);
    }
    if matches!(scope, Scope::All | Scope::Ehci) {
        figures.extend(ehci::Runs::perform(&board, &fast)?.figures()?);
    }
    if matches!(scope, Scope::All | Scope::Beside) {
        figures.extend(beside::Rounds::perform(&board, &fast)?.figures()?);
    }
    let text = table::render(&figures);
    println!("{text}");
    if scope != Scope::All {
        return Ok(());
    }
    let path = table::write(&table::PLACE, &text)?;
    let missed = figures.iter().filter(|figure| figure.misses()).count();
    say(format!(
        "{missed} figures miss their target; the table is in {}",
        path.display()
    ));
    Ok(())
}
