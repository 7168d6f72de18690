//! The files of a FAT partition: listed, summed up, copied. The file system is `hadris-fat`.

use core::fmt;
use core::ops::ControlFlow;

use hadris_fat::embedded::sync::Fat;
use hadris_fat::embedded::{Dir, MountToken, Node};
use hadris_fs::{DirCursor, OpenOptions};
use heapless::{String, Vec};
use rootport::block::BlockError;

use super::checksum::Checksum;
use super::disk::Disk;
use super::partitions::Partition;
use super::sectors::Sectors;
use crate::power::Reason;
use crate::println;

/// Policy: directories inside directories that are followed.
const DEPTH: usize = 16;
/// Policy: bytes of a path; entries with longer ones are named, not followed.
const PATH_BYTES: usize = 512;
/// The file that the demo writes, in the root directory.
const COPY: &str = "COPY.BIN";
/// Bytes of the largest file that are copied (`docs/demo-protocol.md`).
const COPY_BYTES: u64 = 1_048_699;

type Path = String<PATH_BYTES>;
type Error = hadris_io::Error<BlockError>;

/// What is to be done with the files.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The disk's number in the markers.
    pub disk: usize,
    /// Bytes of the largest file that are summed up at most.
    pub limit: u64,
    /// Whether the copy is written.
    pub copy: bool,
}

/// The largest file so far.
struct Largest<'m> {
    node: Node<'m>,
    bytes: u64,
    path: Path,
}

/// Whether the partition holds a FAT that can be used.
///
/// # Errors
///
/// Why not.
pub fn probe(disk: &mut Disk<'_>, partition: &Partition, window: &mut [u8]) -> Result<(), Reason> {
    let mut token = MountToken::new();
    let sectors = Sectors::new(disk, partition, window, false);
    mount(sectors, &mut token).map(drop)
}

/// Lists the files of a partition with a FAT, sums up the largest, and copies it where the task
/// says so.
///
/// # Errors
///
/// The first thing that failed, of the file system or of the disk.
pub fn run(
    disk: &mut Disk<'_>,
    partition: &Partition,
    task: Task,
    window: &mut [u8],
    buffer: &mut [u8],
) -> Result<(), Reason> {
    let mut token = MountToken::new();
    let fat = mount(Sectors::new(disk, partition, window, task.copy), &mut token)?;
    Volume {
        fat,
        task,
        partition: partition.number,
    }
    .go(buffer)
}

/// Mounts; for reading only where the sectors take no writes.
fn mount<'m, 'd, 'b>(
    sectors: Sectors<'d, 'b>,
    token: &'m mut MountToken,
) -> Result<Fat<'m, Sectors<'d, 'b>, 2>, Reason> {
    Fat::mount(sectors, token)
        .map_err(|error| Reason::new(format_args!("no FAT: {}", error.error())))
}

struct Volume<'m, 'd, 'b> {
    fat: Fat<'m, Sectors<'d, 'b>, 2>,
    task: Task,
    partition: u32,
}

impl<'m> Volume<'m, '_, '_> {
    fn go(&mut self, buffer: &mut [u8]) -> Result<(), Reason> {
        let geometry = self.fat.info();
        println!(
            "{:?}, clusters of {} bytes",
            geometry.kind(),
            geometry.cluster_size()
        );
        let Some(largest) = self.list().map_err(|error| told("listing", error))? else {
            println!("  no files");
            return Ok(());
        };
        self.sum(&largest, buffer)
            .map_err(|error| told("reading", error))?;
        if self.task.copy {
            self.copy(&largest, buffer)
                .map_err(|error| told("copying", error))?;
        }
        Ok(())
    }

    /// Lists everything, depth first, and finds the largest file.
    fn list(&mut self) -> Result<Option<Largest<'m>>, Error> {
        let mut largest: Option<Largest<'m>> = None;
        let mut path = Path::new();
        let mut stack: Vec<(Dir, DirCursor, usize), DEPTH> = Vec::new();
        let _ = stack.push((self.fat.root(), DirCursor::START, 0));
        while let Some((directory, cursor, length)) = stack.pop() {
            path.truncate(length);
            let Some(found) = self.next(directory, cursor, &mut path)? else {
                continue;
            };
            // There is room: one was just taken.
            let _ = stack.push((directory, found.next, length));
            if !found.named {
                println!("  a path longer than {PATH_BYTES} bytes below {path}");
            } else if found.is_directory {
                self.mark_directory(&path);
                let name = &path[length + 1..];
                let inner = self.fat.open_dir(directory, name)?;
                if stack.push((inner, DirCursor::START, path.len())).is_err() {
                    println!("  {path}: deeper than {DEPTH} directories, not followed");
                }
            } else {
                self.mark_file(&path, found.bytes);
                if largest.as_ref().is_none_or(|file| file.bytes < found.bytes) {
                    largest = Some(Largest {
                        node: found.node,
                        bytes: found.bytes,
                        path: path.clone(),
                    });
                }
            }
        }
        Ok(largest)
    }

    /// The next entry of a directory; its name is appended to `path`.
    fn next(
        &mut self,
        directory: Dir,
        cursor: DirCursor,
        path: &mut Path,
    ) -> Result<Option<Found<'m>>, Error> {
        let mut found = None;
        self.fat.list(directory, cursor, |entry| {
            let length = path.len();
            let named = append(path, entry.chars());
            if !named {
                path.truncate(length);
            }
            found = Some(Found {
                node: entry.node(),
                next: entry.next_cursor(),
                bytes: entry.len(),
                is_directory: entry.is_dir(),
                named,
            });
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Reads the file through, up to the task's limit.
    fn sum(&mut self, file: &Largest<'m>, buffer: &mut [u8]) -> Result<(), Error> {
        let handle = self.fat.open_node(file.node, OpenOptions::new().read())?;
        let mut sum = Checksum::default();
        let mut bytes = 0;
        let most = file.bytes.min(self.task.limit);
        while bytes < most {
            let length = (most - bytes).min(buffer.len() as u64) as usize;
            let count = self.fat.read(&handle, &mut buffer[..length])?;
            if count == 0 {
                break;
            }
            sum.update(&buffer[..count]);
            bytes += count as u64;
        }
        self.fat.close(handle)?;
        let (disk, partition, path) = (self.task.disk, self.partition, &file.path);
        println!("  checksum of the first {bytes} bytes of {path}");
        println!(
            "@sum disk={disk} partition={partition} bytes={bytes} crc32={:08x} path={path}",
            sum.value()
        );
        Ok(())
    }

    /// Copies the beginning of the file to a new one.
    fn copy(&mut self, file: &Largest<'m>, buffer: &mut [u8]) -> Result<(), Error> {
        let from = self.fat.open_node(file.node, OpenOptions::new().read())?;
        let to = self.fat.open(
            self.fat.root(),
            COPY,
            OpenOptions::new().write().create_new(),
        )?;
        let mut sum = Checksum::default();
        let mut bytes = 0;
        let most = file.bytes.min(COPY_BYTES);
        while bytes < most {
            let length = (most - bytes).min(buffer.len() as u64) as usize;
            let count = self.fat.read(&from, &mut buffer[..length])?;
            let written = self.fat.write(&to, &buffer[..count])?;
            if written == 0 {
                break;
            }
            sum.update(&buffer[..written]);
            bytes += written as u64;
        }
        self.fat.close(from)?;
        self.fat.close(to)?;
        self.fat.sync()?;
        let (disk, partition) = (self.task.disk, self.partition);
        println!(
            "  copied the first {bytes} bytes of {} to /{COPY}",
            file.path
        );
        println!(
            "@wrote disk={disk} partition={partition} bytes={bytes} crc32={:08x} path=/{COPY}",
            sum.value()
        );
        Ok(())
    }

    fn mark_directory(&self, path: &Path) {
        println!("  {:>10}  {path}/", "");
        println!(
            "@directory disk={} partition={} path={path}",
            self.task.disk, self.partition
        );
    }

    fn mark_file(&self, path: &Path, bytes: u64) {
        println!("  {bytes:>10}  {path}");
        println!(
            "@file disk={} partition={} bytes={bytes} path={path}",
            self.task.disk, self.partition
        );
    }
}

/// A directory entry.
struct Found<'m> {
    node: Node<'m>,
    next: DirCursor,
    bytes: u64,
    is_directory: bool,
    /// Its name fitted the path.
    named: bool,
}

/// Appends `/` and a name; false where it does not fit.
fn append(path: &mut Path, mut name: impl Iterator<Item = char>) -> bool {
    path.push('/').is_ok() && name.all(|character| path.push(character).is_ok())
}

fn told(what: &str, error: impl fmt::Display) -> Reason {
    Reason::new(format_args!("files: {what}: {error}"))
}
