//! `cargo xtask quirk VID:PID`: what the stack makes of a device that is not at hand.
//!
//! Asks the library's own tables and rules, as the stack does when the device is plugged in, and says
//! what it finds and why. What the ids do not tell (the draw of power and the streams of an ASMedia
//! bridge) can be given; else every case is shown.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use rootport::storage::quirks::{
    Avoidance, Decision, Identity, Overrides, Quirks, Setting, UasChoice, attached, bulk_only, chip,
};
use rootport::usb::quirks::{BusQuirks, bus_quirks};
use rootport::usb::speed::Speed;

/// What is known of the device.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `VID:PID`, hexadecimal.
    pub device: String,
    /// `bcdDevice`, hexadecimal; 0100 if not given.
    pub release: Option<String>,
    /// The link: full, high, super, super-plus; super if not given.
    pub speed: Option<String>,
    /// The run-time string, as in `usb-storage.quirks`.
    pub overrides: Option<String>,
    /// `bMaxPower` of the configuration, in its own units.
    pub max_power: Option<u8>,
    /// Streams of the status pipe.
    pub streams: Option<u32>,
    /// Its string that names the maker.
    pub manufacturer: Option<String>,
    /// Its string that names the product.
    pub product: Option<String>,
}

/// Prints the report.
///
/// # Errors
///
/// When an id or the speed cannot be read.
pub fn run(options: &Options) -> Result<()> {
    print!("{}", report(options)?);
    Ok(())
}

/// The draws of power and numbers of streams by which bridges are told apart.
const CASES: [(u8, u32); 3] = [(0, 32), (36, 16), (36, 32)];

fn report(options: &Options) -> Result<String> {
    let identity = identity(options)?;
    let overrides = Overrides::new(options.overrides.as_deref().unwrap_or_default());
    let mut text = String::new();
    let Identity {
        vendor,
        product,
        release,
        speed,
        ..
    } = identity;
    writeln!(
        text,
        "device     {vendor:04x}:{product:04x}, release {release:04x}, at {speed:?} speed"
    )?;
    match chip(vendor, product, release) {
        Some(chip) => {
            writeln!(text, "chip       {}: {}", chip.name, chip.links)?;
            if !chip.reports.is_empty() {
                writeln!(text, "reports    {}", chip.reports)?;
            }
        }
        None => writeln!(text, "chip       not in the list")?,
    }
    for problem in overrides.problems() {
        writeln!(text, "warning    {problem}")?;
    }
    describe_uas(&mut text, options, &identity, &overrides)?;
    let decision = bulk_only(&identity, &overrides);
    writeln!(text, "Bulk-Only  {}", reason(&decision))?;
    list(&mut text, decision.quirks)?;
    for (name, _) in bus_quirks(vendor, product).iter_names() {
        writeln!(text, "bus        {name}: {}", bus_effect(name))?;
    }
    Ok(text)
}

/// One answer where all cases agree, else one for each.
fn describe_uas(
    text: &mut String,
    options: &Options,
    identity: &Identity<'_>,
    overrides: &Overrides<'_>,
) -> Result<()> {
    let given = |(power, streams)| {
        (
            options.max_power.unwrap_or(power),
            options.streams.unwrap_or(streams),
        )
    };
    let mut answers: Vec<_> = CASES
        .into_iter()
        .map(given)
        .map(|(raw_max_power, status_streams)| {
            let setting = Setting {
                is_offered: true,
                raw_max_power,
                status_streams: if identity.speed.is_super() {
                    status_streams
                } else {
                    0
                },
                host_has_streams: true,
            };
            (setting, attached(identity, &setting, overrides))
        })
        .collect();
    answers.dedup_by_key(|(_, answer)| *answer);
    let several = answers.len() > 1;
    for (setting, (choice, decision)) in answers {
        write!(text, "UAS        ")?;
        if several {
            let (power, streams) = (setting.raw_max_power, setting.status_streams);
            let generation = generation(choice, decision.quirks);
            write!(
                text,
                "[bMaxPower {power}, {streams} streams: {generation}] "
            )?;
        }
        match choice {
            UasChoice::Uas => writeln!(text, "used where offered: {}", reason(&decision))?,
            UasChoice::BulkOnly(avoidance) => {
                writeln!(
                    text,
                    "not used, Bulk-Only instead: {}",
                    why(avoidance, &decision)
                )?;
            }
        }
        list(text, decision.quirks)?;
    }
    Ok(())
}

/// Which of ASMedia's bridges a setting is taken for: the only ones whose ids do not tell.
fn generation(choice: UasChoice, quirks: Quirks) -> &'static str {
    match choice {
        UasChoice::Uas if quirks.contains(Quirks::MAX_SECTORS_240) => "an ASM1053",
        UasChoice::Uas => "an ASM1153",
        UasChoice::BulkOnly(_) => "perhaps an ASM1051",
    }
}

fn why(avoidance: Avoidance, decision: &Decision) -> String {
    match avoidance {
        Avoidance::NotOffered => "the device does not offer it".to_owned(),
        Avoidance::Quirk => reason(decision),
        Avoidance::PerhapsAsm1051 => {
            "32 streams and a draw of power: perhaps an ASM1051".to_owned()
        }
        Avoidance::UnknownAsmedia => {
            "below SuperSpeed it cannot be told from an ASM1051".to_owned()
        }
        Avoidance::HostWithoutStreams => "the controller has no streams".to_owned(),
    }
}

/// Where policies come from, in a line.
fn reason(decision: &Decision) -> String {
    let source = &decision.source;
    let story = source.entry.and_then(|entry| entry.story());
    let built_in = match story {
        Some(story) => format!("{} ({})", story.product, story.evidence),
        None if source.rule.is_empty() => "nothing known against it".to_owned(),
        None => "a rule of its vendor".to_owned(),
    };
    match source.replaced {
        None => built_in,
        Some((quirks, position)) => {
            format!(
                "quirk string, position {position}; without it: {built_in}: {}",
                names(quirks)
            )
        }
    }
}

fn names(quirks: Quirks) -> String {
    let names: Vec<_> = quirks.iter_names().map(|(name, _)| name).collect();
    if names.is_empty() {
        "no policy".to_owned()
    } else {
        names.join(", ")
    }
}

fn list(text: &mut String, quirks: Quirks) -> Result<()> {
    for (name, quirk) in quirks.iter_names() {
        let letter = quirk.letter().map_or_else(|| " ".to_owned(), String::from);
        writeln!(text, "        {letter}  {name}: {}", effect(quirk))?;
    }
    Ok(())
}

/// What a policy does, in a few words.
fn effect(quirk: Quirks) -> &'static str {
    const EFFECTS: [(Quirks, &str); 32] = [
        (Quirks::SINGLE_LUN, "one unit, GET MAX LUN is not sent"),
        (Quirks::FIX_INQUIRY, "INQUIRY is not sent"),
        (Quirks::FIX_CAPACITY, "one block less than it says"),
        (
            Quirks::IGNORE_RESIDUE,
            "the residue of its status is ignored",
        ),
        (Quirks::BULK32, "command wrappers of 32 bytes"),
        (
            Quirks::NOT_LOCKABLE,
            "its medium is not locked (nobody's is)",
        ),
        (Quirks::GO_SLOW, "a pause behind each wrapper at high speed"),
        (
            Quirks::NO_WP_DETECT,
            "MODE SENSE is not sent, it counts as writable",
        ),
        (Quirks::MAX_SECTORS_64, "at most 32 KiB a command"),
        (Quirks::IGNORE_DEVICE, "no driver takes it"),
        (
            Quirks::CAPACITY_HEURISTICS,
            "an odd number of blocks is made even",
        ),
        (Quirks::MAX_SECTORS_MIN, "at most 4 KiB a command"),
        (Quirks::BULK_IGNORE_TAG, "the tag of its status is ignored"),
        (Quirks::SANE_SENSE, "96 bytes of sense data are asked for"),
        (Quirks::CAPACITY_OK, "its capacity is believed"),
        (Quirks::BAD_SENSE, "never more than 18 bytes of sense data"),
        (
            Quirks::NO_READ_DISC_INFO,
            "no effect here: of optical drives",
        ),
        (
            Quirks::NO_READ_CAPACITY_16,
            "READ CAPACITY (16) is not sent",
        ),
        (
            Quirks::INITIAL_READ10,
            "block 0 is read and thrown away first (of every disk)",
        ),
        (
            Quirks::WRITE_CACHE,
            "a write cache is taken for granted (on every disk)",
        ),
        (Quirks::NEEDS_CAP16, "READ CAPACITY (16) first"),
        (Quirks::IGNORE_UAS, "Bulk-Only in place of UAS"),
        (Quirks::BROKEN_FUA, "forced unit access is not used"),
        (Quirks::NO_ATA_1X, "ATA PASS-THROUGH is not sent"),
        (
            Quirks::NO_REPORT_OPCODES,
            "REPORT SUPPORTED OPERATION CODES is not sent",
        ),
        (Quirks::MAX_SECTORS_240, "at most 120 KiB a command"),
        (Quirks::NO_REPORT_LUNS, "REPORT LUNS is not sent"),
        (
            Quirks::ALWAYS_SYNC,
            "MODE SENSE is not sent, a write cache is taken for granted",
        ),
        (Quirks::NO_SAME, "WRITE SAME is not sent"),
        (Quirks::SENSE_AFTER_SYNC, "REQUEST SENSE behind every flush"),
        (Quirks::BULK_ONLY, "Bulk-Only whatever its interface says"),
        (
            Quirks::STATUS_LAST,
            "the status is asked for behind the data",
        ),
    ];
    let found = EFFECTS.iter().find(|(known, _)| *known == quirk);
    found.map_or("", |(_, effect)| effect)
}

fn bus_effect(name: &str) -> &'static str {
    match BusQuirks::from_name(name) {
        Some(BusQuirks::DELAY_INIT) => "a pause before its configuration is read",
        Some(BusQuirks::STRING_FETCH_255) => "the length of a string is asked for first",
        Some(BusQuirks::HONOR_BNUMINTERFACES) => {
            "interfaces beyond the announced number are ignored"
        }
        _ => "",
    }
}

fn identity(options: &Options) -> Result<Identity<'_>> {
    let device = &options.device;
    let (vendor, product) = device
        .split_once(':')
        .with_context(|| format!("{device:?} is no device: give VID:PID, such as 152d:0578"))?;
    Ok(Identity {
        vendor: hexadecimal(vendor)?,
        product: hexadecimal(product)?,
        release: hexadecimal(options.release.as_deref().unwrap_or("0100"))?,
        speed: speed(options.speed.as_deref().unwrap_or("super"))?,
        manufacturer: options
            .manufacturer
            .as_deref()
            .unwrap_or_default()
            .as_bytes(),
        product_name: options.product.as_deref().unwrap_or_default().as_bytes(),
    })
}

fn hexadecimal(text: &str) -> Result<u16> {
    let bare = text.strip_prefix("0x").unwrap_or(text);
    u16::from_str_radix(bare, 16)
        .with_context(|| format!("{text:?} is no id: give up to four hexadecimal digits"))
}

fn speed(text: &str) -> Result<Speed> {
    Ok(match text {
        "low" => Speed::Low,
        "full" => Speed::Full,
        "high" => Speed::High,
        "super" => Speed::Super,
        "super-plus" => Speed::SuperPlus,
        other => bail!("{other:?} is no speed: low, full, high, super or super-plus"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(device: &str) -> Options {
        Options {
            device: device.to_owned(),
            ..Options::default()
        }
    }

    #[test]
    fn chip_choice_policies_and_evidence_are_named() {
        let text = report(&of("152d:0578")).unwrap();
        for wanted in [
            "JMicron JMS578",
            "UAS        used",
            "BROKEN_FUA",
            "unusual_uas.h",
        ] {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
    }

    #[test]
    fn a_string_decides_and_its_flaws_are_told_with_their_position() {
        let overrides = Some("nonsense,152d:0578:u".to_owned());
        let text = report(&Options {
            overrides,
            ..of("0x152d:0578")
        })
        .unwrap();
        assert!(
            text.contains("warning    quirk string, position 0"),
            "{text}"
        );
        assert!(text.contains("UAS        not used"), "{text}");
        assert!(
            text.contains("quirk string, position 9; without it"),
            "{text}"
        );
    }

    #[test]
    fn an_entry_of_the_string_replaces_what_the_table_says_and_does_not_add() {
        let uas = |device: &str, overrides: &str| {
            let overrides = Some(overrides.to_owned());
            let text = report(&Options {
                overrides,
                ..of(device)
            });
            let text = text.unwrap();
            let line = text.lines().find(|line| line.starts_with("UAS"));
            (line.unwrap().to_owned(), text)
        };
        let (line, _) = uas("2537:1068", "");
        assert!(line.contains("not used"), "{line}");
        // The table's `u` goes with any entry that does not have it.
        for entry in ["2537:1068:", "2537:1068:t"] {
            let (line, _) = uas("2537:1068", entry);
            assert!(line.contains("used where offered"), "{line}");
            assert!(line.contains("without it: Norelsys NS1068X"), "{line}");
        }
        // What has no letter stays: the string cannot take it away.
        let (_, text) = uas("152d:0578", "152d:0578:t");
        assert!(text.contains("BROKEN_FUA") && text.contains("NO_ATA_1X"));
    }

    #[test]
    fn a_string_of_any_length_is_read_to_its_end_past_entries_that_are_no_good() {
        let mut string = "174c:55aa:u,oops,".repeat(16);
        string.push_str("152d:0578:u");
        assert!(string.len() > 255);
        let text = report(&Options {
            overrides: Some(string),
            ..of("152d:0578")
        });
        let text = text.unwrap();
        assert_eq!(text.matches("warning    quirk string").count(), 16);
        assert!(text.contains("position 12:") && text.contains("position 267:"));
        assert!(text.contains("UAS        not used"), "{text}");
    }

    #[test]
    fn what_ids_do_not_tell_is_shown_case_by_case_unless_it_is_given() {
        let text = report(&of("174c:55aa")).unwrap();
        for (setting, generation) in [
            ("bMaxPower 0, 32 streams", "an ASM1153] used"),
            ("bMaxPower 36, 16 streams", "an ASM1053] used"),
            ("bMaxPower 36, 32 streams", "perhaps an ASM1051] not used"),
        ] {
            let line = format!("UAS        [{setting}: {generation}");
            assert!(text.contains(&line), "{line} in {text}");
        }
        let known = Options {
            max_power: Some(0),
            ..of("174c:55aa")
        };
        let text = report(&known).unwrap();
        assert!(text.contains("UAS        used"), "{text}");
        let slow = Options {
            speed: Some("high".to_owned()),
            max_power: Some(36),
            ..known
        };
        assert!(
            report(&slow)
                .unwrap()
                .contains("cannot be told from an ASM1051")
        );
    }

    #[test]
    fn what_cannot_be_read_is_said_in_one_line() {
        let error = |options: &Options| report(options).unwrap_err().to_string();
        assert!(error(&of("152d")).contains("VID:PID"));
        assert!(error(&of("152d:xyz")).contains("hexadecimal"));
        let fast = Options {
            speed: Some("warp".to_owned()),
            ..of("1:2")
        };
        assert!(error(&fast).contains("no speed"));
    }

    #[test]
    fn every_policy_has_its_effect_in_words() {
        for quirk in Quirks::all().iter() {
            assert!(!effect(quirk).is_empty(), "{quirk:?}");
        }
        for (name, _) in BusQuirks::all().iter_names() {
            assert!(!bus_effect(name).is_empty(), "{name}");
        }
    }
}
