//! A QEMU that runs a board image: started, listened to, spoken to, and always ended.
//!
//! [`Setup`] collects the command line, [`Machine`] is the running emulator with its serial
//! [`Console`] and its control socket ([`Qmp`]). Every wait has a deadline, and dropping a machine
//! kills the process. The demo and the QEMU tests are the users.

mod console;
mod qmp;
mod storage;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tempfile::TempDir;

pub use self::console::{Console, Echo};
pub use self::qmp::Qmp;
pub use self::storage::{Access, Device, UsbDisk};
use crate::board::{Board, ControllerChoice, Emulation, ImageKind};
use crate::disk::card::{Card, Handoff};
use crate::marker::Marker;
use crate::{command, workspace};

/// Policy: QEMU opens its control socket in well under a second, on a busy CI machine in a few.
const START_DEADLINE: Duration = Duration::from_secs(30);

/// QEMU takes 136 KiB from its allocator for each read of a SCSI disk. Below these limits glibc has the
/// kernel map and unmap them each time, or give memory at the heap's end and take it back, which takes
/// longer than all the rest of a request. Whether a process comes to that depends on what else it has taken
/// and given back, so that two machines with the same disk would differ by chance.
const ALLOCATOR: [(&str, &str); 2] = [
    ("MALLOC_MMAP_THRESHOLD_", "4194304"),
    ("MALLOC_TRIM_THRESHOLD_", "67108864"),
];

/// How often a process is asked whether it has ended.
const PROCESS_POLL: Duration = Duration::from_millis(5);

/// An emulated machine that is not running yet.
#[derive(Clone, Debug)]
pub struct Setup {
    program: String,
    arguments: Vec<String>,
    bus: String,
    echo: Echo,
    powers_off: bool,
    card: Option<Card>,
    /// The only processor of this machine that it may use.
    processor: Option<String>,
}

impl Setup {
    /// The board's machine with one USB host controller.
    pub fn new(emulation: &Emulation, controller: &ControllerChoice) -> Self {
        let mut setup = Self {
            program: emulation.program.clone(),
            arguments: emulation.arguments.clone(),
            bus: controller.bus.clone(),
            echo: Echo::Off,
            powers_off: emulation.powers_off,
            card: None,
            processor: None,
        };
        if let Some(device) = &controller.device {
            setup = setup.with(["-device", device]);
        }
        setup
    }

    /// Adds words to QEMU's command line.
    #[must_use]
    pub fn with<Word: AsRef<str>>(mut self, words: impl IntoIterator<Item = Word>) -> Self {
        self.arguments
            .extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Keeps the emulator on one processor of this machine, so that no thread of it has to wake
    /// another processor.
    ///
    /// # Errors
    ///
    /// When the machine does not tell its processors.
    pub fn on_one_processor(mut self) -> Result<Self> {
        self.processor = Some(last_processor()?);
        Ok(self)
    }

    /// Starts the image directly, with this kernel command line.
    #[must_use]
    pub fn with_kernel(self, image: &Path, command_line: &str) -> Self {
        self.with(["-kernel", &image.to_string_lossy(), "-append", command_line])
    }

    /// Starts the board's image with this kernel command line, as the board starts: directly, or by
    /// its U-Boot from a card.
    ///
    /// # Errors
    ///
    /// When the card can't be made.
    pub fn with_image(self, board: &Board, image: &Path, command_line: &str) -> Result<Self> {
        match board.image {
            ImageKind::Arm64 => Ok(self.with_kernel(image, command_line)),
            ImageKind::SunxiCard => {
                let card = Card::with_words(image, command_line, Handoff::default())?;
                Ok(self.with_card(card))
            }
        }
    }

    /// Boots from an SD card, which goes away with the last owner of the setup and its machines.
    #[must_use]
    pub fn with_card(mut self, card: Card) -> Self {
        let drive = format!("if=sd,format=raw,file={}", card.path().display());
        self.card = Some(card);
        self.with(["-drive", &drive])
    }

    /// Has the disks that follow on the bus of another controller that the machine has.
    #[must_use]
    pub fn with_bus_of(mut self, controller: &ControllerChoice) -> Self {
        self.bus.clone_from(&controller.bus);
        self
    }

    /// Puts a disk on the USB bus.
    #[must_use]
    pub fn with_disk(self, disk: &UsbDisk) -> Self {
        let words = disk.arguments(&self.bus);
        self.with(words)
    }

    /// Shows the console while it runs.
    #[must_use]
    pub fn with_echo(mut self, echo: Echo) -> Self {
        self.echo = echo;
        self
    }

    /// Starts the emulator. The console is also written to the log `log`.
    ///
    /// # Errors
    ///
    /// When it can't be started or ends at once: its own first words are in the error.
    pub fn start(&self, log: &str) -> Result<Machine> {
        let directory = tempfile::Builder::new().prefix("rootport-").tempdir()?;
        let socket = directory.path().join("qmp");
        let mut child = self
            .command(&socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program))?;
        let console = Console::new(&mut child, open_log(log)?, self.echo);
        let complaints = Complaints::of(child.stderr.take());
        let mut machine = Machine {
            process: Process { child },
            console: console?,
            qmp: None,
            complaints,
            bus: self.bus.clone(),
            powers_off: self.powers_off,
            _card: self.card.clone(),
            _directory: directory,
        };
        machine.connect(&socket, &self.program)?;
        Ok(machine)
    }

    fn command(&self, socket: &Path) -> Command {
        let mut command = match &self.processor {
            None => command::tool(&self.program),
            Some(processor) => {
                let mut command = command::tool("taskset");
                command.args(["-c", processor, &self.program]);
                command
            }
        };
        command
            .envs(ALLOCATOR)
            .args([
                "-nodefaults",
                "-nic",
                "none",
                "-display",
                "none",
                "-no-reboot",
            ])
            .args([
                "-chardev",
                "stdio,id=console,signal=off",
                "-serial",
                "chardev:console",
            ])
            .arg("-qmp")
            .arg(format!("unix:{},server=on,wait=off", socket.display()))
            .args(&self.arguments);
        command
    }
}

/// The last of the processors of this machine that we may use, by its number.
fn last_processor() -> Result<String> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let last = last_of_list(&status).context("no Cpus_allowed_list in /proc/self/status")?;
    Ok(last.to_owned())
}

/// The last number of a line like `Cpus_allowed_list: 0-3,8`.
fn last_of_list(status: &str) -> Option<&str> {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().rsplit(['-', ',']).next()
}

fn open_log(name: &str) -> Result<File> {
    let path = workspace::output("logs")?.join(format!("{name}.console.log"));
    File::create(&path).with_context(|| format!("cannot write {}", path.display()))
}

/// A running emulator.
pub struct Machine {
    /// The serial console.
    pub console: Console,
    qmp: Option<Qmp>,
    process: Process,
    complaints: Complaints,
    bus: String,
    powers_off: bool,
    _card: Option<Card>,
    _directory: TempDir,
}

impl Machine {
    fn connect(&mut self, socket: &Path, program: &str) -> Result<()> {
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            if let Some(status) = self.process.child.try_wait()? {
                // A machine that has run its course already is no failure to start.
                if status.success() {
                    return Ok(());
                }
                let words = self
                    .complaints
                    .first()
                    .unwrap_or_else(|| status.to_string());
                bail!("{program} would not start: {words}");
            }
            match Qmp::connect(socket) {
                Ok(qmp) => {
                    self.qmp = Some(qmp);
                    return Ok(());
                }
                Err(_) if Instant::now() < deadline => std::thread::sleep(PROCESS_POLL),
                Err(error) => bail!("{program} does not open its control socket: {error:#}"),
            }
        }
    }

    /// The control socket.
    ///
    /// # Errors
    ///
    /// When the machine had ended before the socket could be opened.
    pub fn qmp(&mut self) -> Result<&mut Qmp> {
        self.qmp.as_mut().context("QEMU has ended already")
    }

    /// Plugs a disk whose block node exists ([`Setup::with_disk`] and [`Machine::unplug`] before).
    ///
    /// # Errors
    ///
    /// When QEMU refuses.
    pub fn plug(&mut self, disk: &UsbDisk) -> Result<()> {
        if disk.is_bridge() {
            return self.attach(disk, true);
        }
        let device = disk.device(&self.bus);
        self.qmp()?.execute("device_add", device).map(|_| ())
    }

    /// Pulls a disk and waits until QEMU says that it is gone.
    ///
    /// # Errors
    ///
    /// When QEMU refuses, or does not say so within `within`.
    pub fn unplug(&mut self, disk: &UsbDisk, within: Duration) -> Result<()> {
        if disk.is_bridge() {
            // With its SCSI disk gone first, QEMU 7.2 forgets transfers of `usb-uas` and then dies.
            return self.attach(disk, false);
        }
        let id = disk.device_id();
        let qmp = self.qmp()?;
        qmp.execute("device_del", json!({ "id": id }))?;
        qmp.wait_for_event(
            "DEVICE_DELETED",
            |data| data["device"] == id.as_str(),
            within,
        )
    }

    /// Puts a bridge's plug in, or pulls it; its disks stay behind it.
    fn attach(&mut self, disk: &UsbDisk, is_in: bool) -> Result<()> {
        let path = format!("/machine/peripheral/{}", disk.device_id());
        let attached = json!({ "path": path, "property": "attached", "value": is_in });
        self.qmp()?.execute("qom-set", attached).map(|_| ())
    }

    /// Lets a disk's image be as fast as it is, from now on ([`UsbDisk::bytes_per_second`]).
    ///
    /// # Errors
    ///
    /// When QEMU refuses.
    pub fn hurry(&mut self, disk: &UsbDisk) -> Result<()> {
        let path = format!("/objects/{}", disk.throttle());
        let limits = json!({ "path": path, "property": "limits", "value": { "bps-total": 0 } });
        self.qmp()?.execute("qom-set", limits).map(|_| ())
    }

    /// Waits for a line of the console with these words in it. Other lines pass by.
    ///
    /// # Errors
    ///
    /// When the console ends, or when `within` is over.
    pub fn wait_for_words(&mut self, words: &str, within: Duration) -> Result<String> {
        let deadline = Instant::now() + within;
        loop {
            let line = self.console.next_line(deadline);
            match line.with_context(|| format!("waiting for the words {words}"))? {
                Some(line) if line.contains(words) => return Ok(line),
                Some(_) => {}
                None => bail!("the board stopped before it said {words}"),
            }
        }
    }

    /// Waits for the next marker with this word. Other lines pass by.
    ///
    /// # Errors
    ///
    /// When `@fail` comes first, when the console ends, or when `within` is over.
    pub fn wait_for_marker(&mut self, word: &str, within: Duration) -> Result<Marker> {
        let deadline = Instant::now() + within;
        loop {
            let line = self.console.next_line(deadline);
            let line = line.with_context(|| format!("waiting for @{word}"))?;
            let Some(line) = line else {
                bail!("the board stopped before @{word}")
            };
            match Marker::parse(&line) {
                Some(marker) if marker.word() == word => return Ok(marker),
                Some(marker) if marker.word() == "fail" => {
                    bail!("the board failed before @{word}: {}", marker.reason());
                }
                _ => {}
            }
        }
    }

    /// Has the emulator end after the board's last word, where the board can't switch itself off.
    ///
    /// # Errors
    ///
    /// When QEMU has ended before.
    pub fn end_after_last_word(&mut self) -> Result<()> {
        if !self.powers_off {
            self.qmp()?.quit()?;
        }
        Ok(())
    }

    /// Waits until the emulator ends by itself: a board that powers off ends it with success.
    ///
    /// # Errors
    ///
    /// When it still runs after `within`, or ends with a failure.
    pub fn wait_for_end(&mut self, within: Duration) -> Result<()> {
        let status = self
            .process
            .wait(within)?
            .context("the board did not power off")?;
        if !status.success() {
            let words = self
                .complaints
                .first()
                .unwrap_or_else(|| status.to_string());
            bail!("QEMU failed: {words}");
        }
        Ok(())
    }
}

/// The process, killed when it is dropped.
struct Process {
    child: Child,
}

impl Process {
    fn wait(&mut self, within: Duration) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(PROCESS_POLL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only where the process has ended already, which is what they are for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the emulator writes to its standard error.
struct Complaints {
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Complaints {
    fn of(stderr: Option<ChildStderr>) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let reader = stderr.map(|stderr| {
            let lines = Arc::clone(&lines);
            std::thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    lines
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(line);
                }
            })
        });
        Self { lines, reader }
    }

    /// The first line that is not a warning, after the process has ended.
    fn first(&mut self) -> Option<String> {
        if let Some(reader) = self.reader.take() {
            reader.join().ok()?;
        }
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let serious = lines.iter().find(|line| !line.contains("warning:"));
        serious.or(lines.first()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(arguments: &[&str]) -> Setup {
        let emulation = Emulation {
            program: "qemu-system-aarch64".into(),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            powers_off: true,
            controllers: Vec::new(),
        };
        let none = ControllerChoice {
            name: "none".into(),
            device: None,
            bus: "usb.0".into(),
        };
        crate::packages::ensure(&crate::packages::QEMU).unwrap();
        Setup::new(&emulation, &none)
    }

    #[test]
    fn an_emulator_that_refuses_its_arguments_is_quoted_in_one_line() {
        let error = setup(&["-machine", "no-such-machine"])
            .start("test-refused")
            .err()
            .unwrap();
        let line = format!("{error:#}");
        assert!(
            line.starts_with("qemu-system-aarch64 would not start: "),
            "{line}"
        );
        assert!(line.contains("unsupported machine type"), "{line}");
        assert!(!line.contains('\n'));
    }

    #[test]
    fn an_emulator_that_is_not_there_is_named() {
        let mut setup = setup(&[]);
        setup.program = "qemu-system-pdp7".into();
        let error = setup.start("test-absent").err().unwrap();
        assert!(error.to_string().contains("qemu-system-pdp7"), "{error}");
    }

    #[test]
    fn a_silent_board_meets_the_deadline_and_its_emulator_is_ended() {
        let mut machine = setup(&["-machine", "virt", "-S"])
            .start("test-silent")
            .unwrap();
        let begun = Instant::now();
        let error = machine
            .wait_for_marker("boot", Duration::from_millis(200))
            .unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert!(
            format!("{error:#}").contains("waiting for @boot"),
            "{error:#}"
        );
        machine
            .qmp()
            .unwrap()
            .execute("quit", serde_json::json!({}))
            .unwrap();
        machine.wait_for_end(Duration::from_secs(10)).unwrap();
    }

    #[test]
    fn a_command_that_qemu_refuses_is_an_error_with_its_words() {
        let mut machine = setup(&["-machine", "virt", "-S"])
            .start("test-refusal")
            .unwrap();
        let nothing = serde_json::json!({ "id": "nothing" });
        let error = machine
            .qmp()
            .unwrap()
            .execute("device_del", nothing)
            .unwrap_err();
        assert!(error.to_string().contains("device_del"), "{error}");
    }

    #[test]
    fn a_disk_can_be_pulled_and_plugged_again_and_its_image_stays() {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(1 << 20).unwrap();
        let disk = UsbDisk::new("disk0", image.path(), Access::ReadWrite);
        let setup = setup(&["-machine", "virt", "-S", "-device", "qemu-xhci,id=usb"]);
        let mut machine = setup.with_disk(&disk).start("test-plug").unwrap();
        for _ in 0..2 {
            machine.unplug(&disk, Duration::from_secs(10)).unwrap();
            assert!(
                machine.unplug(&disk, Duration::from_secs(10)).is_err(),
                "pulled twice"
            );
            machine.plug(&disk).unwrap();
            assert!(machine.plug(&disk).is_err(), "plugged twice");
        }
    }

    #[test]
    fn qemu_takes_disks_of_both_block_sizes_read_only_and_writable() {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(1 << 20).unwrap();
        for access in [Access::ReadOnly, Access::ReadWrite] {
            for block_size in [512, 4096] {
                let mut disk = UsbDisk::new("disk0", image.path(), access);
                disk.block_size = block_size;
                let setup = setup(&["-machine", "virt", "-S", "-device", "nec-usb-xhci,id=usb"]);
                setup
                    .with_disk(&disk)
                    .start("test-disks")
                    .unwrap()
                    .qmp()
                    .unwrap();
            }
        }
    }

    #[test]
    fn the_last_processor_is_the_end_of_the_list() {
        for (list, last) in [("0", "0"), ("0-3", "3"), ("0-3,8", "8"), ("1,4-5", "5")] {
            let status = format!("Threads:\t1\nCpus_allowed_list:\t{list}\nOther: 9\n");
            assert_eq!(last_of_list(&status), Some(last));
        }
        assert_eq!(last_of_list("Threads:\t1\n"), None);
    }
}
