//! Child processes whose failure is one line.
//!
//! [`capture`] and [`quiet`] keep the child's output for themselves (quiet ones also write it to a
//! log), [`loud`] lets it through. None of them uses a shell.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// Directories of system tools that a user's `PATH` often leaves out.
const SYSTEM_DIRECTORIES: [&str; 4] = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin"];

/// Where the program is, on the `PATH` or among the system tools.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = SYSTEM_DIRECTORIES.iter().map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(system)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// A command for a program that [`find`] finds; a missing one is reported when it is started.
pub fn tool(program: &str) -> Command {
    Command::new(find(program).unwrap_or_else(|| program.into()))
}

/// A cargo of the running tool chain, started in the root of the repository.
///
/// What the outer cargo told *us* about our own package must not reach the inner one: build
/// scripts that watch those variables would run again and again.
pub fn cargo() -> Command {
    let mut command = Command::new(workspace::cargo());
    command.current_dir(workspace::root());
    for (name, _) in std::env::vars_os() {
        if is_about_our_package(&name) {
            command.env_remove(name);
        }
    }
    command
}

fn is_about_our_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let prefixes = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_PRIMARY_",
    ];
    name == "CARGO_CRATE_NAME" || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Runs to the end and gives back the output, whatever the exit status.
///
/// # Errors
///
/// Only when the program can't be started.
pub fn capture(command: &mut Command) -> Result<Output> {
    command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", name(command)))
}

/// Runs to the end and gives back the standard output; a non-zero exit is an error with the most
/// telling line of the child's own words. Both outputs go to the log `log`.
///
/// # Errors
///
/// When the program can't be started or fails.
pub fn quiet(command: &mut Command, log: &str) -> Result<String> {
    let output = capture(command)?;
    let path = write_log(log, &output)?;
    if !output.status.success() {
        let words = telling_line(&output.stderr)
            .or_else(|| telling_line(&output.stdout))
            .unwrap_or_else(|| output.status.to_string());
        bail!(
            "{} failed: {words} (log: {})",
            name(command),
            path.display()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs to the end with the child's output going to the user.
///
/// # Errors
///
/// When the program can't be started or fails.
pub fn loud(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}", name(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", described(command));
    }
    Ok(())
}

/// The program's name without its directories.
fn name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// The program and the first of its arguments: enough to know which step it was.
fn described(command: &Command) -> String {
    let arguments = command.get_args().take(5).map(OsStr::to_string_lossy);
    let mut words = vec![name(command).into()];
    words.extend(arguments);
    words.join(" ")
}

/// The first line that speaks of an error, else the last one that says anything.
fn telling_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let speaks = |line: &&str| {
        ["error", "E:", "fatal"]
            .iter()
            .any(|word| line.contains(word))
    };
    lines()
        .find(speaks)
        .or_else(|| lines().next_back())
        .map(str::to_owned)
}

fn write_log(log: &str, output: &Output) -> Result<PathBuf> {
    let path = workspace::output("logs")?.join(format!("{log}.log"));
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_reported_by_its_own_error_line() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo working; echo 'error: no such disk' >&2; echo bye >&2; exit 3",
        ]);
        let error = quiet(&mut command, "test-failing").unwrap_err().to_string();
        assert!(
            error.starts_with("sh failed: error: no such disk"),
            "{error}"
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = capture(&mut tool("no-such-program-anywhere")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start no-such-program-anywhere");
    }

    #[test]
    fn only_the_variables_about_our_own_package_are_hidden_from_the_inner_cargo() {
        assert!(is_about_our_package(OsStr::new("CARGO_PKG_NAME")));
        assert!(is_about_our_package(OsStr::new("CARGO_MANIFEST_DIR")));
        assert!(!is_about_our_package(OsStr::new("CARGO_HOME")));
        assert!(!is_about_our_package(OsStr::new("CARGO_TARGET_DIR")));
    }
}
