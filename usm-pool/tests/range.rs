//! One plan for every value: correct for unforeseen sizes, refused otherwise.

#![cfg(feature = "alloc")]

use proptest::prelude::*;
use usm_pool::range::expression::parse;
use usm_pool::range::{Dimension, Item, RangeError, RangeTable, Term, Unordered, below, evaluate, prove};
use usm_pool::{Buffer, Options, Problem, plan, verify};

const WIDTH: Dimension = Dimension { low: 64, high: 2048, step: 32 };

fn problem(lives: &[(u64, u64)], sizes: impl Iterator<Item = u64>) -> Problem {
    let buffer = |((id, &(lower, length)), size): ((u64, &(u64, u64)), u64)| {
        Buffer::new(id, lower, lower + length, size).aligned(1 << (id % 7))
    };
    Problem::from_buffers((0..).zip(lives).zip(sizes).map(buffer).collect()).expect("a problem")
}

fn indices(pairs: &[(usize, usize)]) -> Vec<(u32, u32)> {
    pairs.iter().map(|&(low, high)| (low as u32, high as u32)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// The order of a plan for some sizes gives plans without an overlap for all others.
    #[test]
    fn the_order_of_one_plan_is_right_for_all_sizes(
        lives in prop::collection::vec((0_u64..60, 0_u64..20), 1..60),
        sizes in prop::collection::vec(0_u64..4096, 60),
        others in prop::collection::vec(prop::collection::vec(0_u64..4096, 60), 4),
        forgotten in any::<prop::sample::Index>(),
    ) {
        let mut options = Options::default();
        options.nodes = 256;
        let known = problem(&lives, sizes.iter().copied());
        let made = plan(&known, &options).expect("a plan");
        let pairs = prove(&known, &below(&known, &made.offsets).expect("an order")).expect("a proof");
        for sizes in core::iter::once(&sizes).chain(&others) {
            let now = problem(&lives, sizes.iter().copied());
            let terms: Vec<[Term; 1]> = sizes.iter().map(|&size| [Term::Number(size)]).collect();
            let items: Vec<Item<'_>> = now.buffers().iter().zip(&terms).zip(0..).map(|((buffer, size), root)| {
                Item { size, alignment: buffer.alignment, root, inside: &[] }
            }).collect();
            let order = indices(&pairs);
            let ranged = RangeTable { dimensions: &[], items: &items, plans: &[&order] };
            let (mut offsets, mut all) = (vec![7; items.len()], vec![7; items.len()]);
            let at = ranged.at(&[], &mut offsets, &mut all).expect("offsets");
            prop_assert_eq!(verify::intervals(now.buffers(), &offsets, u64::MAX), Ok(at.peak));
            prop_assert!(prove(&now, &pairs).is_ok());
            // An evaluation in a wrong order is refused, or correct by chance.
            let turned: Vec<_> = order.iter().rev().copied().collect();
            let turned = RangeTable { plans: &[&turned], ..ranged };
            match turned.at(&[], &mut offsets, &mut all) {
                Ok(at) => prop_assert_eq!(verify::intervals(now.buffers(), &offsets, u64::MAX), Ok(at.peak)),
                Err(error) => prop_assert_eq!(error, RangeError::Malformed),
            }
        }
        // No pair is redundant.
        if !pairs.is_empty() {
            let mut fewer = pairs.clone();
            let gone = fewer.remove(forgotten.index(pairs.len()));
            prop_assert!(matches!(prove(&known, &fewer), Err(Unordered::Pair(..))), "{gone:?}");
        }
    }

    #[test]
    fn no_text_and_no_terms_make_an_expression_panic(
        text in "([wh0-9+*/(), -]|min|max|//){0,40}",
        terms in prop::collection::vec(0_u8..9, 0..80),
        values in prop::collection::vec(any::<u64>(), 0..3),
    ) {
        let dimension = |name: &str| ["w", "h"].iter().position(|known| *known == name).map(|at| at as u32);
        if let Ok(terms) = parse(&text, &dimension) {
            let read = evaluate(&terms, &values);
            prop_assert!(values.len() < 2 || read != Err(usm_pool::range::Fault::Malformed), "{text}");
        }
        let term = |code: u8| match code {
            0 => Term::Add,
            1 => Term::Subtract,
            2 => Term::Multiply,
            3 => Term::Divide,
            4 => Term::Least,
            5 => Term::Greatest,
            6 => Term::Dimension(0),
            7 => Term::Dimension(1),
            _ => Term::Number(u64::MAX),
        };
        let terms: Vec<Term> = terms.into_iter().map(term).collect();
        let _ = evaluate(&terms, &values);
    }
}

/// `4 * w` bytes, and `w` bytes in its second quarter.
const FOURFOLD: [Term; 3] = [Term::Number(4), Term::Dimension(0), Term::Multiply];

fn items() -> [Item<'static>; 3] {
    [
        Item { size: &FOURFOLD, alignment: 64, root: 0, inside: &[] },
        Item { size: &[Term::Dimension(0)], alignment: 1, root: 0, inside: &[Term::Dimension(0)] },
        Item { size: &[Term::Number(100)], alignment: 16, root: 2, inside: &[] },
    ]
}

#[test]
fn the_plan_of_the_lowest_peak_counts() {
    let items = items();
    let plans: [&[(u32, u32)]; 2] = [&[(2, 0)], &[(0, 2)]];
    let ranged = RangeTable { dimensions: &[WIDTH], items: &items, plans: &plans };
    let (mut offsets, mut sizes) = ([0; 3], [0; 3]);
    // 100 bytes below need 128 before the next begins; above they need 100.
    let at = ranged.at(&[96], &mut offsets, &mut sizes).unwrap();
    assert_eq!((at.plan, at.peak, offsets, sizes), (1, 484, [0, 96, 384], [384, 96, 100]));
}

#[test]
fn faults_are_errors_with_numbers() {
    let plans: [&[(u32, u32)]; 1] = [&[(0, 2)]];
    let at = |items: &[Item<'_>], values: &[u64]| {
        let (mut offsets, mut sizes) = ([0; 3], [0; 3]);
        let ranged = RangeTable { dimensions: &[WIDTH], items, plans: &plans };
        ranged.at(values, &mut offsets, &mut sizes).expect_err("wrong").to_string()
    };
    assert_eq!(at(&items(), &[]), "0 values for 1 dimensions");
    assert_eq!(at(&items(), &[65]), "dimension 0: 65 is none of 64..2048:32");
    assert_eq!(at(&items(), &[2080]), "dimension 0: 2080 is none of 64..2048:32");
    let with = |at: usize, item: Item<'static>| {
        let mut items = items();
        items[at] = item;
        items
    };
    let [root, view, _] = items();
    let beyond = with(1, Item { size: &FOURFOLD, ..view });
    assert_eq!(at(&beyond, &[64]), "tensor 1: offset 64 + size 256 exceeds 256");
    let crooked = with(1, Item { alignment: 128, ..view });
    assert_eq!(at(&crooked, &[64]), "tensor 1: offset 64 is no multiple of its alignment 128");
    let unknown = with(1, Item { root: 9, ..view });
    assert!(at(&unknown, &[64]).contains("contradict"));
    let huge = with(0, Item { size: &[Term::Number(u64::MAX)], ..root });
    assert!(at(&huge, &[64]).contains("exceeds 18446744073709551615"), "{}", at(&huge, &[64]));
    let none = with(0, Item { size: &[Term::Dimension(0), Term::Number(65), Term::Subtract], ..root });
    assert_eq!(at(&none, &[64]), "tensor 0: 64 - 65 is below 0");
    let odd = with(2, Item { alignment: 3, ..root });
    assert!(at(&odd, &[64]).contains("alignment"));
    let items = items();
    let ranged = RangeTable { dimensions: &[WIDTH], items: &items, plans: &[&[(0, 3)]] };
    assert_eq!(ranged.at(&[64], &mut [0; 3], &mut [0; 3]), Err(RangeError::Malformed));
    assert_eq!(ranged.at(&[64], &mut [0; 2], &mut [0; 3]), Err(RangeError::Room { given: 2, items: 3 }));
    let none = RangeTable { plans: &[], ..ranged };
    assert_eq!(none.at(&[64], &mut [0; 3], &mut [0; 3]), Err(RangeError::Malformed));
}

#[test]
fn an_order_with_a_circle_or_a_hole_is_no_proof() {
    let three = problem(&[(0, 3), (1, 3), (2, 3)], [1, 2, 3].into_iter());
    assert_eq!(prove(&three, &[(0, 1), (1, 2)]), Ok(vec![(0, 1), (1, 2)]));
    assert_eq!(prove(&three, &[(0, 1)]), Err(Unordered::Pair(0, 2)));
    assert_eq!(prove(&three, &[(0, 1), (1, 2), (2, 0)]), Err(Unordered::Circle(0, 1)));
    assert_eq!(prove(&three, &[(0, 3)]), Err(Unordered::Circle(0, 3)));
    assert_eq!(prove(&three, &[(1, 1)]), Err(Unordered::Circle(1, 1)));
}
