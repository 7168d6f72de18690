//! `cargo xtask mutants`: drivers made wrong on purpose, each of which a named test must notice.
//!
//! The list is `tests/mutants.toml`: a mistake that is easily made, as a change of some lines, and the
//! test that finds it. [`run`] makes each change in a copy of the repository and runs its test there;
//! `cargo xtask check` holds that the lines and the tests are still there ([`findings`]). Whoever changes
//! such lines changes the list with them.

mod table;
mod tree;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::check::Finding;
use crate::progress::say;
use crate::{command, workspace};
use table::Mutant;
use tree::Tree;

/// Makes each mutant and runs its test, after a run without any.
///
/// # Errors
///
/// Names the mutants that lived, after all were tried; or why they could not be.
pub fn run(only: Option<&str>) -> Result<()> {
    let mut mutants = table::read(&workspace::root())?;
    mutants.retain(|mutant| only.is_none_or(|word| mutant.name.contains(word)));
    ensure!(!mutants.is_empty(), "there is no such mutant");
    let tree = Tree::copy()?;
    say(format!(
        "Running the tests of {} mutants without them",
        mutants.len()
    ));
    for mutant in &mutants {
        let ended = test(&tree, mutant)?;
        ensure!(
            ended == Ended::Passed,
            "{} without a mutant: {ended:?}",
            mutant.test
        );
    }
    let mut alive = Vec::new();
    for mutant in &mutants {
        let patched = tree.patch(mutant)?;
        let ended = test(&tree, mutant);
        drop(patched);
        let ended = ended?;
        say(format!("  {}: {} {ended:?}", mutant.name, mutant.test));
        if ended != Ended::Failed {
            alive.push(mutant.name.as_str());
        }
    }
    if !alive.is_empty() {
        bail!("these mutants live: {}", alive.join(", "));
    }
    say(format!("all {} mutants were found", mutants.len()));
    Ok(())
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Passed,
    Failed,
    /// It was not run: the program does not build, or has no test of that name.
    NotRun,
}

fn test(tree: &Tree, mutant: &Mutant) -> Result<Ended> {
    let mut cargo = command::cargo();
    cargo.current_dir(tree.root());
    // A folder of its own: what Cargo builds of a copy has the same names as what it builds of the
    // repository, and would be taken for it.
    cargo.env("CARGO_TARGET_DIR", workspace::target().join("mutants"));
    cargo.args(["test", "--package", "rootport"]);
    if mutant.target == "lib" {
        cargo.arg("--lib");
    } else {
        cargo.args(["--test", &mutant.target]);
    }
    cargo.args(["--", "--exact", &mutant.test]);
    let output = command::capture(&mut cargo)?;
    Ok(verdict(
        &String::from_utf8_lossy(&output.stdout),
        &mutant.test,
    ))
}

fn verdict(output: &str, test: &str) -> Ended {
    let line = format!("test {test} ... ");
    // A test that prints may have its end on a later line; the harness sums up in any case.
    if !output.contains(&line) {
        Ended::NotRun
    } else if output.contains("test result: ok. 1 passed; 0 failed") {
        Ended::Passed
    } else {
        Ended::Failed
    }
}

/// What of the list fits the repository no more.
///
/// # Errors
///
/// When the list can't be read.
pub fn findings(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for mutant in table::read(root)? {
        if let Err(error) = check(root, &mutant) {
            findings.push(Finding {
                file: table::FILE.to_owned(),
                line: 1,
                what: format!("{}: {error:#}", mutant.name),
            });
        }
    }
    Ok(findings)
}

fn check(root: &Path, mutant: &Mutant) -> Result<()> {
    mutant.applied(root)?;
    let name = mutant.test.rsplit("::").next().unwrap_or(&mutant.test);
    let found = ["src", "tests"]
        .iter()
        .map(|place| tree::contains(&root.join(place), &format!("fn {name}(")))
        .collect::<Result<Vec<bool>>>()
        .context("looking for its test")?;
    ensure!(found.contains(&true), "there is no test {name}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Ended, verdict};

    #[test]
    fn a_test_that_was_not_run_found_nothing() {
        let passed = "test a::b ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored";
        assert_eq!(verdict(passed, "a::b"), Ended::Passed);
        let failed = "test a::b ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed";
        assert_eq!(verdict(failed, "a::b"), Ended::Failed);
        let none = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed";
        assert_eq!(verdict(none, "a::b"), Ended::NotRun);
        assert_eq!(verdict("error: could not compile", "a::b"), Ended::NotRun);
        // An abort, as of a failed assertion in a handler, ends without a sum.
        assert_eq!(verdict("test a::b ... ", "a::b"), Ended::Failed);
    }

    #[test]
    fn every_mutant_of_the_list_fits_the_repository() {
        let findings = super::findings(&crate::workspace::root()).unwrap();
        assert!(findings.is_empty(), "{findings:#?}");
    }
}
