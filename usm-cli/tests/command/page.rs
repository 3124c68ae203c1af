//! `usm plan --html`: one page for a browser, in which names are data.

use serde_json::{Value, json};

use crate::support::{file, folder, text, usm};

/// The only plan of the page.
fn data(page: &str) -> Value {
    let plans = plans(page);
    assert_eq!(plans.as_array().map(Vec::len), Some(1));
    plans[0].clone()
}

/// The plans of the page: the content of the element `plan`.
fn plans(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"plan\">";
    let from = page.find(start).expect("the element with the plan") + start.len();
    let end = from + page[from..].find("</script>").expect("the end of the element");
    serde_json::from_str(&page[from..end]).expect("JSON")
}

#[test]
fn a_page_has_the_plan_and_names_are_never_markup() {
    let folder = folder("page");
    let names = ["</script><b>x", "<!--<script>", "a\"b\\c", "line\nend\u{2028}", "&lt;", "naïve 名"];
    let tensors: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(id, name)| json!({"id": id, "size": 64 << id, "name": name}))
        .collect();
    let ops: Vec<Value> = (0..names.len())
        .map(
            |n| json!({"name": names[n], "inputs": if n > 0 { vec![n - 1] } else { vec![] }, "outputs": [n]}),
        )
        .collect();
    let graph = json!({"tensors": tensors, "ops": ops, "outputs": [names.len() - 1]}).to_string();
    // Windows refuses such a file.
    let name = if cfg!(windows) { "graph.json" } else { "graph<i>.json" };
    let (graph, page) = (file(&folder, name, graph), text(&folder.join("plan.html")));
    let ran = usm(&["plan", &graph, "--json", "--html", &page]);
    let report = ran.json();
    let page = std::fs::read_to_string(page).expect("the page");
    // Two script elements, data and code, as in a page without names.
    assert_eq!((page.matches("<script").count(), page.matches("</script>").count()), (2, 2));
    assert!(!page.contains("<b>x") && !page.contains("<!--<script>") && !page.contains('\u{2028}'));
    // Nothing comes from the network, and the page forbids it to the browser.
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src="));
    assert!(!page.contains("innerHTML") && !page.contains("document.write") && !page.contains("eval("));
    let data = data(&page);
    assert_eq!((&data["peak"], &data["bound"]), (&report["peak"], &report["lower_bound"]));
    let shown: Vec<&str> =
        data["operators"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    assert_eq!(shown, names);
    let rows = data["rows"].as_array().unwrap();
    assert_eq!(rows.len(), names.len());
    for (id, name) in names.iter().enumerate() {
        let row = rows.iter().find(|row| row[0] == id).expect("a row for each tensor");
        assert!(row.as_array().unwrap().contains(&json!(name)), "{row}");
        assert_eq!(row[3], 64 << id);
    }
}

#[test]
fn a_table_has_a_page_and_a_file_that_cannot_be_written_is_named() {
    let folder = folder("page_table");
    let table = file(&folder, "table.csv", "id,lower,upper,size\n0,0,2,64\n1,1,3,18446744073709551000\n");
    let page = text(&folder.join("plan.html"));
    usm(&["plan", &table, "--json", "--html", &page]).json();
    let data = data(&std::fs::read_to_string(&page).expect("the page"));
    // A number that browsers cannot represent exactly is a text.
    assert_eq!(data["rows"][1][3], "18446744073709551000");
    let nowhere = text(&folder.join("missing").join("plan.html"));
    let ran = usm(&["plan", &table, "--html", &nowhere]);
    assert!(ran.stderr.contains("plan.html") && ran.code == 1, "{} {}", ran.code, ran.stderr);
}

#[test]
fn a_page_shows_a_second_plan_beside_the_first() {
    let folder = folder("page_pair");
    let small = file(&folder, "small.csv", "id,lower,upper,size\n0,0,2,64\n1,1,3,64\n");
    let large = file(&folder, "large.csv", "id,lower,upper,size\n0,0,2,512\n1,1,3,512\n");
    let page = text(&folder.join("both.html"));
    let ran = usm(&["plan", &small, "--compare-with", &large, "--html", &page]);
    assert!(ran.code == 0 && ran.stdout.contains("large.csv: peak 1.00 KiB (1024 bytes), 8.000 of this one"));
    let plans = plans(&std::fs::read_to_string(&page).expect("the page"));
    let found = plans.as_array().unwrap().iter().map(|plan| (plan["title"].as_str(), plan["peak"].as_u64()));
    assert_eq!(found.collect::<Vec<_>>(), [(Some("small.csv"), Some(128)), (Some("large.csv"), Some(1024))]);
    // Without a page there is nothing to show it on; a file that is not there is named.
    assert_eq!(usm(&["plan", &small, "--compare-with", &large]).code, 2);
    let ran = usm(&["plan", &small, "--compare-with", "missing.csv", "--html", &page]);
    assert!(ran.code == 2 && ran.stderr.contains("missing.csv"), "{}", ran.stderr);
    // A plan that does not fit is no plan to show.
    let ran = usm(&["plan", &small, "--compare-with", &large, "--html", &page, "--capacity", "200"]);
    assert!(ran.code == 1 && ran.stderr.contains("large.csv has no plan"), "{}", ran.stderr);
}
