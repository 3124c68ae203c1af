//! A plan, or two side by side, as one HTML page: zoom, search, what is live at a time, and a click
//! describes a block. It loads nothing from the network.
//!
//! The page is a fixed text with the plan as JSON in it. Names are data there, and the page's
//! script shows them as text only, so no name can be markup.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use core::fmt::Write as _;

use crate::dependency::Queue;
use crate::graph::Graph;
use crate::plan::{Certificate, Plan};

/// The page around the data.
const PAGE: &str = include_str!("html/page.html");

/// The placeholder of the data in the page.
const PLACE: &str = "{\"here\":\"the plan\"}";

/// The largest integer that JavaScript represents exactly.
const LARGEST: u64 = (1 << 53) - 1;

/// Writes the page of a plan; `title` is the name of the graph or table. Names, producers and
/// readers come from the graph.
#[must_use]
pub fn render(plan: &Plan, graph: Option<&Graph>, title: &str) -> String {
    render_all(&[Page { plan, graph, title }])
}

/// One plan of a page: its graph gives names, producers and readers.
#[derive(Clone, Copy, Debug)]
pub struct Page<'p> {
    /// The plan.
    pub plan: &'p Plan,
    /// The graph that the plan is for, if it is for one.
    pub graph: Option<&'p Graph>,
    /// The name of the graph or table.
    pub title: &'p str,
}

/// Writes one page with these plans side by side, at one scale of bytes.
#[must_use]
pub fn render_all(pages: &[Page<'_>]) -> String {
    let mut plans = String::from("[");
    list(&mut plans, pages, |json, page| json.push_str(&data(page.plan, page.graph, page.title)));
    plans.push(']');
    PAGE.replacen(PLACE, &plans, 1)
}

/// The plan as a JSON document: sizes and offsets in bytes; tensors by their place in `rows`,
/// operators by their place in `operators`.
fn data(plan: &Plan, graph: Option<&Graph>, title: &str) -> String {
    let mut json = String::from("{\"title\":");
    text(&mut json, title);
    let queue = match plan.queue {
        Queue::InOrder => "in-order",
        Queue::OutOfOrder => "out-of-order",
    };
    // Writing to a String cannot fail, here and below.
    let _ = write!(json, ",\"queue\":\"{queue}\",\"strategy\":\"{}\",\"optimal\":", plan.strategy.name());
    let _ = write!(json, "{},\"buffers\":{}", plan.optimal(), plan.buffers());
    for (key, value) in [("peak", plan.peak), ("bound", plan.lower_bound), ("naive", plan.naive)] {
        let _ = write!(json, ",\"{key}\":");
        number(&mut json, value);
    }
    json.push_str(",\"certificate\":");
    certificate(&mut json, plan);
    json.push_str(",\"memories\":[");
    list(&mut json, plan.memories.iter().filter(|used| used.buffers > 0), |json, used| {
        json.push_str("{\"name\":");
        text(json, used.memory.name_in(graph));
        json.push_str(",\"peak\":");
        number(json, used.peak);
        json.push('}');
    });
    json.push_str("],\"operators\":[");
    list(&mut json, graph.map_or(&[][..], Graph::ops), |json, op| text(json, &op.name));
    json.push_str("],\"rows\":[");
    let mut seen_buffers = BTreeSet::new();
    list(&mut json, &plan.rows, |json, row| {
        json.push('[');
        for value in [row.id, row.lower, row.upper, row.size, row.offset] {
            number(json, value);
            json.push(',');
        }
        let memory = plan.memories.iter().filter(|used| used.buffers > 0);
        let memory = memory.enumerate().find(|(_, used)| used.memory == row.memory).map_or(0, |(at, _)| at);
        let _ = write!(json, "{memory},{},{},", u8::from(!seen_buffers.insert(row.buffer)), row.buffer);
        let node = graph.and_then(|graph| Some(&graph.tensors()[graph.tensor_index(row.id)?]));
        match node.and_then(|node| node.name.as_deref()) {
            Some(name) => text(json, name),
            None => json.push_str("null"),
        }
        match node.and_then(|node| node.producer) {
            Some(op) => {
                let _ = write!(json, ",{op},[");
            }
            None => json.push_str(",-1,["),
        }
        list(json, node.map_or(&[][..], |node| &node.users), |json, op| {
            let _ = write!(json, "{op}");
        });
        json.push_str("]]");
    });
    json.push_str("]}");
    json
}

fn certificate(json: &mut String, plan: &Plan) {
    let places: BTreeMap<u64, usize> = plan.rows.iter().enumerate().map(|(at, row)| (row.id, at)).collect();
    let (words, buffers) = match &plan.certificate {
        Certificate::TimeCut { time, buffers } => {
            (format!("{} buffers are live at time {time}", buffers.len()), buffers.as_slice())
        }
        Certificate::Antichain { buffers } => {
            (format!("{} buffers are pairwise in conflict", buffers.len()), buffers.as_slice())
        }
        Certificate::Search { nodes, capacity } => {
            (format!("a search of {nodes} nodes found no plan in {capacity} bytes: no proof"), &[][..])
        }
    };
    json.push_str("{\"words\":");
    text(json, &words);
    json.push_str(",\"rows\":[");
    list(json, buffers.iter().filter_map(|id| places.get(id)), |json, at| {
        let _ = write!(json, "{at}");
    });
    json.push_str("]}");
}

fn list<T>(json: &mut String, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut String, T)) {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        each(json, item);
    }
}

/// A number if JavaScript represents it exactly, otherwise its digits as a string.
fn number(json: &mut String, value: u64) {
    let _ = if value > LARGEST { write!(json, "\"{value}\"") } else { write!(json, "{value}") };
}

/// A text that ends neither its quotes nor the element of HTML around it.
pub(crate) fn text(json: &mut String, text: &str) {
    json.push('"');
    for letter in text.chars() {
        if letter.is_control() || matches!(letter, '"' | '\\' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}') {
            // All of these are in the first plane.
            let _ = write!(json, "\\u{:04x}", u32::from(letter));
        } else {
            json.push(letter);
        }
    }
    json.push('"');
}
