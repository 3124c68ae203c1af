//! A full rectangle, divided by cuts from edge to edge.

extern crate alloc;
use alloc::vec::Vec;

/// Begin and end in time, lowest and highest byte.
type Piece = (u64, u64, u64, u64);

/// A square with this side in `count` pieces.
pub(crate) fn divided(side: u64, count: usize) -> Vec<Piece> {
    let mut state = 1_u64;
    let mut random = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 20) % limit
    };
    let mut pieces = Vec::from([(0, side, 0, side)]);
    while pieces.len() < count {
        let at = random(pieces.len() as u64) as usize;
        let (begin, end, low, high) = pieces[at];
        if end - begin < 2 || high - low < 2 {
            continue;
        }
        pieces.swap_remove(at);
        if random(2) == 0 {
            let cut = begin + 1 + random(end - begin - 1);
            pieces.extend([(begin, cut, low, high), (cut, end, low, high)]);
        } else {
            let cut = low + 1 + random(high - low - 1);
            pieces.extend([(begin, end, low, cut), (begin, end, cut, high)]);
        }
    }
    pieces
}
