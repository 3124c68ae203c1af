//! Type strings and `descr`s against NumPy: sizes, offsets, alignments, names and titles are the same, or the difference is one that is meant.
//!
//! `USM_PYTHON` names a Python with NumPy; `USM_NUMPY_CASES` the number of cases (default 100,000).

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use usm_interface::text::Lexer;
use usm_interface::{Field, Mode, Objects, Policy, descr, members, typestr};

/// A small generator of choices, the same in every run.
struct Choices(u64);

impl Choices {
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

fn type_string(choices: &mut Choices) -> String {
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

fn structure(choices: &mut Choices, depth: usize) -> String {
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

/// Compares one level; `Err` says what differs.
fn compare(table: &[Field<'_>], expect: &Value) -> Result<(), String> {
    let expect = expect.as_array().ok_or("NumPy has no members")?;
    let own: Vec<_> = members(table).collect();
    if own.len() != expect.len() {
        return Err(format!("{} members, NumPy {}", own.len(), expect.len()));
    }
    for (index, ((field, inner), expect)) in own.iter().zip(expect).enumerate() {
        // Intended: padding is padding here, NumPy calls it f<index>.
        let name = if field.is_padding() { format!("f{index}") } else { field.name().to_string() };
        let title = field.title().map(|t| t.to_string());
        let same = expect[0] == name.as_str()
            && expect[1].as_str() == title.as_deref()
            && expect[2] == field.offset()
            && expect[3] == field.size()
            && expect[4].as_array().is_some_and(|shape| shape.iter().eq(field.shape().dims().iter()));
        if !same {
            return Err(format!("{expect} here {field:?}"));
        }
        if field.is_nested() {
            compare(inner, &expect[6])?;
        } else if expect[5] != field.dtype().to_string().as_str() {
            return Err(format!("{} here {}", expect[5], field.dtype()));
        }
    }
    Ok(())
}

/// What we make of a type in NumPy mode, compared with NumPy's answer; `Err` is a difference that is not meant.
fn check(text: &str, numpy: &Value, refused_here: &mut usize) -> Result<(), String> {
    let policy = Policy { mode: Mode::Numpy, objects: Objects::Describe, ..Policy::default() };
    let accepted = numpy["error"].is_null();
    let mut table = [Field::EMPTY; 128];
    let ours = if text.starts_with('[') {
        descr::parse(Lexer::new(text), false, &policy, &mut table)
            .map(|s| (s.size(), None, Some(s)))
            .map_err(|e| e.kind().name().to_owned())
    } else {
        typestr::parse(text, Mode::Numpy, None)
            .map(|d| (d.itemsize(), Some(d), None))
            .map_err(|e| e.to_string())
    };
    match (ours, accepted) {
        (Err(_), false) => Ok(()),
        // Intended: the extended floats of 32-bit x86, which this machine's NumPy does not have.
        (Ok((12 | 24, Some(_), _)), false) if text.contains(['f', 'c']) => Ok(()),
        (Ok(_), false) => Err(format!("accepted here, NumPy: {}", numpy["error"])),
        (Err(error), true) => {
            *refused_here += 1;
            // Intended: NumPy reads `('S0', 3)` as three bytes.
            if error == "empty_element" || is_intended_refusal(text) {
                Ok(())
            } else {
                Err(format!("NumPy takes it, here: {error}"))
            }
        }
        (Ok((size, dtype, structure)), true) => {
            if numpy["itemsize"] != size {
                return Err(format!("itemsize {size}, NumPy {}", numpy["itemsize"]));
            }
            if let Some(dtype) = dtype {
                if numpy["alignment"] != dtype.alignment()
                    || spelled(&numpy["str"]) != spelled(&Value::from(dtype.to_string()))
                {
                    return Err(format!("{dtype} aligned to {}, NumPy {numpy}", dtype.alignment()));
                }
            }
            structure.map_or(Ok(()), |s| compare(s.fields(), &numpy["members"]))
        }
    }
}

/// Intended: raw bytes keep the order they were written with (`<V2` is how bfloat16 is exported); NumPy drops it.
fn spelled(typestr: &Value) -> String {
    let text = typestr.as_str().unwrap_or_default();
    if text.get(1..2) == Some("V") { text.replacen(['<', '>'], "|", 1) } else { text.to_owned() }
}

/// Type strings that NumPy takes and no array interface means.
fn is_intended_refusal(text: &str) -> bool {
    let letters = text.trim_start_matches(['<', '>', '|', '=']);
    // A bare kind letter: `S`, `U`, `V`, `m`, `M` without a size say nothing of the element's size; `f`, `c`, `i` are C types with an order.
    let bare = letters.len() == 1;
    // A unit on a datetime without size.
    let sizeless = letters.starts_with("M[") || letters.starts_with("m[");
    // Minus zero is no size.
    bare || sizeless || letters.ends_with("-0")
}

#[test]
fn sizes_offsets_names_and_titles_are_those_of_numpy() {
    let Some(python) = std::env::var_os("USM_PYTHON") else {
        println!("skipped: the comparison with NumPy: USM_PYTHON is not set");
        return;
    };
    let count = std::env::var("USM_NUMPY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000usize);
    let mut choices = Choices(0x9e37_79b9_7f4a_7c15);
    let cases: Vec<String> = (0..count)
        .map(|i| if i % 2 == 0 { type_string(&mut choices) } else { structure(&mut choices, 0) })
        .collect();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/numpy_types.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input: String =
        cases.iter().map(|case| serde_json::to_string(case).expect("a string") + "\n").collect();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("Python ends");
    writer.join().expect("no panic").expect("Python reads all");
    let answers: Vec<&str> = core::str::from_utf8(&output.stdout).expect("JSON").lines().collect();
    assert_eq!(answers.len(), cases.len(), "{}", output.status);
    let (mut accepted, mut refused_here, mut differences) = (0, 0, Vec::new());
    for (case, answer) in cases.iter().zip(answers) {
        let numpy: Value = serde_json::from_str(answer).expect("JSON");
        accepted += usize::from(numpy["error"].is_null());
        if let Err(difference) = check(case, &numpy, &mut refused_here) {
            differences.push(format!("{case}: {difference}"));
        }
    }
    println!("{count} cases, NumPy accepts {accepted}, refused here on purpose {refused_here}");
    assert!(accepted * 4 > count, "the generator makes mostly nonsense");
    let shown = differences.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differences:\n{shown}", differences.len());
}
