//! Whatever is written into a run-time string of quirks: it is read to its end, what is wrong in it is told of
//! with its place, and costs no other entry anything.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use rootport::storage::quirks::{Flaw, Overrides, Quirks};

/// A text of no order, now and then with something that an entry is made of.
fn noise() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        select(&[":", ",", "0x", "0X", "152d", "u", "ffff", " ", "\0"][..]).prop_map(String::from),
    ];
    vec(piece, 0..400).prop_map(|pieces| pieces.concat())
}

/// An entry that is good, with what it says.
fn good() -> impl Strategy<Value = (String, (u16, u16, Quirks))> {
    let letters = vec(select(&b"abcdefghijklmnoprstuwyUT"[..]), 0..30);
    (any::<u16>(), any::<u16>(), letters).prop_map(|(vendor, product, letters)| {
        let quirks = letters
            .iter()
            .filter_map(|letter| Quirks::from_letter(*letter));
        let quirks = quirks.fold(Quirks::empty(), |all, quirk| all | quirk);
        let letters = String::from_utf8(letters).expect("they are ASCII");
        let text = format!("{vendor:x}:0x{product:04X}:{letters}");
        (text, (vendor, product, quirks))
    })
}

/// An entry that is left out, and why.
fn bad() -> impl Strategy<Value = (String, Flaw)> {
    let id = Flaw::Id;
    select(vec![
        ("152d".to_owned(), Flaw::NoColon),
        ("152d:0578".to_owned(), Flaw::NoColon),
        ("!".to_owned(), Flaw::NoColon),
        (":1:u".to_owned(), id),
        ("0x:1:u".to_owned(), id),
        ("12345:1:u".to_owned(), id),
        ("g:1:\u{e9}".to_owned(), id),
        ("-1:1:u".to_owned(), id),
        ("\u{661}:1:u".to_owned(), id),
        ("1".repeat(300) + ":1:u", id),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn any_text_is_read_to_its_end_and_every_place_lies_in_it(text in noise(), vendor: u16, product: u16) {
        let overrides = Overrides::new(&text);
        let mut before = None;
        for problem in overrides.problems() {
            prop_assert!(problem.position <= text.len());
            prop_assert!(before.is_none_or(|before| before < problem.position), "in order");
            prop_assert!(!problem.to_string().is_empty());
            before = Some(problem.position);
        }
        prop_assert!(overrides.entries().count() <= text.len());
        if let Some(found) = overrides.find(vendor, product) {
            prop_assert_eq!((found.vendor, found.product), (vendor, product));
        }
    }

    #[test]
    fn a_bad_entry_is_told_of_with_its_place_and_left_out_alone(
        pieces in vec(prop_oneof![good().prop_map(Ok), bad().prop_map(Err)], 0..60),
    ) {
        let mut text = String::new();
        let (mut wanted, mut flaws) = (Vec::new(), Vec::new());
        for piece in &pieces {
            match piece {
                Ok((_, said)) => wanted.push(*said),
                Err((entry, flaw)) => {
                    // The flaw is at the entry's start: a bad product is another case.
                    prop_assume!(!entry.starts_with("1:"));
                    flaws.push((text.len(), *flaw));
                }
            }
            let entry = match piece {
                Ok((entry, _)) | Err((entry, _)) => entry,
            };
            text.push_str(entry);
            text.push(',');
        }
        let overrides = Overrides::new(&text);
        let told: Vec<_> = overrides.problems().map(|it| (it.position, it.flaw)).collect();
        prop_assert_eq!(told, flaws);
        for (vendor, product, _) in &wanted {
            let first = wanted.iter().find(|said| (said.0, said.1) == (*vendor, *product));
            let found = overrides.find(*vendor, *product).expect("it is there");
            prop_assert_eq!(Some(found.quirks), first.map(|said| said.2));
        }
    }
}
