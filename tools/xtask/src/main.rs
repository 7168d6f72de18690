//! `cargo xtask`: parses the command line, calls the library, says one line when it fails.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use xtask::qemu::Device;
use xtask::{board, check, demo, image, run, test};

/// The one command line of the repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct CommandLine {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Boot a board image that lists, reads, measures and writes a USB disk, and check all of it
    Demo {
        /// The board: a directory of platforms/
        #[arg(long, default_value = "qemu-virt")]
        board: String,
        #[command(flatten)]
        hardware: Hardware,
    },
    /// Run everything that CI runs: the checks, the host's tests, the QEMU tests
    Test,
    /// Check format, rooms, lints, bare-metal builds and docs
    Check,
    /// Build a board's image
    Image {
        /// The board: a directory of platforms/
        board: String,
    },
    /// Boot a board's image in QEMU
    Run {
        /// The board: a directory of platforms/
        board: String,
        #[command(flatten)]
        hardware: Hardware,
        /// The kernel command line, as in docs/demo-protocol.md
        #[arg(long, value_name = "WORDS")]
        append: Option<String>,
    },
}

#[derive(Args)]
struct Hardware {
    /// The USB host controller, such as qemu-xhci, nec-usb-xhci or ehci
    #[arg(long)]
    controller: Option<String>,
    /// What the disk speaks
    #[arg(long, value_enum, default_value_t)]
    device: Device,
    /// A disk image of yours: it is read and left unchanged
    #[arg(long, value_name = "FILE")]
    disk: Option<PathBuf>,
}

fn main() -> ExitCode {
    match perform(CommandLine::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn perform(task: Task) -> Result<()> {
    match task {
        Task::Demo {
            board,
            hardware:
                Hardware {
                    controller,
                    device,
                    disk,
                },
        } => demo::run(&demo::Options {
            board,
            controller,
            device,
            disk,
        }),
        Task::Test => test::run(),
        Task::Check => check::run(),
        Task::Image { board } => {
            let path = image::build(&board::named(&board)?)?;
            println!("{}", path.display());
            Ok(())
        }
        Task::Run {
            board,
            hardware:
                Hardware {
                    controller,
                    device,
                    disk,
                },
            append,
        } => run::run(&run::Options {
            board,
            controller,
            device,
            disk,
            append,
        }),
    }
}
