//! The results as a page.

use std::fmt::Write as _;
use std::path::Path;

use super::peers::{self, MINIMALLOC, OMNIMALLOC, Peer};
use super::{LIMIT, RUNS, openvino};
use crate::row::Row;

/// Writes the results in Markdown, with the peers and their limits. `beyond` tells which peers gave
/// no result, and why.
pub(super) fn write(path: &Path, rows: &[Row], beyond: &[String]) -> Result<(), String> {
    std::fs::write(path, text(rows, beyond)).map_err(|error| format!("{}: {error}", path.display()))
}

fn text(rows: &[Row], beyond: &[String]) -> String {
    let mut page = String::from("# The planner beside its peers\n\n");
    let _ = writeln!(
        page,
        "Written by `cargo xtask bench planner --table FILE --instances DIR...`. Ours are plans of\n\
         `auto`, on one thread. A table of a folder has {} s; a synthetic one has the default\n\
         budget of nodes. Every plan is verified. Below 1 ours is better.\n",
        LIMIT.as_secs()
    );
    page += "| peer | program | limits |\n|---|---|---|\n";
    page += "| lower bound | proven with the plan | – |\n";
    page += "| `greedy-by-size`, `best-fit`, `whole-buffer` | strategies of usm-pool, in this process | below 20,000 buffers |\n";
    let process = format!("{} s and {} GiB a run", peers::TIME.as_secs(), peers::GIBIBYTES);
    let budget = format!("told {} s; {process}", peers::BUDGET.as_secs());
    for (Peer { name, variable, about }, limits) in
        [(&MINIMALLOC, format!("{process}, median of {RUNS}")), (&OMNIMALLOC, budget)]
    {
        let program = match (Peer { name, variable, about }).program() {
            Some(program) => cell(&program.to_string_lossy()),
            None => format!("not run: `{variable}` does not name it"),
        };
        let _ = writeln!(page, "| {name} | {about}: {program} | {limits} |");
    }
    let _ = writeln!(page, "| {} | none: the bytes that its own tests expect | – |\n", openvino::PEER);
    page += "| case | peer | unit | ours | theirs | ours / theirs |\n|---|---|---|---|---|---|\n";
    for Row { case, peer, unit, ours, theirs, ratio, .. } in rows {
        let number = |number: &f64| match number.fract() == 0.0 {
            true => format!("{number}"),
            false => format!("{number:.4}"),
        };
        let (case, ours, theirs) = (cell(case), number(ours), number(theirs));
        let _ = writeln!(page, "| {case} | {peer} | {unit} | {ours} | {theirs} | {ratio:.4} |");
    }
    if !beyond.is_empty() {
        page += "\nWithout a result within the limits:\n\n";
        for line in beyond {
            let _ = writeln!(page, "- {}", cell(line));
        }
    }
    page
}

/// A text that ends no cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_and_every_peer_is_on_the_page() {
        let rows = [Row::new("a|b", "lower bound", "bytes", 6.0, 4.0), Row::new("c", "x", "s", 0.5, 2.0)];
        let page = text(&rows, &["d: omnimalloc: nothing".to_owned()]);
        assert!(page.contains("| a\\|b | lower bound | bytes | 6 | 4 | 1.5000 |\n"), "{page}");
        assert!(page.contains("| c | x | s | 0.5000 | 2 | 0.2500 |\n"), "{page}");
        assert!(page.ends_with("\n- d: omnimalloc: nothing\n"), "{page}");
        for peer in [MINIMALLOC.name, OMNIMALLOC.name, openvino::PEER] {
            assert!(page.contains(&format!("\n| {peer} | ")), "{page}");
        }
        assert!(!text(&rows, &[]).contains("Without a result"));
    }
}
