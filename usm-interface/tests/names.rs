//! Names in structures of any size: a repeated name is refused at its first repetition.

use std::collections::HashSet;

use proptest::prelude::*;
use usm_interface::text::Lexer;
use usm_interface::{Field, Limits, Mode, Policy, descr, dict, members, pep3118};

/// A member of a generated structure.
#[derive(Clone, Debug)]
struct Member {
    name: u32,
    title: Option<u32>,
    /// Spelled with an escape, which has no effect.
    escaped: bool,
    /// Members inside, all different.
    nested: u32,
}

impl Member {
    fn write(&self, padding: bool, text: &mut String) {
        let name = |n: u32, escaped: bool| format!("'{}{n}'", if escaped { "\\x6e" } else { "n" });
        if padding {
            return *text += "('', '|V3'), ";
        }
        let first = match self.title {
            Some(title) => format!("({}, {})", name(title, false), name(self.name, self.escaped)),
            None => name(self.name, self.escaped),
        };
        let inner: String = (0..self.nested).map(|n| format!("('n{n}', '<i2'), ")).collect();
        let kind = if self.nested > 0 { format!("[{inner}]") } else { "'<i4'".to_owned() };
        *text += &format!("({first}, {kind}), ");
    }

    fn size(&self, padding: bool) -> u32 {
        if padding {
            3
        } else if self.nested > 0 {
            2 * self.nested
        } else {
            4
        }
    }
}

fn member(names: u32) -> impl Strategy<Value = Member> {
    let title = prop_oneof![3 => Just(None), 1 => (0..names).prop_map(Some)];
    let nested = prop_oneof![8 => Just(0), 1 => 1..4_u32, 1 => Just(70_u32)];
    (0..names, title, any::<bool>(), nested).prop_map(|(name, title, escaped, nested)| Member {
        name,
        title,
        escaped,
        nested,
    })
}

/// The place of the first repetition, found with a set.
fn first_repeated(all: &[(bool, Member)]) -> Option<String> {
    let mut known = HashSet::new();
    for (item, (_, member)) in all.iter().enumerate().filter(|(_, (padding, _))| !padding) {
        if !known.insert(member.name) {
            return Some(format!("descr[{item}].name"));
        }
        if member.title.is_some_and(|title| !known.insert(title)) {
            let part = if member.title == Some(member.name) { "title" } else { "name" };
            return Some(format!("descr[{item}].{part}"));
        }
    }
    None
}

fn read<'t, 'f>(text: &'t str, table: &'f mut [Field<'t>]) -> Result<&'f [Field<'t>], String> {
    let fields = descr::parse(Lexer::new(text), false, &Policy::default(), table);
    fields
        .map(|structure| structure.fields())
        .map_err(|error| format!("{} {}", error.path(), error.kind().name()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_first_repetition_is_refused_whatever_comes_behind_it(
        all in prop_oneof![1000..5000_u32, 100_000..100_001_u32]
            .prop_flat_map(|names| prop::collection::vec((prop::bool::weighted(0.1), member(names)), 1..200)),
        broken in any::<bool>(),
        titles in any::<bool>(),
    ) {
        let mut all = all;
        if !titles {
            all.iter_mut().for_each(|(_, member)| member.title = None);
        }
        let mut text = "[".to_owned();
        all.iter().for_each(|(padding, member)| member.write(*padding, &mut text));
        text += if broken { "('other', '<q9')]" } else { "]" };
        let mut table = vec![Field::EMPTY; 20_000];
        let found = read(&text, &mut table);
        match (first_repeated(&all), broken) {
            (Some(place), _) => prop_assert_eq!(found.err(), Some(format!("{place} duplicate_name"))),
            (None, true) => prop_assert_eq!(found.err().map(|error| error.contains("duplicate")), Some(false)),
            (None, false) => {
                let fields = found.expect("all different");
                let mut end = 0;
                let mut seen = 0;
                for ((field, own), (padding, member)) in members(fields).zip(&all) {
                    prop_assert_eq!((field.offset(), field.size()), (end, member.size(*padding)));
                    for (n, (inner, _)) in (0..).zip(members(own)) {
                        prop_assert_eq!((inner.offset(), inner.size()), (2 * n, 2));
                    }
                    end += field.size();
                    seen += 1;
                }
                prop_assert_eq!(seen, all.len());
            }
        }
    }

    #[test]
    fn formats_refuse_duplicate_names(
        names in prop_oneof![50..300_u32, 100_000..100_001_u32]
            .prop_flat_map(|names| prop::collection::vec((0..names, any::<bool>()), 1..200)),
    ) {
        let items: String = names.iter().map(|(n, wide)| format!("{}:n{n}:", if *wide { "d" } else { "b" })).collect();
        let format = format!("T{{<{items}}}");
        let mut table = vec![Field::EMPTY; 1000];
        let mut known = HashSet::new();
        let different = names.iter().all(|(name, _)| known.insert(name));
        // `b` and `d` after `<`: no padding.
        let size = names.iter().map(|(_, wide)| if *wide { 8 } else { 1 }).sum();
        let parsed = pep3118::parse(&format, size, pep3118::Padding::AsWritten, &mut table);
        match parsed {
            Ok(_) => prop_assert!(different),
            Err(error) => prop_assert!(!different && error.kind().name() == "duplicate_name", "{error}"),
        }
    }
}

#[test]
fn unnamed_members_are_numbered_as_numpy_does_even_if_taken() {
    let numbered = |last: &str| {
        let items: String = (0..200).map(|_| "('', '<i4'), ").collect();
        format!("[{items}('{last}', '<i4')]")
    };
    let policy = Policy { mode: Mode::Numpy, ..Policy::default() };
    let (good, mut table) = (numbered("f200"), vec![Field::EMPTY; 300]);
    assert!(descr::parse(Lexer::new(&good), false, &policy, &mut table).is_ok());
    let text = numbered("f7");
    let error = descr::parse(Lexer::new(&text), false, &policy, &mut table).unwrap_err();
    assert_eq!(
        (error.path().to_string().as_str(), error.kind().name()),
        ("descr[200].name", "duplicate_name")
    );
}

/// Names with a common prefix and different lengths, ascending, descending and shuffled: each takes
/// little time.
#[test]
fn fifty_thousand_names_are_looked_at_in_any_order() {
    let mut text = String::new();
    let count = 50_000_u64;
    let limits = Limits { values: 1 << 20, ..Limits::default() };
    let policy = Policy { limits, ..Policy::default() };
    for order in 0..3 {
        let number = |n: u64| match order {
            0 => n,
            1 => count - n,
            _ => n * 7919 % count,
        };
        let items: String = (0..count).map(|n| format!("('name{}', '<i4'), ", number(n))).collect();
        for (last, good) in [("other", true), ("name7", false)] {
            text.clear();
            text += &format!(
                "{{'shape': (1,), 'typestr': '|V{}', 'data': (4096, False), 'version': 3, 'descr': [{items}('{last}', '<i4')]}}",
                4 * (count + 1)
            );
            let mut table = vec![Field::EMPTY; 60_000];
            let parsed = dict::parse::<1>(&text, None, &policy, &mut table);
            assert_eq!(parsed.is_ok(), good, "order {order}: {:?}", parsed.err());
        }
    }
}
