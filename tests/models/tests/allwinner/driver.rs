//! The EHCI driver on a modelled controller that stands behind the modelled board.

use rootport::Host;
use rootport::block::{BlockDevice, Lba};
use rootport::host::Controller;
use rootport::host::ehci::{Ehci, EhciMemory, Options};
use rootport::soc::allwinner::{H3, cut_dma};
use rootport::stack::{Parting, Tables};
use rootport::time::Duration;
use rootport_models::adapter::{ModelBus, ModelPlatform};
use rootport_models::board::allwinner::{Before, Board, Power};
use rootport_models::board_adapter::{BoardBus, BoardPlatform, Gated};
use rootport_models::controller::ehci::{Faults, Traits};
use rootport_models::device::{Link, Script, scsi::LogicalUnit};
use rootport_models::machine::Machine;

use super::rig::{CHIP_H3, blocks, broken_by, up, wired};

const PORT: u8 = 1;

/// A machine with an EHCI and a disk, and the EHCI's registers behind a board.
fn behind(board: &Board) -> (ModelPlatform, Gated<ModelBus>) {
    with_faults(board, Faults::none())
}

/// The same with an EHCI that goes wrong.
fn with_faults(board: &Board, faults: Faults) -> (ModelPlatform, Gated<ModelBus>) {
    let machine = Machine::default();
    let controller = machine.add_faulty_ehci(Traits::default(), faults);
    let unit = LogicalUnit::disk(65536, 512).content(b"through the gates");
    let disk = Script::new().speed(Link::High).unit(unit).build();
    machine.plug(controller, 0, disk);
    let platform = ModelPlatform::new(&machine);
    let gate = BoardBus::new(board, H3.port(PORT).unwrap().ehci, 0x400);
    let registers = Gated::new(gate, platform.bus(controller));
    (platform, registers)
}

#[test]
fn a_disk_behind_a_board_that_is_up_is_found_and_read() {
    for before in [Before::Nothing, Before::UsbStart(&[1])] {
        let board = Board::new(before, Power::Wired);
        up(CHIP_H3, &board, &[wired(PORT)]);
        let (platform, registers) = behind(&board);
        let region = platform.coherent_region(1 << 20);
        let mut tables = Tables::<_, 1, 8, 8, 8>::new();
        let mut memory = EhciMemory::<8, 24, 64>::new();
        let mut host = Host::new(platform, region, tables.storage());
        let driver = Ehci::new(registers, 0, memory.slices(), Options::default()).unwrap();
        host.add_controller(Controller::Ehci(driver)).unwrap();
        host.start();
        let found = host.poll_until(Duration::from_secs(10), |host| host.first_disk().is_ok());
        assert!(found, "after {before:?}");
        let id = host.first_disk().unwrap();
        let machine = host.platform().machine().clone();
        let mut block = machine.buffer(512, 0);
        host.disk(id).read(Lba(0), &mut block).unwrap();
        assert!(block.starts_with(b"through the gates"));
        assert!(host.stop(Duration::from_secs(5)));
    }
}

#[test]
fn the_driver_cannot_even_look_at_a_controller_whose_board_is_not_up() {
    let board = Board::new(Before::Nothing, Power::Wired);
    let (_platform, registers) = behind(&board);
    let mut memory = EhciMemory::<8, 24, 64>::new();
    let named = broken_by(|| {
        let driver = Ehci::new(registers, 0, memory.slices(), Options::default());
        assert!(driver.is_err(), "it must not come so far");
    });
    assert_eq!(named, "bus gates");
}

/// The board fails the run at any touch of a controller that it holds in reset.
#[test]
fn a_controller_that_does_not_halt_is_put_into_reset_and_not_touched_after_that() {
    let board = Board::new(Before::Nothing, Power::Wired);
    up(CHIP_H3, &board, &[wired(PORT)]);
    let faults = Faults {
        never_halts: true,
        ..Faults::none()
    };
    let (platform, registers) = with_faults(&board, faults);
    let region = platform.coherent_region(1 << 20);
    let registers_of_board = blocks(CHIP_H3, &board);
    let platform = BoardPlatform::new(platform, move |_| cut_dma(&H3, PORT, &registers_of_board));
    let mut tables = Tables::<_, 1, 8, 8, 8>::new();
    let mut memory = EhciMemory::<8, 24, 64>::new();
    let mut host = Host::new(platform, region, tables.storage());
    let driver = Ehci::new(registers, 0, memory.slices(), Options::default()).unwrap();
    host.add_controller(Controller::Ehci(driver)).unwrap();
    host.start();
    assert!(host.poll_until(Duration::from_secs(10), |host| host.first_disk().is_ok()));
    let leave = Duration::from_secs(2);
    assert!(host.shutdown(Parting::Flush, leave).quiet);
    assert!(!board.reaches_memory(PORT.into()));
    // Neither a second time, nor when it is to start again.
    assert!(host.shutdown(Parting::Flush, leave).quiet);
    host.start();
    host.poll_until(Duration::from_secs(5), |_| false);
    assert!(host.first_disk().is_err());
}
