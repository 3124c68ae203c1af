//! Types as text: the same in every run.

/// A small generator of choices, equal in every run.
pub(crate) struct Choices(u64);

impl Choices {
    /// The fixed seed.
    pub(crate) const fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// A type string, often valid.
pub(crate) fn type_string(choices: &mut Choices) -> String {
    let order = choices.of(&["<", "<", ">", ">", "|", "=", ""]);
    let kind = choices.of(&["b", "i", "u", "f", "c", "m", "M", "O", "S", "U", "V", "i", "f", "x", "q"]);
    let sign = choices.of(&["", "", "", "", "", "", "+", " ", "-", "0"]);
    let size = choices.of(&[
        "0",
        "1",
        "2",
        "4",
        "8",
        "8",
        "16",
        "32",
        "3",
        "7",
        "12",
        "24",
        "100",
        "2147483647",
        "2147483648",
        "99999999999999999999",
        "",
    ]);
    let unit = if matches!(kind, "m" | "M") {
        let count = choices.of(&["", "", "1", "25", "0", "-1", "2147483647", "2147483648"]);
        let unit = choices
            .of(&["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic", "x", ""]);
        if choices.below(4) == 0 { String::new() } else { format!("[{count}{unit}]") }
    } else {
        choices.of(&["", "", "", "", "", "", "", "", "", " ", "[s]"]).to_owned()
    };
    format!("{order}{kind}{sign}{size}{unit}")
}

fn good_type(choices: &mut Choices) -> &'static str {
    choices.of(&[
        "|u1", "<f4", ">i8", "|b1", "<c16", "|V3", "<M8[us]", ">m8[25s]", "|S7", "<U3", "<f2", ">u2", "|O",
        "<f16", "|V0", "|S0",
    ])
}

/// A `descr`, mostly valid.
pub(crate) fn structure(choices: &mut Choices, depth: usize) -> String {
    let count = choices.below(5);
    let items: Vec<String> = (0..count)
        .map(|index| {
            let name = match choices.below(12) {
                0 => "''".to_owned(),
                1 => format!("('title {index}', 'n{index}')"),
                2 => format!("'\\u00e9\\n{index}'"),
                3 => "'same'".to_owned(),
                _ => format!("'m{index}'"),
            };
            let mut kind = if depth < 3 && choices.below(5) == 0 {
                structure(choices, depth + 1)
            } else {
                format!("'{}'", good_type(choices))
            };
            if choices.below(8) == 0 {
                kind = format!("({kind}, ({}, 2))", choices.below(4));
            }
            match choices.below(6) {
                0 => format!("({name}, {kind}, {})", choices.below(4)),
                1 => format!("({name}, {kind}, ({},))", choices.below(4)),
                2 => format!("({name}, {kind}, ())"),
                _ => format!("({name}, {kind})"),
            }
        })
        .collect();
    format!("[{}]", items.join(", "))
}
