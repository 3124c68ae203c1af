//! Tables for notebooks. This file escapes all text.

use std::fmt::Write;

/// `text` escaped for a page.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(letter),
        }
    }
    out
}

/// A number of bytes with a readable unit.
pub(crate) fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            let digits = usize::from(unit != "bytes");
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

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
