//! The hand-off by the board's real boot loader: Debian's U-Boot for QEMU's `virt` machine takes the
//! image over TFTP and starts it with `booti`.

use std::time::Duration;

use anyhow::{Context, Result};
use xtask::packages::{self, U_BOOT_QEMU};
use xtask::qemu::{Machine, Setup};

use crate::Bench;

/// Policy: U-Boot is at its prompt after about two seconds; a busy CI machine takes its time.
const PROMPT_DEADLINE: Duration = Duration::from_secs(60);
/// Policy: two round trips and an image below a megabyte through QEMU's user network.
const TFTP_DEADLINE: Duration = Duration::from_secs(60);

const PROMPT: &str = "=> ";
/// Above U-Boot's own data, below where it has put itself (the top of RAM).
const LOAD_ADDRESS: &str = "0x40400000";

/// Starts the machine with U-Boot, has it run `commands`, and hands over to the image.
///
/// # Errors
///
/// When U-Boot can't be had, or does not come as far as starting the image.
pub fn boot_by_u_boot(
    bench: &Bench,
    machine: Setup,
    log: &str,
    commands: &[&str],
    command_line: &str,
) -> Result<Machine> {
    packages::ensure(&[U_BOOT_QEMU])?;
    let image = bench.image();
    let directory = image.parent().context("an image is in a directory")?;
    let name = image
        .file_name()
        .context("an image has a name")?
        .to_string_lossy();
    let network = format!("user,id=network,tftp={}", directory.display());
    let machine = machine.with(["-bios", U_BOOT_QEMU.what, "-netdev", &network]);
    let mut machine = machine
        .with(["-device", "virtio-net-device,netdev=network"])
        .start(log)?;

    stop_autoboot(&mut machine)?;
    for command in commands {
        type_at_prompt(&mut machine, command, PROMPT_DEADLINE)?;
    }
    type_at_prompt(
        &mut machine,
        &format!("setenv bootargs {command_line}"),
        PROMPT_DEADLINE,
    )?;
    type_at_prompt(
        &mut machine,
        &format!("dhcp {LOAD_ADDRESS} {name}"),
        TFTP_DEADLINE,
    )?;
    machine
        .console
        .send(&format!("booti {LOAD_ADDRESS} - ${{fdtcontroladdr}}\n"))?;
    machine
        .console
        .wait_for("Starting kernel", PROMPT_DEADLINE)?;
    Ok(machine)
}

fn stop_autoboot(machine: &mut Machine) -> Result<()> {
    machine
        .console
        .wait_for("Hit any key to stop autoboot", PROMPT_DEADLINE)?;
    machine.console.send("\n")?;
    machine
        .console
        .wait_for(PROMPT, PROMPT_DEADLINE)
        .map(|_| ())
}

fn type_at_prompt(machine: &mut Machine, command: &str, within: Duration) -> Result<()> {
    machine.console.send(&format!("{command}\n"))?;
    let answer = machine.console.wait_for(PROMPT, within);
    answer
        .with_context(|| format!("U-Boot does not come back from {command:?}"))
        .map(|_| ())
}
