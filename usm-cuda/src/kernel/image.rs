//! The bounds of a binary image. The CUDA driver takes no length, so it would read past the end of
//! a truncated image.

use alloc::format;
use alloc::string::String;

const ELF: &[u8] = b"\x7FELF";
/// Magic number of a fat binary: several images behind a header with their length.
const FAT: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();
/// Sizes in bytes of a 64-bit ELF file's header and of the entries of its two tables.
const HEADER: usize = 64;
const SEGMENT: u64 = 56;
const SECTION: u64 = 64;
/// The type of a section without bytes in the file.
const NO_BITS: u64 = 8;

fn read_le<const N: usize>(image: &[u8], at: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    bytes[..N].copy_from_slice(image.get(at..at.checked_add(N)?)?);
    Some(u64::from_le_bytes(bytes))
}

/// Checks that everything the image's headers name lies inside it.
pub(super) fn check(image: &[u8]) -> Result<(), String> {
    let end = match () {
        () if image.starts_with(ELF) => elf_end(image),
        () if image.starts_with(&FAT) => fat_end(image),
        () => return Err("neither an ELF image nor a fat binary".into()),
    };
    match end {
        Some(end) if end <= image.len() as u64 => Ok(()),
        Some(end) => Err(format!("the image has {} bytes, its headers require {end}", image.len())),
        None => Err(format!("the image of {} bytes ends inside its headers", image.len())),
    }
}

/// The end of a fat binary, by its header.
fn fat_end(image: &[u8]) -> Option<u64> {
    read_le::<2>(image, 6)?.checked_add(read_le::<8>(image, 8)?)
}

/// The end of a 64-bit little-endian ELF file, by its header, tables and sections.
fn elf_end(image: &[u8]) -> Option<u64> {
    let sixty_four_bits_little_endian = image.get(4..6)? == [2, 1];
    if !sixty_four_bits_little_endian || image.len() < HEADER {
        return None;
    }
    let table = |start: usize, sizes: usize, entry: u64| -> Option<(u64, u64, u64)> {
        let (first, size, count) =
            (read_le::<8>(image, start)?, read_le::<2>(image, sizes)?, read_le::<2>(image, sizes + 2)?);
        (count == 0 || size >= entry).then_some((first, size, count))
    };
    let mut end = HEADER as u64;
    for (start, sizes, entry, is_section) in [(32, 54, SEGMENT, false), (40, 58, SECTION, true)] {
        let (first, size, count) = table(start, sizes, entry)?;
        end = end.max(first.checked_add(size.checked_mul(count)?)?);
        for index in 0..count {
            let place = usize::try_from(first.checked_add(index.checked_mul(size)?)?).ok()?;
            let (offset, bytes) = if is_section {
                let kind = read_le::<4>(image, place + 4)?;
                let bytes = read_le::<8>(image, place + 32)?;
                (read_le::<8>(image, place + 24)?, if kind == NO_BITS { 0 } else { bytes })
            } else {
                (read_le::<8>(image, place + 8)?, read_le::<8>(image, place + 32)?)
            };
            end = end.max(offset.checked_add(bytes)?);
        }
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn an_image_cut_short_is_refused_at_every_length() {
        let whole: Vec<u8> = std::fs::read(std::env::current_exe().expect("a path")).expect("this program");
        if !whole.starts_with(ELF) {
            return; // Not an ELF platform.
        }
        assert_eq!(check(&whole), Ok(()));
        for len in (0..HEADER + 1).chain([whole.len() / 2, whole.len() - 1]) {
            assert!(check(&whole[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn lengths_that_overflow_are_refused() {
        let mut fat = [0xFF; 32];
        fat[..4].copy_from_slice(&FAT);
        assert!(check(&fat).is_err());
        let mut elf = [0xFF; 128];
        elf[..6].copy_from_slice(b"\x7FELF\x02\x01");
        assert!(check(&elf).is_err());
        assert!(check(b"").is_err());
    }
}
