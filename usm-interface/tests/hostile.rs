//! Hostile input of every category that was measured against NumPy, torch and dpctl. Each is
//! refused with the key and the reason, or accepted with a correct layout.

use core::fmt::Write as _;

use usm_interface::dlpack::{DataType, RawTensor, Tensor, Version};
use usm_interface::pep3118::{self, Padding, RawBuffer};
use usm_interface::{Allocation, Error, Extent, Field, Interface, Limits, Mode, Policy, Protocol, dict};

/// Kind and path of the refusal of a dictionary, in `mode`.
fn refusal_in(mode: Mode, text: &str) -> (String, String) {
    let mut table = [Field::EMPTY; 16];
    let policy = Policy { mode, ..Policy::default() };
    match dict::parse::<8>(text, None, &policy, &mut table) {
        Ok(array) => panic!("accepted: {text} as {:?}", array.layout()),
        Err(error) => (error.kind().name().to_owned(), error.path().to_string()),
    }
}

fn refused(text: &str, kind: &str, path: &str) {
    assert_eq!(refusal_in(Mode::Strict, text), (kind.to_owned(), path.to_owned()), "{text}");
}

fn refused_both(text: &str, kind: &str, path: &str) {
    refused(text, kind, path);
    assert_eq!(refusal_in(Mode::Numpy, text), (kind.to_owned(), path.to_owned()), "NumPy mode: {text}");
}

/// A dictionary of four `<f4` at address 4096, with `more` keys before the others.
fn array(more: &str) -> String {
    let mut text = String::from("{");
    for (key, value) in [("data", "(4096, False)"), ("shape", "(4,)"), ("typestr", "'<f4'"), ("version", "3")]
    {
        if !more.contains(&format!("'{key}'")) {
            write!(text, "'{key}': {value}, ").unwrap();
        }
    }
    text + more + "}"
}

fn sycl(more: &str) -> String {
    let version = if more.contains("'version'") { "" } else { "'version': 1, " };
    array(&format!("{version}'syclobj': 'cpu', {more}"))
}

fn cuda(more: &str) -> String {
    let stream = if more.contains("'stream'") { "" } else { "'stream': None, " };
    array(&format!("{stream}{more}"))
}

fn accepted<R>(text: &str, check: impl FnOnce(&Interface<'_, '_, 8>) -> R) -> R {
    let mut table = [Field::EMPTY; 16];
    let array = dict::parse::<8>(text, None, &Policy::default(), &mut table);
    check(&array.unwrap_or_else(|e| panic!("{text}: {e}")))
}

#[test]
fn missing_and_mistyped_keys() {
    refused_both("{'typestr': '<f4'}", "missing", "shape");
    refused_both("{'shape': (2,)}", "missing", "typestr");
    refused_both("{}", "missing", "shape");
    refused_both(&array("'shape': 4"), "wrong_type", "shape");
    refused_both(&array("'shape': '4'"), "wrong_type", "shape");
    refused_both(&array("'shape': (2.0,)"), "wrong_type", "shape[0]");
    refused_both(&array("'shape': (2, True)"), "wrong_type", "shape[1]");
    refused_both(&array("'shape': (None,)"), "wrong_type", "shape[0]");
    refused_both(&array("'shape': ((2,),)"), "wrong_type", "shape[0]");
    refused_both(&array("'shape': {}"), "wrong_type", "shape");
    refused_both(&array("'strides': '16'"), "wrong_type", "strides");
    refused_both(&array("'strides': (4.0,)"), "wrong_type", "strides[0]");
    refused_both(&array("'typestr': None"), "wrong_type", "typestr");
    refused_both(&array("'typestr': 4"), "wrong_type", "typestr");
    refused(&array("'typestr': b'<f4'"), "wrong_type", "typestr");
    refused_both(&array("'data': 4096"), "wrong_type", "data");
    refused_both(&array("'data': (4096,)"), "wrong_length", "data");
    refused_both(&array("'data': ()"), "wrong_length", "data");
    refused_both(&array("'data': (4096, False, 0)"), "wrong_length", "data");
    refused_both(&array("'data': (True, False)"), "wrong_type", "data[0]");
    refused_both(&array("'data': (1.5, False)"), "wrong_type", "data[0]");
    refused_both(&array("'data': ('4096', False)"), "wrong_type", "data[0]");
    refused_both(&array("'data': (4096, None)"), "wrong_type", "data[1]");
    refused(&array("'data': (4096, 0)"), "wrong_type", "data[1]");
    refused_both(&array("'offset': '1'"), "wrong_type", "offset");
    refused(&array("'version': '3'"), "wrong_type", "version");
    refused(&array("'version': -1"), "bad_version", "version");
    refused_both("[]", "wrong_type", "");
    refused_both("3", "wrong_type", "");
    refused_both(&array("'shape': (4,), 'shape': (4,)"), "duplicate_key", "shape");
}

#[test]
fn numbers_that_do_not_fit() {
    refused_both(&array("'data': (-1, False)"), "integer_range", "data[0]");
    refused_both(&array("'data': (18446744073709551616, False)"), "integer_range", "data[0]");
    refused_both(&array("'shape': (9223372036854775808,)"), "integer_range", "shape[0]");
    refused_both(
        &array("'shape': (99999999999999999999999999999999999999999999,)"),
        "integer_range",
        "shape[0]",
    );
    refused_both(&array("'shape': (-1,)"), "negative_extent", "shape[0]");
    refused_both(&array("'shape': (2, -3)"), "negative_extent", "shape[1]");
    refused_both(&array("'shape': (4294967296, 4294967296)"), "size_overflow", "shape");
    refused_both(&array("'shape': (9223372036854775807,)"), "size_overflow", "shape");
    refused_both(&array("'shape': (4611686018427387904, 4611686018427387904, 0)"), "size_overflow", "shape");
    refused_both(&array("'strides': (9223372036854775807,)"), "extent_overflow", "strides");
    refused_both(&array("'strides': (-9223372036854775808,)"), "extent_overflow", "strides");
    refused_both(&array("'strides': (4, 4)"), "stride_count", "strides");
    refused_both(&array("'strides': ()"), "stride_count", "strides");
    refused_both(&array("'shape': (1,1,1,1,1,1,1,1,1)"), "too_many_dims", "shape");
    let many = format!("'shape': ({})", "1,".repeat(1000));
    refused_both(&array(&many), "too_many_dims", "shape");
    refused_both(&array("'data': (18446744073709551615, False)"), "address_overflow", "data");
    refused_both(&array("'strides': (-4096,)"), "address_overflow", "data");
    refused_both(&array("'data': (0, False)"), "null_pointer", "data");
}

#[test]
fn type_strings() {
    for (typestr, kind) in [
        ("", "typestr_syntax"),
        ("<", "typestr_syntax"),
        ("<i", "typestr_syntax"),
        ("<i3", "bad_itemsize"),
        ("<i0", "bad_itemsize"),
        ("<f1", "needs_hint"),
        ("<W4", "needs_hint"),
        ("<c4", "bad_itemsize"),
        ("<M4", "bad_itemsize"),
        ("|b2", "bad_itemsize"),
        ("!i4", "typestr_syntax"),
        ("<i4 ", "typestr_syntax"),
        ("<i4\\x00", "typestr_syntax"),
        ("<i\\u0664", "typestr_syntax"),
        ("|V-4", "typestr_syntax"),
        ("|V2147483648", "itemsize_limit"),
        ("|V99999999999999999999", "itemsize_limit"),
        ("<U1073741824", "itemsize_limit"),
        ("|t1", "bad_itemsize"),
        ("<q8", "unknown_kind"),
        ("StringDType()", "typestr_syntax"),
        ("<M8[10ms/3]", "bad_time_unit"),
        ("<M8[-1s]", "bad_time_unit"),
        ("<M8[99999999999ns]", "bad_time_unit"),
        ("<M8[]", "bad_time_unit"),
        ("<M8[s", "bad_time_unit"),
        ("<M8[ss]", "bad_time_unit"),
        ("|O", "object_pointer"),
    ] {
        refused(&array(&format!("'typestr': '{typestr}'")), kind, "typestr");
        let (loose, path) = refusal_in(Mode::Numpy, &array(&format!("'typestr': '{typestr}'")));
        assert_eq!(path, "typestr", "{typestr}: {loose}");
    }
    let long = "<i4".to_owned() + &" ".repeat(1_000_000);
    refused(&array(&format!("'typestr': '{long}'")), "typestr_syntax", "typestr");
}

#[test]
fn structures() {
    let void = |size: &str, descr: &str| array(&format!("'typestr': '|V{size}', 'descr': {descr}"));
    refused_both(&void("8", "[('a', '<i4')]"), "descr_size", "descr");
    refused(&array("'descr': [('a', '<i2'), ('b', '<i4')]"), "descr_size", "descr");
    refused_both(&void("8", "[('a', '<i4'), ('a', '<i4')]"), "duplicate_name", "descr[1].name");
    refused_both(&void("8", "[(('t', 'a'), '<i4'), ('t', '<i4')]"), "duplicate_name", "descr[1].name");
    refused_both(&void("4", "[(('a', 'a'), '<i4')]"), "duplicate_name", "descr[0].title");
    refused(&void("8", "[('a', '<i4'), ('', '<i4')]"), "unnamed_field", "descr[1].name");
    refused_both(&void("8", "[('a', '<i4', (-1,))]"), "negative_extent", "descr[0].shape[0]");
    refused(&void("8", "[('x', '<i1'), ('a', '<i4')]"), "bad_byte_order", "descr[0].type");
}

#[test]
fn structures_with_wrong_members() {
    let void = |descr: &str| array(&format!("'typestr': '|V8', 'descr': {descr}"));
    refused_both(&void("[('a', '<i4', (1, True))]"), "wrong_type", "descr[0].shape[1]");
    refused_both(
        &void("[('x', '|i1'), ('a', '<i4', (1, 99999999999))]"),
        "integer_range",
        "descr[1].shape[1]",
    );
    refused_both(&void("[('a', 4)]"), "wrong_type", "descr[0].type");
    refused_both(&void("[('a',)]"), "wrong_type", "descr[0].type");
    refused_both(&void("[('a', '<i4', (1,), 0)]"), "wrong_type", "descr[0]");
    refused_both(&void("[5]"), "wrong_type", "descr[0]");
    refused_both(&void("['a']"), "wrong_type", "descr[0]");
    refused_both(&void("[(5, '<i4')]"), "wrong_type", "descr[0].name");
    refused_both(&void("'abc'"), "wrong_type", "descr");
    refused_both(&void("[('a', '<i3')]"), "bad_itemsize", "descr[0].type");
    refused_both(&void("[('a', '|O')]"), "object_pointer", "descr[0].type");
    refused_both(
        &void("[('a', '<i4'), ('b', [('c', '|u1'), ('d', '<q2')])]"),
        "unknown_kind",
        "descr[1][1][1].type",
    );
    // Four members of 2^31-1 bytes, for which NumPy computes an itemsize of -4.
    let huge = "('%', '|V2147483647'), ";
    let huge: String = ["a", "b", "c", "d"].iter().map(|n| huge.replace('%', n)).collect();
    refused_both(&void(&format!("[{huge}]")), "itemsize_limit", "descr[1]");
    refused_both(
        &void("[('a', '<i8', (2147483647, 2147483647, 2147483647))]"),
        "size_overflow",
        "descr[0].shape",
    );
    refused_both(&void("[('a', '<i4', (2147483647,))]"), "itemsize_limit", "descr[0]");
    refused_both(&void("[('a', '|i1', (1,1,1,1,1,1,1,1,1))]"), "too_many_sub_dims", "descr[0].shape[8]");
    let many: String = (0..17).map(|i| format!("('f{i}', '|u1'), ")).collect();
    refused_both(&void(&format!("[{many}]")), "too_many_fields", "descr");
}

#[test]
fn masks_streams_versions_and_objects() {
    refused_both(&array("'mask': 5"), "mask_unsupported", "mask");
    refused_both(&array("'mask': <ma.mask>"), "mask_unsupported", "mask");
    accepted(&array("'mask': None"), |_| ());
    refused_both(&cuda("'stream': 0"), "stream_zero", "stream");
    refused_both(&cuda("'stream': -1"), "integer_range", "stream");
    refused_both(&cuda("'stream': True"), "wrong_type", "stream");
    refused_both(&cuda("'version': 4"), "bad_version", "version");
    refused_both(&cuda("'version': -1"), "bad_version", "version");
    refused_both(&cuda("'data': None"), "missing", "data");
    refused_both(&cuda("'data': <memory>"), "wrong_type", "data");
    refused_both(&sycl("'version': 2"), "bad_version", "version");
    refused(&sycl("'version': True"), "wrong_type", "version");
}

#[test]
fn sycl_dictionaries_that_dpctl_gets_wrong() {
    // The measured defects D5 to D9: the layout determines the array's reach, the allocation the
    // permitted range.
    let page = Allocation { base: 4096, len: 4096 };
    let inside = |text: &str| accepted(text, |array| array.check_inside(page).map_err(|e| e.kind().name()));
    assert_eq!(inside(&sycl("'shape': (1024,)")), Ok(()));
    assert_eq!(inside(&sycl("'shape': (1024000000,)")), Err("outside_allocation"));
    refused_both(&sycl("'shape': (4611686018427387904,)"), "size_overflow", "shape");
    refused_both(&sycl("'shape': (1099511627776, 1099511627776)"), "size_overflow", "shape");
    refused_both(&sycl("'strides': (2305843009213693952,)"), "extent_overflow", "strides[0]");
    assert_eq!(inside(&sycl("'strides': (-1,)")), Err("outside_allocation"));
    assert_eq!(inside(&sycl("'strides': (-1,), 'offset': 3")), Ok(()));
    assert_eq!(inside(&sycl("'offset': 1020")), Ok(()));
    assert_eq!(inside(&sycl("'offset': 1021")), Err("outside_allocation"));
    refused_both(&sycl("'offset': -1"), "negative_offset", "offset");
    refused_both(&sycl("'offset': 4611686018427387904"), "extent_overflow", "offset");
    refused_both(&sycl("'typestr': None"), "wrong_type", "typestr");
    refused_both(&sycl("'data': (4096.0, False)"), "wrong_type", "data[0]");
    refused_both(&sycl("'shape': '4'"), "wrong_type", "shape");
    refused_both(&sycl("'strides': (1.0,)"), "wrong_type", "strides[0]");
    let no_version = sycl("").replace("'version': 1, ", "").replace("'version': 3", "'x': 3");
    refused_both(&no_version, "missing", "version");
    refused_both(&sycl("").replace("'cpu'", "''"), "empty_filter", "syclobj");
    refused_both(&sycl("").replace("'cpu'", "None"), "wrong_type", "syclobj");
    refused_both(&sycl("").replace("'cpu'", "5"), "wrong_type", "syclobj");
    let conflict = "'typestr': '|V4', 'descr': [('a', '<i4')], 'typedescr': [('b', '<i4')]";
    refused_both(&sycl(conflict), "descr_conflict", "typedescr");
    accepted(&sycl(&conflict.replace("'b'", "'a'")), |array| assert_eq!(array.fields().len(), 1));
}

#[test]
fn buffers_hold_their_array() {
    refused(&array("'offset': 4"), "offset_with_pointer", "offset");
    // NumPy ignores the offset; so does NumPy mode.
    let text = array("'offset': 4");
    let mut table = [Field::EMPTY; 1];
    let policy = Policy { mode: Mode::Numpy, ..Policy::default() };
    let array: Interface<'_, '_, 8> = dict::parse(&text, None, &policy, &mut table).unwrap();
    assert_eq!(array.layout().extent(), Extent { low: 0, high: 16 });
}

#[test]
fn legal_oddities() {
    // Any strides for empty arrays and single elements, zero strides, negative strides, any address
    // for zero bytes.
    accepted(&array("'shape': (0,), 'data': (0, False)"), |a| {
        assert_eq!(a.layout().extent(), Extent::default())
    });
    accepted(&array("'shape': (0, 4), 'strides': (9223372036854775807, -3)"), |a| {
        assert_eq!(a.layout().nbytes(), 0)
    });
    accepted(&array("'shape': (1, 4), 'strides': (9223372036854775807, 4)"), |a| {
        assert!(a.layout().is_c_contiguous() && a.layout().is_disjoint());
    });
    accepted(&array("'strides': (0,)"), |a| {
        assert_eq!(a.layout().extent(), Extent { low: 0, high: 4 });
        assert!(!a.layout().is_disjoint());
    });
    accepted(&array("'strides': (-4,)"), |a| assert_eq!(a.layout().extent(), Extent { low: -12, high: 4 }));
    accepted(&array("'typestr': '|V0'"), |a| assert_eq!(a.layout().nbytes(), 0));
    accepted(&array("'__ref': array([{'x': ')'}]), 'other': [[[]], {'a': (1,)}, -1.5e+3, nothing()]"), |a| {
        assert_eq!(a.layout().len(), 4);
    });
    accepted(&array("'version': 99"), |_| ());
    accepted(&array("").replace("'version': 3", "'x': 1"), |_| ());
}

#[test]
fn text_that_is_no_literal() {
    for text in [
        "",
        "{",
        "{'a'",
        "{'a':",
        "{'a': 1",
        "{'a': 1,",
        "{'a' 1}",
        "{1: }",
        "(1)",
        "(1, 2]",
        "[1}",
        "{'a': 1}}",
        "[1] 2",
        "[,]",
        "[1,,2]",
        "'abc",
        "'a\nb'",
        "'\\q'",
        "'\\x4'",
        "'\\ud800'",
        "'\\N{DASH}'",
        "'a' 'b'",
        "01",
        "-",
        "+1",
        "1.2.3x",
        "nothing",
        "nothing(",
        "r'x'",
        "<a",
        "}",
        "{[]: 1}",
        "{'a': 1 'b': 2}",
        "\u{feff}{}",
        "{'a': ]}",
        "\0",
        "é",
    ] {
        let wrapped = format!("{{'x': {text}}}");
        for text in [text, &wrapped] {
            let mut table = [Field::EMPTY; 4];
            assert!(dict::parse::<8>(text, None, &Policy::default(), &mut table).is_err(), "{text:?}");
        }
    }
    // No proper prefix of a good dictionary is good.
    let good = sycl("'typestr': '|V4', 'typedescr': [(('t', 'a'), ('<i2', (1,)), (2,))], 'strides': (1,)");
    accepted(&good, |_| ());
    for end in 0..good.len() {
        let mut table = [Field::EMPTY; 4];
        assert!(
            dict::parse::<8>(&good[..end], None, &Policy::default(), &mut table).is_err(),
            "{}",
            &good[..end]
        );
    }
}

#[test]
fn depth_and_size_cost_a_typed_error() {
    for n in [40, 1000, 1_000_000] {
        for (open, path) in [("[('a', ", "descr"), ("(", ""), ("[", "")] {
            let text = format!("{{'{}': {}", if path.is_empty() { "x" } else { path }, open.repeat(n));
            let (kind, _) = refusal_in(Mode::Strict, &text);
            assert_eq!(kind, "too_deep", "{open} x {n}");
        }
        refused(&format!("{{'x': {}", "{'a':".repeat(n)), "too_deep", "");
    }
    let policy = Policy { limits: Limits { depth: 32, values: 100 }, ..Policy::default() };
    let mut table = [Field::EMPTY; 4];
    let text = format!("{{'x': [{}]}}", "0,".repeat(1000));
    assert_eq!(
        dict::parse::<8>(&text, None, &policy, &mut table).unwrap_err().kind().name(),
        "too_many_values"
    );
}

#[test]
fn megabytes_of_text_end() {
    // Megabytes: a parser that is not linear would not return in time.
    const SIZE: usize = 4 << 20;
    let fill = |unit: &str| unit.repeat(SIZE / unit.len());
    let policy = Policy { limits: Limits { depth: 64, values: usize::MAX }, ..Policy::default() };
    for (text, kind) in [
        (fill("[('a', "), "wrong_type"),
        (format!("{{'descr': {}", fill("[('a', ")), "too_deep"),
        (format!("{{'descr': [{}]}}", fill("('a', '<f4'), ")), "duplicate_name"),
        (format!("{{'x': '{}'}}", fill("\\n")), "missing"),
        (format!("{{'x': [{}]}}", fill("[],")), "missing"),
        (format!("{{'x': f({}", fill("('")), "unexpected_end"),
        (format!("{{'x': {}", fill("<")), "unexpected_end"),
        (format!("{{'shape': ({},)}}", fill("9")), "integer_range"),
        (format!("{{'shape': ({})}}", fill("1,")), "too_many_dims"),
        (format!("{{{}}}", fill("'x': 1, ")), "missing"),
    ] {
        let mut table = [Field::EMPTY; 64];
        let error = dict::parse::<8>(&text, None, &policy, &mut table).unwrap_err();
        assert_eq!(error.kind().name(), kind, "{:?}", text.get(..20));
    }
}

#[test]
fn formats() {
    let refuse = |format: &str, itemsize: u64, kind: &str| {
        let mut table = [Field::EMPTY; 32];
        let error = pep3118::parse(format, itemsize, Padding::AsWritten, &mut table).unwrap_err();
        let start: String = format.chars().take(40).collect();
        assert_eq!((error.kind().name(), error.path().to_string().as_str()), (kind, "format"), "{start}");
    };
    refuse("T{", 0, "unexpected_end");
    refuse("T{i:a", 4, "unexpected_end");
    refuse("}", 0, "unknown_kind");
    refuse("T", 0, "unexpected_end");
    refuse("Ti", 4, "syntax");
    refuse("(2", 8, "unexpected_end");
    refuse("()i", 4, "syntax");
    refuse("(2,)i", 8, "syntax");
    refuse("(-2)i", 8, "syntax");
    refuse("99999999999i", 4, "integer_range");
    refuse("2147483647w", 4, "integer_range");
    refuse("(2147483647)(2147483647)(2147483647)d", 4, "size_overflow");
    refuse("2147483647d", 4, "itemsize_limit");
    refuse("T{i:a:i:a:}", 8, "duplicate_name");
    refuse("i", 8, "format_size");
    refuse("T{<i:a:<d:b:(3)<c:c:}", 24, "format_size");
    // NumPy #7797: elements of 5 bytes or of 8, and the place of the remaining bytes.
    refuse("T{(2)T{i:a:b:b:}:n:}", 16, "ambiguous_padding");
    refuse("T{(2)T{i:a:b:b:}:n:6xd:d:}", 24, "ambiguous_padding");
    refuse("T{(2)T{b:a:}:n:6xb:b:}", 9, "ambiguous_padding");
    refuse("T{b:a:T{b:a:i:b:}:n:}", 12, "ambiguous_padding");
    refuse("p", 1, "unknown_kind");
    refuse("Zi", 8, "unknown_kind");
    refuse("Z", 8, "unexpected_end");
    refuse("&", 8, "unexpected_end");
    refuse("X{", 8, "unexpected_end");
    refuse("ééé", 8, "unknown_kind");
    refuse(&"T{".repeat(100_000), 8, "too_deep");
    refuse(&"(1)".repeat(100_000), 8, "syntax");
    refuse(&"i".repeat(100_000), 8, "too_many_fields");
    refuse(&"&".repeat(100_000), 8, "unexpected_end");
}

/// With knowledge of the producer more formats are accepted; others need no such knowledge.
#[test]
fn arrays_of_structures_inside_structures() {
    let offsets = |format: &str, itemsize: u64, padding: Padding| {
        let mut table = [Field::EMPTY; 16];
        let element = pep3118::parse(format, itemsize, padding, &mut table).unwrap();
        let members = element.structure.unwrap();
        let named = members.fields().iter().filter(|field| !field.is_padding());
        named.map(|field| (field.offset(), field.dtype().itemsize())).collect::<Vec<_>>()
    };
    let both = [Padding::AsWritten, Padding::Trailing];
    for padding in both {
        // No byte is left over, or too few for one in each element.
        assert_eq!(offsets("T{(2)T{i:a:b:b:}:n:}", 10, padding)[0], (0, 5));
        assert_eq!(offsets("T{(4)T{b:a:b:b:}:n:3xb:c:}", 12, padding)[3], (11, 1));
        assert_eq!(offsets("T{T{i:a:b:b:}:n:xxxi:c:}", 12, padding), [(0, 5), (0, 4), (4, 1), (8, 4)]);
    }
    let elements = [(0, 8), (0, 4), (4, 1), (16, 8)];
    assert_eq!(offsets("T{(2)T{i:a:b:b:}:n:d:d:}", 24, Padding::C), elements);
    assert_eq!(offsets("T{(2)T{i:a:b:b:3x}:n:d:d:}", 24, Padding::C), elements);
    assert_eq!(offsets("T{(2)T{<i:a:<b:b:}:n:<d:d:}", 24, Padding::Natural), elements);
}

#[test]
fn buffers() {
    let shape = [4];
    let good = RawBuffer {
        format: Some("f"),
        itemsize: 4,
        shape: Some(&shape),
        address: 4096,
        len: 16,
        ..RawBuffer::default()
    };
    let check = |raw: RawBuffer<'static, '_>| {
        let mut table = [Field::EMPTY; 8];
        raw.validate::<8>(Padding::AsWritten, &Policy::default(), &mut table)
            .map(|b| b.layout().extent())
            .map_err(|e| e.kind().name())
    };
    assert_eq!(check(good), Ok(Extent { low: 0, high: 16 }));
    assert_eq!(
        check(RawBuffer { format: None, itemsize: 1, len: 4, ..good }),
        Ok(Extent { low: 0, high: 4 })
    );
    assert_eq!(check(RawBuffer { shape: None, ..good }), Ok(Extent { low: 0, high: 16 }));
    assert_eq!(check(RawBuffer { format: None, ..good }), Err("format_size"));
    assert_eq!(check(RawBuffer { itemsize: -4, ..good }), Err("integer_range"));
    assert_eq!(check(RawBuffer { itemsize: 0, ..good }), Err("format_size"));
    assert_eq!(check(RawBuffer { len: 20, ..good }), Err("outside_allocation"));
    assert_eq!(check(RawBuffer { len: -1, ..good }), Err("outside_allocation"));
    assert_eq!(check(RawBuffer { address: 0, ..good }), Err("null_pointer"));
    assert_eq!(check(RawBuffer { address: u64::MAX - 3, ..good }), Err("address_overflow"));
    assert_eq!(check(RawBuffer { suboffsets: true, ..good }), Err("suboffsets"));
    assert_eq!(check(RawBuffer { strides: Some(&[i64::MIN]), ..good }), Err("extent_overflow"));
    assert_eq!(check(RawBuffer { strides: Some(&[4, 4]), ..good }), Err("stride_count"));
    assert_eq!(check(RawBuffer { format: Some("O"), itemsize: 8, len: 32, ..good }), Err("object_pointer"));
}

#[test]
fn tensors() {
    const SHAPE: &[i64] = &[2, 3];
    const STRIDES: &[i64] = &[3, 1];
    let f4 = DataType { code: 2, bits: 32, lanes: 1 };
    let good = RawTensor {
        data: 4096,
        device: (1, 0),
        ndim: 2,
        dtype: f4,
        shape: Some(SHAPE),
        strides: Some(STRIDES),
        byte_offset: 0,
        flags: 0,
        version: Some(Version { major: 1, minor: 3 }),
    };
    let check = |raw: RawTensor<'_>| -> Result<Tensor<8>, Error> { raw.validate(&Policy::default()) };
    let refuse = |raw: RawTensor<'_>, kind: &str, path: &str| {
        let error = check(raw).expect_err(kind);
        assert_eq!((error.kind().name(), error.path().to_string().as_str()), (kind, path));
    };
    assert_eq!(check(good).unwrap().extent(), Extent { low: 0, high: 24 });
    let version = |major, minor| Some(Version { major, minor });
    // The version comes first: with a foreign major version no other field is read.
    refuse(RawTensor { version: version(2, 0), shape: None, ndim: -1, ..good }, "bad_major", "version");
    refuse(RawTensor { version: version(0, 9), ..good }, "bad_major", "version");
    assert!(check(RawTensor { version: version(1, 99), flags: !0, ..good }).unwrap().readonly());
    refuse(RawTensor { ndim: -1, ..good }, "negative_extent", "ndim");
    refuse(RawTensor { ndim: i32::MIN, ..good }, "negative_extent", "ndim");
    refuse(RawTensor { ndim: i32::MAX, ..good }, "too_many_dims", "ndim");
    refuse(RawTensor { ndim: 3, ..good }, "wrong_length", "shape");
    refuse(RawTensor { shape: None, ..good }, "null_field", "shape");
    refuse(RawTensor { strides: None, ..good }, "null_field", "strides");
    for older in [None, version(1, 0), version(1, 1)] {
        assert_eq!(check(RawTensor { strides: None, version: older, ..good }).unwrap().strides(), STRIDES);
    }
    assert!(check(RawTensor { ndim: 0, shape: None, strides: None, ..good }).is_ok());
    refuse(RawTensor { shape: Some(&[2, -3]), ..good }, "negative_extent", "shape[1]");
    refuse(RawTensor { shape: Some(&[i64::MAX, 3]), ..good }, "size_overflow", "shape");
    refuse(RawTensor { shape: Some(&[i64::MAX, 1]), ..good }, "size_overflow", "shape");
    for stride in [i64::MAX, i64::MIN, i64::MIN / 2] {
        refuse(RawTensor { strides: Some(&[stride, 1]), ..good }, "extent_overflow", "strides");
    }
    refuse(RawTensor { strides: Some(&[-2048, 1]), ..good }, "address_overflow", "data");
    refuse(RawTensor { data: 0, ..good }, "null_pointer", "data");
    assert!(check(RawTensor { data: 0, shape: Some(&[0, 3]), ..good }).is_ok());
    refuse(RawTensor { byte_offset: u64::MAX, ..good }, "extent_overflow", "byte_offset");
    refuse(RawTensor { data: u64::MAX, ..good }, "address_overflow", "data");
    for device in [0, 5, 6, 19, -1, i32::MAX] {
        refuse(RawTensor { device: (device, 0), ..good }, "bad_device", "device");
    }
    for (code, bits, lanes) in [
        (18, 8, 1),
        (255, 8, 1),
        (2, 0, 1),
        (2, 8, 1),
        (2, 32, 0),
        (0, 65, 1),
        (6, 1, 1),
        (17, 8, 1),
        (4, 32, 1),
    ] {
        refuse(RawTensor { dtype: DataType { code, bits, lanes }, ..good }, "bad_data_type", "dtype");
    }
    // 64 bits times 65535 lanes times the largest shape must not wrap.
    let wide = DataType { code: 0, bits: 64, lanes: u16::MAX };
    refuse(RawTensor { dtype: wide, shape: Some(&[1 << 50, 1]), ..good }, "size_overflow", "shape");
    // Packed 4-bit elements: five of them are three bytes; padded they are five.
    let int4 = DataType { code: 0, bits: 4, lanes: 1 };
    let packed = RawTensor { dtype: int4, ndim: 1, shape: Some(&[5]), strides: Some(&[1]), ..good };
    assert_eq!(check(packed).unwrap().extent(), Extent { low: 0, high: 3 });
    assert_eq!(check(RawTensor { flags: 4, ..packed }).unwrap().extent(), Extent { low: 0, high: 5 });
}

#[test]
fn a_protocol_can_be_asked_for() {
    let mut table = [Field::EMPTY; 4];
    let text = sycl("");
    let array = dict::parse::<8>(&text, Some(Protocol::Array), &Policy::default(), &mut table).unwrap();
    assert_eq!(array.protocol(), Protocol::Array);
}
