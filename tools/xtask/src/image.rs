//! A board's image: its crate, built for its target, in the form in which a boot loader takes it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};

use crate::board::{Board, ImageKind};
use crate::disk::card;
use crate::toolchain::{self, Core};
use crate::{command, workspace};

/// Policy: a linker script that goes wrong leaves gaps of gigabytes; no image of ours is larger.
const LARGEST_IMAGE: u64 = 64 << 20;

/// The magic number of an arm64 Image and its offset (Linux, `Documentation/arm64/booting.rst`).
const ARM64_MAGIC: (usize, &[u8]) = (56, b"ARM\x64");

/// A way to build a board's image.
#[derive(Clone, Copy, Debug)]
pub struct Flavour {
    /// What is added to the image's name.
    pub name: &'static str,
    /// The cargo profile.
    pub profile: &'static str,
    /// Features of the board's package.
    pub features: &'static [&'static str],
}

/// As boards are built.
const PLAIN: Flavour = Flavour {
    name: "",
    profile: "board",
    features: &[],
};

/// Builds the board's image and gives back its path.
///
/// # Errors
///
/// When the tool chain can't be had, the crate does not build, or what comes out is no image.
pub fn build(board: &Board) -> Result<PathBuf> {
    build_flavour(board, &PLAIN)
}

/// The same, in another way.
///
/// # Errors
///
/// As [`build`].
pub fn build_flavour(board: &Board, flavour: &Flavour) -> Result<PathBuf> {
    let core = toolchain::bare_metal_core(&[&board.target])?;
    let build = Build {
        package: &board.package,
        target: &board.target,
        profile: flavour.profile,
        features: flavour.features,
    };
    let program = build_program(&build, core)?;
    let bytes = fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    let Flat { start, image } =
        flatten(&bytes).with_context(|| format!("{}", program.display()))?;
    let images = workspace::output("images")?;
    match board.image {
        ImageKind::Arm64 => {
            expect_arm64_header(&image)?;
            let path = images.join(format!("{}{}.bin", board.name, flavour.name));
            write_if_changed(&path, &image)?;
            Ok(path)
        }
        ImageKind::SunxiCard => {
            let path = images.join(format!("{}{}.img", board.name, flavour.name));
            let u_boot = board.u_boot.as_ref();
            let u_boot = u_boot.with_context(|| format!("{}: no u-boot", board.name))?;
            card::make(&path, u_boot, &image, start)?;
            Ok(path)
        }
    }
}

/// A bare-metal program to be built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Build<'b> {
    /// The cargo package; its binary has the same name.
    pub(crate) package: &'b str,
    /// The target triple.
    pub(crate) target: &'b str,
    /// The cargo profile.
    pub(crate) profile: &'b str,
    /// The package's features.
    pub(crate) features: &'b [&'b str],
}

/// Builds a program and gives back the path of its ELF or EFI file.
pub(crate) fn build_program(build: &Build<'_>, core: Core) -> Result<PathBuf> {
    let mut cargo = core.cargo("build");
    cargo.args([
        "--package",
        build.package,
        "--target",
        build.target,
        "--profile",
        build.profile,
    ]);
    for feature in build.features {
        cargo.args(["--features", feature]);
    }
    command::loud(&mut cargo)?;
    let directory = workspace::bare_metal_target()
        .join(build.target)
        .join(build.profile);
    // EFI programs have an ending.
    let ending = match build.target.ends_with("-uefi") {
        true => ".efi",
        false => "",
    };
    Ok(directory.join(format!("{}{ending}", build.package)))
}

/// Where [`build`] leaves the ELF file that the image is made of: QEMU and debuggers take it.
pub fn program(board: &Board) -> PathBuf {
    let directory = workspace::bare_metal_target()
        .join(&board.target)
        .join("board");
    directory.join(&board.package)
}

/// What an ELF file puts into memory.
struct Flat {
    /// The lowest physical address.
    start: u64,
    /// The bytes from there on, gaps zero.
    image: Vec<u8>,
}

/// The bytes that an ELF file puts into memory, from its lowest physical address on, gaps zero.
fn flatten(file: &[u8]) -> Result<Flat> {
    match file.get(4) {
        Some(&elf::ELFCLASS64) => flatten_class::<elf::FileHeader64<Endianness>>(file),
        Some(&elf::ELFCLASS32) => flatten_class::<elf::FileHeader32<Endianness>>(file),
        _ => bail!("not an ELF file"),
    }
}

fn flatten_class<Elf: FileHeader<Endian = Endianness>>(file: &[u8]) -> Result<Flat> {
    let header = Elf::parse(file)?;
    let endian = header.endian()?;
    let mut pieces = Vec::new();
    for segment in header.program_headers(endian, file)? {
        if segment.p_type(endian) != elf::PT_LOAD {
            continue;
        }
        let address: u64 = segment.p_paddr(endian).into();
        let data = segment
            .data(endian, file)
            .ok()
            .context("a segment lies outside the file")?;
        if !data.is_empty() {
            pieces.push((address, data));
        }
    }
    lay_out(&pieces)
}

fn lay_out(pieces: &[(u64, &[u8])]) -> Result<Flat> {
    let start = pieces
        .iter()
        .map(|&(address, _)| address)
        .min()
        .context("nothing to load")?;
    let end = pieces
        .iter()
        .map(|&(address, data)| address.saturating_add(data.len() as u64))
        .max();
    let length = end.unwrap_or(start) - start;
    if length > LARGEST_IMAGE {
        bail!("its segments lie {length} bytes apart; look at the linker script");
    }
    let mut image = vec![0; usize::try_from(length)?];
    for &(address, data) in pieces {
        let offset = usize::try_from(address - start)?;
        image[offset..offset + data.len()].copy_from_slice(data);
    }
    Ok(Flat { start, image })
}

fn expect_arm64_header(image: &[u8]) -> Result<()> {
    let (offset, magic) = ARM64_MAGIC;
    if image.get(offset..offset + magic.len()) != Some(magic) {
        bail!("the image does not start with an arm64 Image header; look at the linker script");
    }
    Ok(())
}

/// Leaves the file alone where nothing changed: a running QEMU may be reading it.
fn write_if_changed(path: &Path, image: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == image) {
        return Ok(());
    }
    fs::write(path, image).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_laid_by_physical_address_with_zeros_between() {
        let flat = lay_out(&[(0x1004, &[3, 4]), (0x1000, &[1, 2])]).unwrap();
        assert_eq!(flat.image, [1, 2, 0, 0, 3, 4]);
        assert_eq!(flat.start, 0x1000);
    }

    #[test]
    fn segments_far_apart_are_refused() {
        let error = lay_out(&[(0, &[1]), (1 << 40, &[2])]).err().unwrap();
        assert!(error.to_string().contains("linker script"));
    }

    #[test]
    fn a_file_that_is_no_elf_is_refused() {
        let error = flatten(b"MZ..").err().unwrap();
        assert_eq!(error.to_string(), "not an ELF file");
    }

    #[test]
    fn this_very_test_program_can_be_flattened() {
        let program = fs::read(std::env::current_exe().unwrap()).unwrap();
        let flat = flatten(&program).unwrap();
        assert_eq!(&flat.image[1..4], b"ELF");
    }

    #[test]
    fn an_image_without_the_arm64_header_is_refused() {
        let mut image = vec![0; 64];
        assert!(expect_arm64_header(&image).is_err());
        image[56..60].copy_from_slice(b"ARM\x64");
        expect_arm64_header(&image).unwrap();
    }
}
