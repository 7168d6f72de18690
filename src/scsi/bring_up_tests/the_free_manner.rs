//! Tests of bring-up: the free manner.

use super::*;
use crate::block::WriteCache;
use crate::scsi::details::Details;

const REPORT_LUNS: u8 = 0xa0;

/// Mode parameters of these flags: DPOFUA or none, a caching page or none.
fn mode(specific: u8, page: &[u8]) -> Answer {
    let mut bytes = vec![3 + page.len() as u8, 0, specific, 0];
    bytes.extend(page);
    good(&bytes)
}

const WRITE_BACK: &[u8] = &[
    0x08, 0x12, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];
const WRITE_THROUGH: &[u8] = &[
    0x08, 0x12, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// What was found, the mode pages that were asked for, and the neighbours.
struct Asked {
    action: Action,
    pages: Vec<u8>,
    codes: Vec<u8>,
    neighbours: Vec<Neighbours>,
}

impl Asked {
    fn details(&self) -> Details {
        match self.action {
            Action::Ready(found) => found.details,
            other => panic!("{other:?}"),
        }
    }
}

fn ask(
    quirks: Quirks,
    (manner, search): (Manner, Search),
    device: impl Fn(&Command) -> Answer,
) -> Asked {
    let mut machine = BringUp::new(Instant::NEVER);
    machine.mind(quirks, ModeForm::Six);
    machine.ask(manner, search);
    let now = Instant::from_micros(0);
    let (mut pages, mut codes, mut neighbours) = (Vec::new(), Vec::new(), Vec::new());
    let mut action = machine.step(Input::Begin, now);
    while let Action::Issue(command) = action {
        assert!(codes.len() < ENDLESS);
        let cdb = command.cdb.to_bytes();
        codes.push(cdb[0]);
        if cdb[0] == MODE_SENSE_6 {
            pages.push(cdb[2]);
        }
        let Answer { outcome, data, .. } = device(&command);
        action = machine.step(Input::Ended(outcome, &data), now);
        neighbours.extend(machine.take_neighbours());
    }
    Asked {
        action,
        pages,
        codes,
        neighbours,
    }
}

/// A stick whose MODE SENSE is answered by page.
fn device(modes: impl Fn(u8) -> Answer) -> impl Fn(&Command) -> Answer {
    move |command| match &*command.cdb.to_bytes() {
        [INQUIRY, ..] => good(STICK),
        [READ_CAPACITY_10, ..] => good(&capacity_10(999, 512)),
        [MODE_SENSE_6, _, page, ..] => modes(*page),
        [REPORT_LUNS, ..] => good(&[
            0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0,
        ]),
        [READ_10, ..] => good(&[0; 512]),
        _ => good(&[]),
    }
}

const FREE: (Manner, Search) = (Manner::Free, Search::None);
const CAUTIOUS: (Manner, Search) = (Manner::Cautious, Search::None);

#[test]
fn the_cache_is_read_where_all_pages_have_it_and_asked_for_where_they_do_not() {
    let together = ask(Quirks::empty(), FREE, device(|_| mode(0x10, WRITE_BACK)));
    assert_eq!(together.pages, [0x3f]);
    assert_eq!(together.details().cache, WriteCache::WriteBack);
    assert!(together.details().takes_forced_writes);
    let apart = device(|page| match page {
        0x08 => mode(0x00, WRITE_THROUGH),
        _ => mode(0x00, &[]),
    });
    let apart = ask(Quirks::empty(), FREE, apart);
    assert_eq!(apart.pages, [0x3f, 0x08]);
    assert_eq!(apart.details().cache, WriteCache::WriteThrough);
    assert!(!apart.details().takes_forced_writes);
}

#[test]
fn a_cautious_bring_up_believes_no_caching_page_and_asks_for_none() {
    let asked = ask(
        Quirks::empty(),
        CAUTIOUS,
        device(|_| mode(0x10, WRITE_THROUGH)),
    );
    assert_eq!(asked.pages, [0x3f]);
    assert_eq!(asked.details().cache, WriteCache::Unknown);
    assert!(!asked.details().takes_forced_writes);
}

#[test]
fn policies_keep_each_question_from_its_device() {
    let answers = |page| match page {
        0x08 => mode(0x10, WRITE_BACK),
        _ => mode(0x90, &[]),
    };
    for (quirk, pages, cache, forced) in [
        (Quirks::ALWAYS_SYNC, &[][..], WriteCache::Unknown, false),
        (Quirks::WRITE_CACHE, &[0x3f], WriteCache::Unknown, false),
        (Quirks::NO_WP_DETECT, &[0x08], WriteCache::WriteBack, true),
        (
            Quirks::BROKEN_FUA,
            &[0x3f, 0x08],
            WriteCache::WriteBack,
            false,
        ),
    ] {
        let asked = ask(quirk, FREE, device(answers));
        assert_eq!(asked.pages, pages, "{quirk:?}");
        assert_eq!(asked.details().cache, cache, "{quirk:?}");
        assert_eq!(asked.details().takes_forced_writes, forced, "{quirk:?}");
    }
}

#[test]
fn write_protection_is_read_from_all_pages_alone() {
    let asked = ask(
        Quirks::empty(),
        FREE,
        device(|page| match page {
            0x08 => mode(0x80, WRITE_BACK),
            _ => mode(0x00, &[]),
        }),
    );
    let Action::Ready(found) = asked.action else {
        panic!("{:?}", asked.action)
    };
    assert!(!found.write_protected);
}

#[test]
fn a_caching_page_that_is_refused_costs_the_question_alone() {
    let asked = ask(
        Quirks::empty(),
        FREE,
        device(|page| match page {
            0x08 => fails(sense(5, 0x24, 0)),
            _ => mode(0x10, &[]),
        }),
    );
    assert_eq!(asked.pages, [0x3f, 0x08]);
    assert_eq!(asked.details().cache, WriteCache::Unknown);
    assert!(asked.details().takes_forced_writes);
}

fn listed(numbers: &[u8]) -> Neighbours {
    let mut bytes = vec![0, 0, 0, 8 * numbers.len() as u8, 0, 0, 0, 0];
    for number in numbers {
        bytes.extend([0, *number, 0, 0, 0, 0, 0, 0]);
    }
    Neighbours::Listed(crate::scsi::luns::Luns::parse(&bytes).unwrap())
}

#[test]
fn units_are_listed_before_the_disk_is_asked_anything_else() {
    let plain = device(|_| mode(0, &[]));
    let asked = ask(Quirks::empty(), (Manner::Free, Search::List), plain);
    assert_eq!(asked.codes[..3], [INQUIRY, REPORT_LUNS, TEST_UNIT_READY]);
    assert_eq!(asked.neighbours, [listed(&[0, 2])]);
    assert!(matches!(asked.action, Action::Ready(_)));
}

#[test]
fn where_the_list_is_forbidden_or_fails_the_next_unit_may_be_there() {
    let plain = device(|_| mode(0, &[]));
    let search = (Manner::Free, Search::List);
    let forbidden = ask(Quirks::NO_REPORT_LUNS, search, &plain);
    assert!(!forbidden.codes.contains(&REPORT_LUNS));
    assert_eq!(forbidden.neighbours, [Neighbours::PerhapsNext]);
    for answer in [|| fails(sense(5, 0x20, 0)), || good(&[0; 8])] {
        let failing = |command: &Command| match command.cdb.operation_code() {
            REPORT_LUNS => answer(),
            _ => plain(command),
        };
        let asked = ask(Quirks::empty(), search, failing);
        assert_eq!(asked.neighbours, [Neighbours::PerhapsNext]);
        // A count that is known otherwise stands.
        let counted = ask(Quirks::empty(), (Manner::Free, Search::ListAlone), failing);
        assert_eq!(counted.neighbours, []);
        assert!(matches!(counted.action, Action::Ready(_)));
    }
}

#[test]
fn an_attention_does_not_stand_for_a_list() {
    let attentions = core::cell::Cell::new(2);
    let plain = device(|_| mode(0, &[]));
    let asked = ask(
        Quirks::empty(),
        (Manner::Free, Search::List),
        |command: &Command| match command.cdb.operation_code() {
            REPORT_LUNS if attentions.get() > 0 => {
                attentions.set(attentions.get() - 1);
                fails(sense(6, 0x28, 0))
            }
            _ => plain(command),
        },
    );
    assert_eq!(asked.neighbours, [listed(&[0, 2])]);
}

#[test]
fn a_first_unit_that_is_no_disk_tells_of_the_others() {
    let plain = device(|_| mode(0, &[]));
    let asked = ask(
        Quirks::empty(),
        (Manner::Free, Search::List),
        |command: &Command| match command.cdb.operation_code() {
            INQUIRY => {
                let mut bytes = *STICK;
                bytes[0] = 0x0d;
                good(&bytes)
            }
            _ => plain(command),
        },
    );
    assert_eq!(asked.neighbours, [listed(&[0, 2])]);
    assert_eq!(asked.action, Action::Skip);
}

#[test]
fn a_unit_that_is_not_there_ends_the_search() {
    let nobody = |command: &Command| match command.cdb.operation_code() {
        INQUIRY => {
            let mut bytes = *STICK;
            bytes[0] = 0x7f;
            good(&bytes)
        }
        _ => good(&[]),
    };
    let asked = ask(Quirks::empty(), (Manner::Free, Search::Next), nobody);
    assert_eq!((asked.neighbours, asked.action), (vec![], Action::Skip));
    let there = ask(
        Quirks::empty(),
        (Manner::Free, Search::Next),
        device(|_| mode(0, &[])),
    );
    assert_eq!(there.neighbours, [Neighbours::PerhapsNext]);
}
