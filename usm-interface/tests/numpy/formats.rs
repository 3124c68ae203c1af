//! Formats of NumPy's structured types: an accepted one has NumPy's offsets, and an ambiguous one
//! is refused.

use usm_interface::pep3118::{self, Padding};
use usm_interface::{ErrorKind, Field, StructureError, members};

use crate::ask::NumPy;

/// The offset of each element of each member, in order.
fn places(table: &[Field<'_>], start: u64, out: &mut Vec<u64>) {
    for (field, inner) in members(table).filter(|(field, _)| !field.is_padding()) {
        let (first, size) = (start + u64::from(field.offset()), u64::from(field.dtype().itemsize()));
        for index in 0..field.shape().count().expect("it fits") {
            if field.is_nested() {
                places(inner, first + index * size, out);
            } else {
                out.push(first + index * size);
            }
        }
    }
}

fn check(numpy: NumPy) {
    let count = super::cases() / 5;
    let Some(answers) = numpy.formats(count) else { return };
    let (mut taken, mut refused, mut arrays) = (0, 0, 0);
    for answer in answers.iter().filter(|answer| !answer.is_null()) {
        let (format, itemsize) = (answer[0].as_str().unwrap(), answer[1].as_u64().unwrap());
        let expected: Vec<u64> = answer[2].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        for padding in [Padding::Trailing, Padding::AsWritten] {
            let mut table = vec![Field::EMPTY; 256];
            match pep3118::parse(format, itemsize, padding, &mut table) {
                Ok(element) => {
                    let mut here = Vec::new();
                    places(element.structure.expect("a structure").fields(), 0, &mut here);
                    assert_eq!(here, expected, "{padding:?} {format} of {itemsize} bytes");
                    taken += 1;
                    arrays += usize::from(format.contains(")T{"));
                }
                Err(error) => {
                    let kind = error.kind();
                    let ambiguous =
                        matches!(kind, ErrorKind::Structure(StructureError::AmbiguousPadding { .. }));
                    let size = matches!(kind, ErrorKind::Structure(StructureError::FormatSize { .. }));
                    // Every type of NumPy's without nested structures is accepted.
                    let nested = format.get(2..).is_some_and(|rest| rest.contains("T{"));
                    let meant = ((ambiguous || size) && nested) || (size && padding == Padding::AsWritten);
                    assert!(meant, "{padding:?} {format} of {itemsize} bytes: {error}");
                    refused += 1;
                }
            }
        }
    }
    println!(
        "{numpy:?}: {taken} formats taken, {arrays} of them with arrays of structures, {refused} refused"
    );
    assert!(taken > count / 4 && arrays > count / 10 && refused > count / 10);
}

#[test]
fn members_lie_where_numpy_2_has_them() {
    check(NumPy::Two);
}

#[test]
fn members_lie_where_numpy_1_has_them() {
    check(NumPy::One);
}
