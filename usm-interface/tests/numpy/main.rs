//! Compares type strings and `descr`s with NumPy 1.26 and 2.x: sizes, offsets, alignments, names
//! and titles are equal, or the difference is intended.
//!
//! `USM_PYTHON` and `USM_NUMPY_1` name the NumPys; `USM_NUMPY_CASES` the number of cases of each
//! (default 100,000).

mod ask;
mod differences;
mod formats;
mod generate;

use ask::NumPy;
use generate::{Choices, structure, type_string};
use serde_json::Value;
use usm_interface::text::Lexer;
use usm_interface::{Field, Mode, Objects, Policy, descr, members, typestr};

/// Compares one level. The error is the difference.
fn compare(numpy: NumPy, table: &[Field<'_>], expect: &Value) -> Result<(), String> {
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
            && same_shape(numpy, field.shape().dims(), &expect[4]);
        if !same {
            return Err(format!("{expect} here {field:?}"));
        }
        if field.is_nested() {
            compare(numpy, inner, &expect[6])?;
        } else if expect[5] != field.dtype().to_string().as_str() {
            return Err(format!("{} here {}", expect[5], field.dtype()));
        }
    }
    Ok(())
}

/// Intended: NumPy 1 ignores the shape `1` and warns that this will change; NumPy 2 reads it as we
/// do.
fn same_shape(numpy: NumPy, here: &[u32], expect: &Value) -> bool {
    let is = |dims: &[u32]| expect.as_array().is_some_and(|shape| shape.iter().eq(dims.iter()));
    is(here) || (numpy == NumPy::One && matches!(here, [1, rest @ ..] if is(rest)))
}

/// Compares our reading in NumPy mode with NumPy's. The error is an unintended difference.
fn check(version: NumPy, text: &str, numpy: &Value, refused_here: &mut usize) -> Result<(), String> {
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
        // Intended: the extended floats of 32-bit x86, which the NumPy of other machines lacks.
        (Ok((12 | 24, Some(_), _)), false) if text.contains(['f', 'c']) => Ok(()),
        (Ok(_), false) => Err(format!("accepted here, NumPy: {}", numpy["error"])),
        (Err(error), true) => {
            *refused_here += 1;
            // Intended: NumPy reads `('S0', 3)` as three bytes.
            if error == "empty_element" || is_intended_refusal(text) || wraps(version, text, numpy) {
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
            structure.map_or(Ok(()), |s| compare(version, s.fields(), &numpy["members"]))
        }
    }
}

/// Intended: NumPy 1 accepts sizes below 0 and above its C `int`, and wraps them.
fn wraps(version: NumPy, text: &str, numpy: &Value) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let beyond =
        digits.parse::<u32>().map_or(true, |size| i32::try_from(size).is_err() || size > 0x1fff_ffff);
    version == NumPy::One && (beyond || numpy["itemsize"].as_i64().is_some_and(|size| size < 0))
}

/// Intended: raw bytes keep their written order (`<V2` is the export of bfloat16); NumPy drops it.
fn spelled(typestr: &Value) -> String {
    let text = typestr.as_str().unwrap_or_default();
    if text.get(1..2) == Some("V") { text.replacen(['<', '>'], "|", 1) } else { text.to_owned() }
}

/// Type strings that NumPy accepts and the array interface does not define.
fn is_intended_refusal(text: &str) -> bool {
    let letters = text.trim_start_matches(['<', '>', '|', '=']);
    // A single letter: `S`, `U`, `V`, `m`, `M` without a size do not define the element's size;
    // `f`, `c`, `i` are C types with an order.
    let bare = letters.len() == 1;
    // A unit on a datetime without size.
    let sizeless = letters.starts_with("M[") || letters.starts_with("m[");
    // Minus zero is no valid size.
    bare || sizeless || letters.ends_with("-0")
}

fn cases() -> usize {
    usize::try_from(skip::cases("USM_NUMPY_CASES", 100_000)).unwrap_or(usize::MAX)
}

fn compare_with(numpy: NumPy) {
    let count = cases();
    let mut choices = Choices::new();
    let cases: Vec<String> = (0..count)
        .map(|i| if i % 2 == 0 { type_string(&mut choices) } else { structure(&mut choices, 0) })
        .collect();
    let Some(answers) = numpy.answers(&cases) else { return };
    let (mut accepted, mut refused_here, mut differences) = (0, 0, Vec::new());
    for (case, answer) in cases.iter().zip(answers) {
        accepted += usize::from(answer["error"].is_null());
        if let Err(difference) = check(numpy, case, &answer, &mut refused_here) {
            differences.push(format!("{case}: {difference}"));
        }
    }
    println!("{numpy:?}: {count} cases, NumPy accepts {accepted}, refused here on purpose {refused_here}");
    assert!(accepted * 4 > count, "the generator makes mostly nonsense");
    let shown = differences.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differences:\n{shown}", differences.len());
}

#[test]
fn sizes_offsets_names_and_titles_are_those_of_numpy_2() {
    compare_with(NumPy::Two);
}

#[test]
fn sizes_offsets_names_and_titles_are_those_of_numpy_1() {
    compare_with(NumPy::One);
}
