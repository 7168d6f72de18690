//! `cargo xtask`: parses the command line, calls the library, says one line when it fails.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use xtask::{bench, board, check, demo, image, mutants, quirk, run, test};

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
    /// Count what the stack costs, in QEMU, and write the table of docs/performance.md
    Bench {
        /// The shortest runs: good for the counts, not for the times
        #[arg(long)]
        quick: bool,
        /// An EHCI only; docs/performance.md stays as it is
        #[arg(long)]
        ehci: bool,
        /// UAS disks only; docs/performance.md stays as it is
        #[arg(long, conflicts_with = "ehci")]
        uas: bool,
        /// Only the time of a request beside U-Boot's; docs/performance.md stays as it is
        #[arg(long, conflicts_with_all = ["ehci", "uas"])]
        beside_u_boot: bool,
        /// Only what the timed models say, which needs no emulator
        #[arg(long, conflicts_with_all = ["ehci", "uas", "beside_u_boot"])]
        timed: bool,
    },
    /// Make mistakes in the drivers, in a copy, and see that the tests notice them
    Mutants {
        /// Only those with this word in their name
        only: Option<String>,
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
    /// Say what the stack makes of a device: chip, policies, UAS or not, and why
    Quirk(Device),
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
struct Device {
    /// Vendor and product, hexadecimal, such as 152d:0578
    device: String,
    /// The device's release (bcdDevice), hexadecimal, else 0100
    #[arg(long)]
    bcd: Option<String>,
    /// The link: low, full, high, super or super-plus, else super
    #[arg(long)]
    speed: Option<String>,
    /// A run-time string, as in usb-storage.quirks: VID:PID:letters[,...]
    #[arg(long = "override", value_name = "STRING")]
    overrides: Option<String>,
    /// bMaxPower of the configuration, in its own units
    #[arg(long)]
    max_power: Option<u8>,
    /// Streams of the UAS status pipe
    #[arg(long)]
    streams: Option<u32>,
    /// The device's string that names the maker
    #[arg(long)]
    manufacturer: Option<String>,
    /// The device's string that names the product
    #[arg(long)]
    product: Option<String>,
}

#[derive(Args)]
struct Hardware {
    /// The USB host controller, such as qemu-xhci, nec-usb-xhci or ehci
    #[arg(long)]
    controller: Option<String>,
    /// What the disk speaks; `both` is two disks, for the demo without a disk of yours
    #[arg(long, value_enum, default_value_t)]
    device: demo::Devices,
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
        Task::Mutants { only } => mutants::run(only.as_deref()),
        Task::Bench {
            quick,
            ehci,
            uas,
            beside_u_boot,
            timed,
        } => bench::run(bench::Options {
            quick,
            scope: match (ehci, uas, beside_u_boot, timed) {
                (true, ..) => bench::Scope::Ehci,
                (_, true, ..) => bench::Scope::Uas,
                (_, _, true, _) => bench::Scope::Beside,
                (.., true) => bench::Scope::Timed,
                _ => bench::Scope::All,
            },
        }),
        Task::Test => test::run(),
        Task::Check => check::run(),
        Task::Image { board } => {
            let path = image::build(&board::named(&board)?)?;
            println!("{}", path.display());
            Ok(())
        }
        Task::Quirk(device) => quirk::run(&quirk::Options {
            device: device.device,
            release: device.bcd,
            speed: device.speed,
            overrides: device.overrides,
            max_power: device.max_power,
            streams: device.streams,
            manufacturer: device.manufacturer,
            product: device.product,
        }),
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
