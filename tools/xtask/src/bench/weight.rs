//! How much memory the library takes: the sections of the smallest images that use it.

use std::fs;

use anyhow::{Context, Result, bail};
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, FileKind, elf};

use crate::board::Board;
use crate::image::{Build, build_program};
use crate::toolchain;

/// The package of the smallest image.
const PACKAGE: &str = "footprint";

/// Bytes of the smallest image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// Instructions.
    pub text: u64,
    /// Constants.
    pub constants: u64,
    /// Tables for one controller and one disk.
    pub tables: u64,
}

/// The smallest image in each of its shapes, for the 64-bit board that is measured unless said
/// otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// With an xHCI, over Bulk-Only.
    pub xhci: Weight,
    /// With an EHCI, over Bulk-Only, for the 32-bit boards that have one.
    pub ehci: Weight,
    /// The same.
    pub ehci_64_bit: Weight,
    /// With one of each, over Bulk-Only and UAS, and with the rare requests.
    pub all: Weight,
}

/// Links the smallest images for the targets of `board` and of `ehci_board`, as small as boards are
/// built, and weighs them.
///
/// # Errors
///
/// When one does not build.
pub fn weigh_all(board: &Board, ehci_board: &Board) -> Result<Weights> {
    Ok(Weights {
        xhci: weigh(board, &["footprint/xhci"])?,
        ehci: weigh(ehci_board, &["footprint/ehci"])?,
        ehci_64_bit: weigh(board, &["footprint/ehci"])?,
        all: weigh(
            board,
            &[
                "footprint/xhci",
                "footprint/ehci",
                "footprint/uas",
                "footprint/rare",
            ],
        )?,
    })
}

/// The same for one of its shapes.
pub(super) fn weigh(board: &Board, features: &[&str]) -> Result<Weight> {
    let core = toolchain::bare_metal_core(&[&board.target])?;
    let build = Build {
        package: PACKAGE,
        target: &board.target,
        profile: "board",
        features,
    };
    let program = build_program(&build, core)?;
    let file = fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    sections(&file).with_context(|| format!("{}", program.display()))
}

fn sections(file: &[u8]) -> Result<Weight> {
    match FileKind::parse(file)? {
        FileKind::Elf32 => sections_of_class::<elf::FileHeader32<Endianness>>(file),
        FileKind::Elf64 => sections_of_class::<elf::FileHeader64<Endianness>>(file),
        _ => bail!("not an ELF file"),
    }
}

fn sections_of_class<Elf: FileHeader<Endian = Endianness>>(file: &[u8]) -> Result<Weight> {
    let header = Elf::parse(file)?;
    let endian = header.endian()?;
    let mut weight = Weight {
        text: 0,
        constants: 0,
        tables: 0,
    };
    for section in header.sections(endian, file)?.iter() {
        let flags: u64 = section.sh_flags(endian).into();
        let has = |flag: u32| flags & u64::from(flag) != 0;
        // Unwind tables of `core` are in the file, and in no image of a board.
        let is_kept = matches!(section.sh_type(endian), elf::SHT_PROGBITS | elf::SHT_NOBITS)
            && has(elf::SHF_ALLOC);
        let bytes: u64 = section.sh_size(endian).into();
        let place = if has(elf::SHF_EXECINSTR) {
            &mut weight.text
        } else if has(elf::SHF_WRITE) {
            &mut weight.tables
        } else {
            &mut weight.constants
        };
        if is_kept {
            *place += bytes;
        }
    }
    Ok(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_test_program_has_all_three() {
        let program = fs::read(std::env::current_exe().unwrap()).unwrap();
        let weight = sections(&program).unwrap();
        assert!(weight.text > 0 && weight.constants > 0 && weight.tables > 0);
    }
}
