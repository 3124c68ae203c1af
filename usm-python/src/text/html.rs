//! Tables for notebooks. This file escapes all text.

use std::fmt::Write;

use usm_plan::usm_pool::svg::escaped;

/// Names with their values.
pub(crate) fn properties(rows: &[(&str, String)]) -> String {
    let mut out = String::from("<table>");
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = write!(out, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value));
    }
    out.push_str("</table>");
    out
}

/// Rows under their headings.
pub(crate) fn table<const N: usize>(heads: &[&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut out = String::from("<table><tr>");
    for head in heads {
        let _ = write!(out, "<th>{}</th>", escaped(head));
    }
    out.push_str("</tr>");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escaped(&cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table>");
    out
}

/// Text whose lines and spaces are kept.
pub(crate) fn preformatted(text: &str) -> String {
    format!("<pre>{}</pre>", escaped(text))
}
