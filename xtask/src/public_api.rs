//! `cargo xtask public-api [--write]`: compares the public items of every library with the list in
//! `public-api/CRATE.txt`.
//!
//! The items come from rustdoc's pages with all features, because rustdoc's JSON needs a nightly
//! toolchain. So a list has the items that a user can name, one a line, with re-exports resolved.
//! Another version of rustdoc may write an item in another way; the lists are then written again in
//! a commit of their own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::command::cargo;
use crate::report::Report;
use crate::{environment, folder, members};

/// A foreign crate that ours re-export under its own name.
const OF_OTHERS: &str = "bytemuck";

/// The toolkit of runtimes; its items may change in any version.
const EXEMPT: [&str; 2] = ["usm_core::driver", "usm::driver"];

/// The kinds of items, with which the names of rustdoc's pages begin.
const SORTS: [&str; 10] =
    ["attr", "constant", "enum", "fn", "macro", "static", "struct", "trait", "type", "union"];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let write = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--write"] => true,
        _ => return Err(Failure::Usage(format!("public-api does not take `{}`", arguments.join(" ")))),
    };
    let mut report = Report::new();
    if !write {
        parts(&mut report);
    } else if pages(&mut report) {
        for name in members::published() {
            report.check(&format!("public interface: {name}"), || {
                let path = kept(name);
                fs::create_dir_all(path.parent().unwrap_or(&path))
                    .map_err(|error| folder::at(&path, &error))?;
                fs::write(&path, listed(name)?).map_err(|error| folder::at(&path, &error))
            });
        }
    }
    report.finish()
}

/// Writes the pages and compares each list with them.
pub(crate) fn parts(report: &mut Report) {
    if pages(report) {
        for name in members::published() {
            report.check(&format!("public interface: {name}"), || compare(name));
        }
    }
}

/// The folder for the pages: one of its own, because rustdoc keeps pages of removed items.
fn folder_of_pages() -> PathBuf {
    environment::target_dir().join("public-api")
}

fn pages(report: &mut Report) -> bool {
    let _ = fs::remove_dir_all(folder_of_pages().join("doc"));
    let mut doc = cargo(["doc", "--quiet", "--no-deps", "--all-features", "--lib", "--target-dir"]);
    doc.arg(folder_of_pages()).args(members::published().iter().flat_map(|name| ["-p", name]));
    report.command("public interface: pages", &mut doc)
}

fn compare(name: &str) -> Result<(), String> {
    let path = kept(name);
    let before = fs::read_to_string(&path).map_err(|error| folder::at(&path, &error))?;
    let now = listed(name)?;
    let differences = differences(&before, &now);
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nif that is meant: `cargo xtask public-api --write`, and a line in CHANGELOG.md",
        differences.join("\n")
    ))
}

/// Lines in only one of two sorted lists: `- gone`, `+ new`.
fn differences(before: &str, now: &str) -> Vec<String> {
    let difference = |these: &str, those: &str, sign: char| {
        let others: Vec<&str> = those.lines().collect();
        let missing_lines =
            these.lines().filter(|line| !others.contains(line)).map(|line| format!("{sign} {line}"));
        missing_lines.collect::<Vec<_>>()
    };
    [difference(before, now, '-'), difference(now, before, '+')].concat()
}

fn kept(name: &str) -> PathBuf {
    environment::root().join("public-api").join(name).with_extension("txt")
}

/// The list of a crate, from its pages.
fn listed(name: &str) -> Result<String, String> {
    let root = name.replace('-', "_");
    let pages = folder_of_pages().join("doc").join(&root);
    let mut items = Vec::new();
    walk(&pages, &root, &mut items)?;
    items.sort();
    items.dedup();
    if items.is_empty() {
        return Err(format!("{}: no item in any page", pages.display()));
    }
    Ok(items.join("\n") + "\n")
}

fn walk(pages: &Path, module: &str, items: &mut Vec<String>) -> Result<(), String> {
    for entry in fs::read_dir(pages).map_err(|error| folder::at(pages, &error))?.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && EXEMPT.contains(&format!("{module}::{name}").as_str()) {
            items.push(format!("{module}::{name}: exempt from semver"));
        } else if path.is_dir() && name == OF_OTHERS {
            items.push(format!("{module}: pub use {name}"));
        } else if path.is_dir() {
            walk(&path, &format!("{module}::{name}"), items)?;
        }
        let Some(stem) = name.strip_suffix(".html") else { continue };
        let read = || fs::read_to_string(&path).map_err(|error| folder::at(&path, &error));
        if stem == "index" {
            let text = read()?;
            // Re-exports of another crate have no page here.
            items.extend(
                between(&text, "<code>pub use ", "</code>")
                    .map(|item| format!("{module}: pub use {}", plain(item))),
            );
        } else if let Some((sort, item)) = stem.split_once('.').filter(|(sort, _)| SORTS.contains(sort)) {
            page(&read()?, &format!("{module}::{item}"), sort, items);
        }
    }
    Ok(())
}

/// The lines of an item: its declaration, its own methods and constants, and the traits that it
/// implements itself.
fn page(text: &str, path: &str, sort: &str, items: &mut Vec<String>) {
    let declaration =
        between(text, "<pre class=\"rust item-decl\">", "</pre>").next().map(plain).unwrap_or_default();
    items.push(format!("{path}: {declaration}"));
    if sort == "trait" {
        return;
    }
    // The rest is true of every type, or follows from its fields.
    let end = ["id=\"synthetic-implementations\"", "id=\"blanket-implementations\"", "id=\"deref-methods"];
    let end = end.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    let (own, traits) = text[..end].split_once("id=\"trait-implementations\"").unwrap_or((&text[..end], ""));
    items.extend(
        between(own, "<h4 class=\"code-header\">", "</h4>").map(|head| format!("{path}: {}", plain(head))),
    );
    items.extend(
        between(traits, "<h3 class=\"code-header\">", "</h3>").map(|head| format!("{path}: {}", plain(head))),
    );
}

fn between<'t>(text: &'t str, start: &'t str, end: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(start).skip(1).filter_map(move |rest| rest.split(end).next())
}

/// The words of a part of a page, on one line.
fn plain(html: &str) -> String {
    let mut text = String::new();
    // The control that unfolds a long list is not part of it.
    let mut pieces = html.split("<summary");
    text.push_str(pieces.next().unwrap_or_default());
    pieces.for_each(|piece| text.push_str(piece.split_once("</summary>").map_or("", |(_, rest)| rest)));
    let (mut words, mut tag) = (String::new(), false);
    // A division begins a line.
    for letter in text.replace("<div", " <div").replace("<br", " <br").chars() {
        match letter {
            '<' => tag = true,
            '>' if tag => tag = false,
            _ if !tag => words.push(letter),
            _ => {}
        }
    }
    let words = words.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    let words = words.replace("&nbsp;", " ").replace("&amp;", "&").replace('§', "");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read() {
        let text = concat!(
            "<pre class=\"rust item-decl\"><code>pub struct <a href=\"x\">A</a>&lt;T&gt; { <span>/* private</span> fields */ }</code></pre>",
            "<h4 class=\"code-header\">pub fn <a>new</a>(a: &amp;T) -&gt; Self<div class=\"where\">where T: Copy</div></h4>",
            "<h2 id=\"trait-implementations\"><h3 class=\"code-header\">impl Clone for A</h3>",
            "<h4 class=\"code-header\">fn clone(&amp;self)</h4>",
            "<h2 id=\"blanket-implementations\"><h3 class=\"code-header\">impl Any for T</h3>",
        );
        let mut items = Vec::new();
        page(text, "a::A", "struct", &mut items);
        assert_eq!(
            items,
            [
                "a::A: pub struct A<T> { /* private fields */ }",
                "a::A: pub fn new(a: &T) -> Self where T: Copy",
                "a::A: impl Clone for A"
            ]
        );
    }

    #[test]
    fn removed_and_new_items_are_distinguished() {
        assert_eq!(differences("a\nb\n", "b\nc\n"), ["- a", "+ c"]);
        assert!(differences("a\n", "a\n").is_empty());
    }
}
