//! Register accesses of a load, from QEMU's trace.
//!
//! The console's own writes are traced along, so that the loads' lines stand between the events
//! that they enclose.

use std::collections::BTreeMap;
use std::io::BufRead;

use anyhow::{Context, Result};

/// Events that QEMU is asked to trace.
pub const EVENTS: [&str; 17] = [
    "usb_xhci_cap_read",
    "usb_xhci_oper_read",
    "usb_xhci_port_read",
    "usb_xhci_runtime_read",
    "usb_xhci_doorbell_read",
    "usb_xhci_oper_write",
    "usb_xhci_port_write",
    "usb_xhci_runtime_write",
    "usb_xhci_doorbell_write",
    "usb_ehci_opreg_read",
    "usb_ehci_portsc_read",
    "usb_ehci_opreg_write",
    "usb_ehci_portsc_write",
    "usb_ehci_doorbell_ring",
    "gic_acknowledge_irq",
    "pl011_write",
    "serial_write",
];

/// What a GIC answers where nothing is pending (IHI 0048B §3.2.5).
const NOTHING_PENDING: &str = " 1023";

/// What a load did to the controller, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Registers read.
    pub reads: u64,
    /// Registers written, doorbells among them.
    pub writes: u64,
    /// Doorbells rung.
    pub doorbells: u64,
    /// Interrupts taken.
    pub interrupts: u64,
}

/// The traffic of each load, by its name.
///
/// # Errors
///
/// When the trace can't be read.
pub fn read(trace: impl BufRead) -> Result<BTreeMap<String, Traffic>> {
    let mut reader = Reader::default();
    for line in trace.lines() {
        reader.take(&line.context("reading QEMU's trace")?);
    }
    Ok(reader.loads)
}

#[derive(Default)]
struct Reader {
    loads: BTreeMap<String, Traffic>,
    /// The load that is under way.
    load: Option<String>,
    traffic: Traffic,
    /// What the console has written since the last end of a line.
    written: String,
}

impl Reader {
    fn take(&mut self, line: &str) {
        let (event, rest) = line.split_once(' ').unwrap_or((line, ""));
        let traffic = &mut self.traffic;
        match event {
            "pl011_write" | "serial_write" => self.console(rest),
            // An EHCI's is a bit of a register: the write is an event of its own.
            "usb_ehci_doorbell_ring" => traffic.doorbells += 1,
            "gic_acknowledge_irq" if !rest.ends_with(NOTHING_PENDING) => traffic.interrupts += 1,
            "usb_xhci_doorbell_write" => {
                traffic.doorbells += 1;
                traffic.writes += 1;
            }
            _ if event.ends_with("_write") => traffic.writes += 1,
            _ if event.ends_with("_read") => traffic.reads += 1,
            _ => {}
        }
    }

    /// A write to the console's registers: `addr 0x0 value 0x40` or `addr 0x0 val 0x40` is a
    /// character.
    fn console(&mut self, rest: &str) {
        let mut words = rest.split_ascii_whitespace();
        let address = words.find(|word| *word == "addr").and(words.next());
        let value = words.find(|word| word.starts_with("val")).and(words.next());
        let is_data = address.and_then(hexadecimal) == Some(0);
        let Some(byte) = value.and_then(hexadecimal).filter(|_| is_data) else {
            return;
        };
        match char::from(byte as u8) {
            '\n' => {
                if let Some(name) = self.written.strip_prefix("@@B bare.") {
                    self.load = Some(name.trim_end().to_owned());
                    self.traffic = Traffic::default();
                }
                self.written.clear();
            }
            character => self.written.push(character),
        }
        // The load has ended before the first character of the line that says so.
        if self.written == "@@E"
            && let Some(load) = self.load.take()
        {
            self.loads.insert(load, self.traffic);
        }
    }
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn console(text: &str) -> String {
        text.bytes()
            .map(|byte| format!("pl011_write addr 0x000 value 0x{byte:08x} reg DR\n"))
            .collect()
    }

    #[test]
    fn accesses_are_counted_between_the_lines_of_a_load() {
        let trace = [
            "usb_xhci_oper_read off 0x0004, ret 0x1\n".to_owned(),
            console("@@B bare.rr4k.1\n"),
            "usb_xhci_doorbell_write off 0x4, val 0x4\n".to_owned(),
            "usb_xhci_runtime_write off 0x38, val 0x8\n".to_owned(),
            "gic_acknowledge_irq cpu 0 acknowledged irq 80\n".to_owned(),
            "gic_acknowledge_irq cpu 0 acknowledged irq 1023\n".to_owned(),
            console("@@E bare.rr4k.1 n=1\n"),
            "usb_xhci_doorbell_write off 0x4, val 0x4\n".to_owned(),
        ]
        .concat();
        let loads = read(trace.as_bytes()).unwrap();
        let expected = Traffic {
            reads: 0,
            writes: 2,
            doorbells: 1,
            interrupts: 1,
        };
        assert_eq!(loads.get("rr4k.1"), Some(&expected));
        assert_eq!(loads.len(), 1);
    }

    #[test]
    fn an_ehci_and_the_other_kind_of_console_are_counted_alike() {
        let console = |text: &str| -> String {
            text.bytes()
                .map(|byte| format!("serial_write write addr 0x00 val 0x{byte:02x}\n"))
                .collect()
        };
        let trace = [
            console("@@B bare.rr4k.1\n"),
            "usb_ehci_opreg_write wr mmio 0x0020 [USBCMD] = 0x80061\n".to_owned(),
            "usb_ehci_doorbell_ring \n".to_owned(),
            "usb_ehci_opreg_read rd mmio 0x0024 [USBSTS] = 0x8020\n".to_owned(),
            console("@@E bare.rr4k.1 n=1\n"),
        ]
        .concat();
        let loads = read(trace.as_bytes()).unwrap();
        let expected = Traffic {
            reads: 1,
            writes: 1,
            doorbells: 1,
            interrupts: 0,
        };
        assert_eq!(loads.get("rr4k.1"), Some(&expected));
    }

    #[test]
    fn writes_to_other_console_registers_are_no_characters() {
        let mut reader = Reader::default();
        reader.take("pl011_write addr 0x030 value 0x00000301 reg CR");
        assert_eq!(reader.written, "");
    }
}
