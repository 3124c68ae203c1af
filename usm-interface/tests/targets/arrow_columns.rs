//! Arrow columns with any fields, against a second, slower reading of the same rules.

use usm_interface::arrow::{Column, Format, RawLevel, format_of, validate};
use usm_interface::dlpack::Device;

use super::{N, Numbers};

const FORMATS: [&str; 20] = [
    "+w:3",
    "+w:0",
    "+w:1",
    "+w:9223372036854775807",
    "f",
    "g",
    "c",
    "S",
    "l",
    "tsn:UTC",
    "tDs",
    "w:12",
    "w:0",
    "tdm",
    "b",
    "u",
    "+s",
    "d:3,2",
    "w:-1",
    "ts?:",
];

/// Levels with any fields, mostly plausible ones.
pub fn arrow(data: &[u8]) {
    if let Ok(text) = core::str::from_utf8(data) {
        check_format(text);
    }
    let mut numbers = Numbers(data);
    let count = usize::from(numbers.byte() % 11);
    let levels: Vec<RawLevel<'_>> = (0..count)
        .map(|_| {
            let format = FORMATS[usize::from(numbers.byte()) % FORMATS.len()];
            let choice = numbers.byte();
            let is_list = format.starts_with("+w");
            RawLevel {
                length: numbers.int(),
                null_count: if choice & 1 == 1 { numbers.int() } else { 0 },
                offset: if choice & 2 == 2 { numbers.int() } else { 0 },
                buffers: if choice & 4 == 4 { numbers.int() } else { if is_list { 1 } else { 2 } },
                children: if choice & 8 == 8 { numbers.int() } else { i64::from(is_list) },
                has_validity: choice & 16 == 16,
                data: if choice & 32 == 32 { numbers.int() as u64 } else { 4096 },
                has_dictionary: choice >= 0xc0,
                ..RawLevel::new(format)
            }
        })
        .collect();
    let Ok(column) = validate::<N>(&levels, Device::CPU) else { return };
    check_column(&levels, &column);
}

fn check_format(text: &str) {
    let Ok(Format::Values(dtype)) = Format::parse(text) else { return };
    let Some(spelled) = format_of(dtype) else { return };
    let spelled = spelled.to_string();
    assert_eq!(Format::parse(&spelled), Ok(Format::Values(dtype)), "{text} is spelled {spelled}");
    assert!(
        spelled == text || text.starts_with("ts") || text == "tdm" || text.contains(":0"),
        "{text}: {spelled}"
    );
}

/// Every element lies in the values' buffer, as far as the levels' own lengths reach.
fn check_column(levels: &[RawLevel<'_>], column: &Column<N>) {
    let used = &levels[..column.shape().len()];
    let (mut first, mut last) = (0_i128, i128::from(levels[0].length));
    let mut widths = Vec::new();
    for level in used {
        assert!(level.length >= 0 && level.offset >= 0 && !level.has_dictionary);
        assert!(level.null_count <= 0 && (!level.has_validity || level.null_count == 0));
        assert!(last <= i128::from(level.length), "entries beyond the level");
        first += i128::from(level.offset);
        last += i128::from(level.offset);
        if let Ok(Format::Lists(width)) = Format::parse(level.format) {
            (first, last) = (first * i128::from(width), last * i128::from(width));
            widths.push(width);
        }
    }
    assert_eq!((column.shape()[0], &column.shape()[1..]), (levels[0].length, &widths[..]));
    let values = used[used.len() - 1];
    let itemsize = i128::from(column.dtype().itemsize());
    assert_eq!(i128::from(column.nbytes()), (last - first) * itemsize);
    if column.nbytes() > 0 {
        assert_ne!(values.data, 0);
        assert_eq!(i128::from(column.address()), i128::from(values.data) + first * itemsize);
        assert!(i128::from(values.data) + last * itemsize <= i128::from(u64::MAX));
    }
}
