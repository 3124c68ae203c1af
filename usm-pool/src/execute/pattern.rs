//! The content of tensors: a byte for each position of a root, from a key.

use core::ops::Range;

/// The key of a root's content, for one stream.
pub(super) fn key(id: u64, salt: u64) -> u64 {
    mix(id.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD6E8_FEB8_6659_FD93))
}

/// Fills bytes with the content from a position on.
pub(super) fn fill(bytes: &mut [u8], key: u64, position: u64) {
    for (at, piece) in word_pieces(bytes.len(), position) {
        let word = mix(key ^ ((position + at.start as u64) / 8)).to_le_bytes();
        bytes[at].copy_from_slice(&word[piece]);
    }
}

/// Number of bytes outside of `but` that are not the content from a position on.
pub(super) fn differences(bytes: &[u8], key: u64, position: u64, but: &[Range<usize>]) -> usize {
    let is_exempt = |at: usize| but.iter().any(|range| range.contains(&at));
    let mut count = 0;
    for (at, piece) in word_pieces(bytes.len(), position) {
        let word = mix(key ^ ((position + at.start as u64) / 8)).to_le_bytes();
        if bytes[at.clone()] != word[piece.clone()] {
            let pairs = at.clone().zip(bytes[at].iter().zip(&word[piece]));
            count += pairs.filter(|(at, (actual, right))| actual != right && !is_exempt(*at)).count();
        }
    }
    count
}

/// Positions in the bytes with their positions in words of eight bytes.
fn word_pieces(length: usize, position: u64) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let into = (position % 8) as usize;
    let mut at = 0;
    core::iter::from_fn(move || {
        let begin = if at == 0 { into } else { 0 };
        let bytes = (8 - begin).min(length - at);
        let from = at;
        at += bytes;
        (bytes > 0).then_some((from..at, begin..begin + bytes))
    })
}

/// The finalizer of splitmix64.
pub(super) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
