//! Every field of a request is in the command, in Python and in C, or the page of usm-plan says
//! what is there in its place. That the stub is Python's own signature, Python's tests check.

use usm_plan::Field;

use crate::support::usm;

const PAGE: &str = include_str!("../../../usm-plan/README.md");
const HEADER: &str = include_str!("../../../usm-plan/include/usm_plan.h");
const STUB: &str = include_str!("../../../usm-python/python/usm/_usm.pyi");

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start:?}"));
    rest.split_once(end).unwrap_or_else(|| panic!("no {end:?}")).0
}

/// What the page says of a field in the command, Python and C, if it is an exception.
fn exception(keyword: &str) -> Option<Vec<&'static str>> {
    let table = between(PAGE, "| field | command | Python | C |\n", "\n\n");
    let mut rows = table.lines().map(|row| row.trim_matches('|').split('|').collect::<Vec<_>>());
    let cells = rows.find(|cells| cells[0].contains(&format!("`{keyword}`")))?;
    Some(cells[1..].to_vec())
}

#[test]
fn each_face_has_every_field_that_the_page_does_not_except() {
    let help = usm(&["plan", "--help"]).stdout;
    let is_option = |name: &str| {
        help.lines()
            .any(|line| line.strip_prefix("      ").and_then(|line| line.split(' ').next()) == Some(name))
    };
    let parameters = between(STUB, "\ndef plan(\n", "\n) -> Plan");
    let is_parameter = |keyword: &str| parameters.contains(&format!("    {keyword}: "));
    let members = between(HEADER, "typedef struct usm_plan_options {", "}");
    let is_member = |keyword: &str| members.contains(&format!("uint64_t {keyword};"));

    for &field in Field::ALL {
        let keyword = field.keyword();
        let faces = [
            ("usm plan", field.option(), is_option(&field.option())),
            ("usm.plan", format!("{keyword}="), is_parameter(keyword)),
            ("usm_plan.h", field.member(), is_member(keyword)),
        ];
        let cells = exception(keyword);
        for (at, (face, name, is_there)) in faces.into_iter().enumerate() {
            let is_promised = cells.as_ref().is_none_or(|cells| cells[at].contains(&format!("`{name}`")));
            assert_eq!(
                is_there, is_promised,
                "{face}: {name}: is it there, and does usm-plan/README.md say so?"
            );
        }
    }
}
