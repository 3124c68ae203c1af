//! A picture of a plan: time across, address up, one block for each tensor.
//!
//! Dark outlines mark the buffers of the certificate; the line of live bytes shows the origin of
//! the bound. Every element has a tooltip.

pub(crate) mod axis;
mod curve;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

pub use self::curve::recompute_curve;

use self::axis::{Unit, ticks};
use crate::dependency::Queue;
use crate::graph::Graph;
use crate::plan::{Certificate, Memory, Plan, Row};

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 76.0;
const PANEL: f64 = 520.0;
const BETWEEN: f64 = 84.0;
const LEGEND: f64 = 64.0;

/// Muted fills that are distinct for colour-blind readers and in print.
const FILLS: [&str; 8] =
    ["#88bde6", "#fbb258", "#90cd97", "#f6aac9", "#bfa554", "#bc99c7", "#eddd46", "#f07e6e"];

/// Draws a plan; `title` is the name of the graph or table. Names of tensors and operators come
/// from the graph.
#[must_use]
pub fn render(plan: &Plan, graph: Option<&Graph>, title: &str) -> String {
    let memories: Vec<Memory> =
        plan.memories.iter().filter(|used| used.buffers > 0).map(|used| used.memory).collect();
    let panels = memories.len().max(1) as f64;
    let height = TOP + panels * PANEL + (panels - 1.0) * BETWEEN + LEGEND + 40.0;
    let mut svg = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"13\">\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    );
    heading(&mut svg, plan, title);
    let picture = Picture::new(plan, graph);
    for (index, &memory) in memories.iter().enumerate() {
        let top = TOP + index as f64 * (PANEL + BETWEEN);
        picture.panel(&mut svg, memory, top, memories.len() > 1);
    }
    legend(&mut svg, plan, height - LEGEND + 14.0);
    svg.push_str("</svg>\n");
    svg
}

fn heading(svg: &mut String, plan: &Plan, title: &str) {
    let (unit, whole) = (Unit::of(plan.peak), Unit::of(plan.naive));
    let percent = if plan.naive == 0 { 100.0 } else { 100.0 * plan.peak as f64 / plan.naive as f64 };
    let proof = if plan.optimal() && plan.certificate.is_claim() {
        String::from("optimal, says the search")
    } else if plan.optimal() {
        String::from("proven optimal")
    } else {
        let above = 100.0 * (plan.peak as f64 / plan.lower_bound.max(1) as f64 - 1.0);
        format!("{above:.2} % above the lower bound")
    };
    let order = match plan.queue {
        Queue::InOrder => "in-order queue",
        Queue::OutOfOrder => "out-of-order queue (drawn in processing order)",
    };
    let _ = write!(
        svg,
        "<text x=\"{LEFT}\" y=\"28\" font-size=\"18\" font-weight=\"bold\">{}</text>\
         <text x=\"{LEFT}\" y=\"50\" fill=\"#444\">{} buffers, {order}: peak {}, {proof}; {percent:.1} % of the plain sum {}; \
         strategy {}</text>",
        escaped(title),
        plan.buffers(),
        unit.exact(plan.peak),
        whole.exact(plan.naive),
        plan.strategy.name()
    );
}

fn legend(svg: &mut String, plan: &Plan, y: f64) {
    let mut x = LEFT;
    let mut entry = |svg: &mut String, mark: &str, text: &str| {
        let _ = write!(
            svg,
            "<g transform=\"translate({x},{y})\">{mark}<text x=\"34\" y=\"11\" fill=\"#222\">{text}</text></g>"
        );
        x += 34.0 + 7.4 * text.len() as f64 + 28.0;
    };
    entry(svg, "<rect width=\"26\" height=\"13\" fill=\"#88bde6\" stroke=\"#fff\"/>", "tensor");
    let proof = match &plan.certificate {
        Certificate::TimeCut { .. } => "live at the time cut (dotted): proves the bound",
        Certificate::Antichain { .. } => "pairwise in conflict: prove the bound",
        Certificate::Search { .. } => "a search found nothing below: no proof",
    };
    entry(
        svg,
        "<rect width=\"26\" height=\"13\" fill=\"#88bde6\" stroke=\"#111\" stroke-width=\"2\"/>",
        proof,
    );
    entry(svg, "<line y1=\"7\" y2=\"7\" x2=\"26\" stroke=\"#333\" stroke-width=\"1.5\"/>", "live bytes");
    entry(svg, "<line y1=\"7\" y2=\"7\" x2=\"26\" stroke=\"#c00\" stroke-width=\"2\"/>", "peak");
    entry(
        svg,
        "<line y1=\"7\" y2=\"7\" x2=\"26\" stroke=\"#070\" stroke-width=\"2\" stroke-dasharray=\"7 4\"/>",
        "lower bound",
    );
    if plan.rows.iter().any(|row| is_inner(plan, row)) {
        entry(
            svg,
            "<rect width=\"26\" height=\"13\" fill=\"none\" stroke=\"#555\" stroke-dasharray=\"3 2\"/>",
            "view or in-place result",
        );
    }
}

/// Whether the tensor lies in another tensor's buffer.
fn is_inner(plan: &Plan, row: &Row) -> bool {
    let first = plan.rows.iter().find(|other| other.buffer == row.buffer);
    first.is_some_and(|first| first.id != row.id)
}

struct Picture<'a> {
    plan: &'a Plan,
    graph: Option<&'a Graph>,
    end: u64,
    certificate_ids: BTreeSet<u64>,
    inner: Vec<bool>,
}

impl<'a> Picture<'a> {
    fn new(plan: &'a Plan, graph: Option<&'a Graph>) -> Self {
        let certificate_ids = match &plan.certificate {
            Certificate::TimeCut { buffers, .. } | Certificate::Antichain { buffers } => {
                buffers.iter().copied().collect()
            }
            Certificate::Search { .. } => BTreeSet::new(),
        };
        let mut seen_buffers = BTreeSet::new();
        let inner = plan.rows.iter().map(|row| !seen_buffers.insert(row.buffer)).collect();
        let end = plan.rows.iter().map(|row| row.upper).max().unwrap_or(1).max(1);
        Self { plan, graph, end, certificate_ids, inner }
    }

    fn x(&self, time: u64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (time as f64 / self.end as f64)
    }

    fn panel(&self, svg: &mut String, memory: Memory, top: f64, has_name: bool) {
        let plan = self.plan;
        let peak = plan.memories.iter().find(|used| used.memory == memory).map_or(0, |used| used.peak);
        // The bound is on the sum of the memories; with one memory it can be drawn.
        let bound = (!has_name).then_some(plan.lower_bound);
        let roof = peak.max(bound.unwrap_or(0)).max(1);
        let scale = PANEL / (roof as f64 * 1.06);
        let y = |bytes: u64| top + PANEL - bytes as f64 * scale;
        let unit = Unit::of(roof);
        let (right, bottom) = (WIDTH - RIGHT, top + PANEL);
        if has_name {
            let _ = write!(
                svg,
                "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{} memory</text>",
                top - 8.0,
                escaped(memory.name_in(self.graph))
            );
        }
        for bytes in ticks(roof, unit.bytes, 8) {
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{0:.1}\" y2=\"{0:.1}\" stroke=\"#e4e4e4\"/>\
                 <text x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\" fill=\"#444\">{3}</text>",
                y(bytes),
                LEFT - 8.0,
                y(bytes) + 4.0,
                unit.short(bytes)
            );
        }
        for time in ticks(self.end, 1, 12) {
            let _ = write!(
                svg,
                "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{bottom}\" y2=\"{1}\" stroke=\"#444\"/>\
                 <text x=\"{0:.1}\" y=\"{2}\" text-anchor=\"middle\" fill=\"#444\">{time}</text>",
                self.x(time),
                bottom + 5.0,
                bottom + 20.0
            );
        }
        self.blocks(svg, memory, &y);
        self.live_bytes(svg, memory, &y);
        if let Certificate::TimeCut { time, .. } = plan.certificate {
            let at = (self.x(time) + self.x(time + 1)) / 2.0;
            let _ = write!(
                svg,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top}\" y2=\"{bottom}\" stroke=\"#070\" stroke-dasharray=\"2 4\">\
                 <title>time cut at {time}</title></line>"
            );
        }
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\" stroke=\"#444\"/>\
             <line x1=\"{LEFT}\" x2=\"{LEFT}\" y1=\"{top}\" y2=\"{bottom}\" stroke=\"#444\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#222\">time (operator index)</text>\
             <text transform=\"translate(22,{}) rotate(-90)\" text-anchor=\"middle\" fill=\"#222\">address ({})</text>",
            (LEFT + right) / 2.0,
            bottom + 40.0,
            top + PANEL / 2.0,
            unit.name
        );
        let line = |svg: &mut String, bytes: u64, style: &str, dy: f64, text: &str| {
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{0:.1}\" y2=\"{0:.1}\" {style}/>\
                 <text x=\"{1}\" y=\"{2:.1}\" fill=\"#222\">{text}</text>",
                y(bytes),
                right + 8.0,
                y(bytes) + dy
            );
        };
        line(svg, peak, "stroke=\"#c00\" stroke-width=\"2\"", -2.0, &format!("peak {}", unit.exact(peak)));
        if let Some(bound) = bound {
            let style = "stroke=\"#070\" stroke-width=\"2\" stroke-dasharray=\"7 4\"";
            line(svg, bound, style, 14.0, &format!("bound {}", unit.exact(bound)));
        }
    }

    /// Blocks of whole buffers first, views and in-place results as dashed outlines over them.
    fn blocks(&self, svg: &mut String, memory: Memory, y: &dyn Fn(u64) -> f64) {
        let rows =
            || self.plan.rows.iter().zip(&self.inner).filter(|(row, _)| row.memory == memory && row.size > 0);
        for (pass, (row, _)) in rows()
            .filter(|(_, inner)| !**inner)
            .map(|all| (0, all))
            .chain(rows().filter(|(_, inner)| **inner).map(|all| (1, all)))
        {
            let (x0, x1) = (self.x(row.lower), self.x(row.upper.max(row.lower)));
            let (y0, y1) = (y(row.offset.saturating_add(row.size)), y(row.offset));
            // With thousands of blocks, full outlines would hide everything else.
            let outline = |width: f64| width.min((x1 - x0).min(y1 - y0) / 4.0);
            let (dashes, stroke, width) = match (pass, self.certificate_ids.contains(&row.id)) {
                (1, _) => (" stroke-dasharray=\"3 2\"", "#555", outline(1.0)),
                (_, true) => ("", "#111", outline(1.6)),
                (_, false) => ("", "#fff", outline(0.6)),
            };
            let inside = if pass == 1 { "none" } else { fill(row.id) };
            let style = format!("fill=\"{inside}\" stroke=\"{stroke}\" stroke-width=\"{width:.3}\"{dashes}");
            let (name, operator) = self.graph.map_or((None, None), |graph| graph.labels(row.id));
            let label = |what: &str, text: Option<&str>| {
                text.map(|text| format!(", {what} {}", escaped(text))).unwrap_or_default()
            };
            let (name, operator) = (label("name", name), label("made by", operator));
            let unit = Unit::of(row.size);
            let _ = write!(
                svg,
                "<rect x=\"{x0:.2}\" y=\"{y0:.2}\" width=\"{:.2}\" height=\"{:.2}\" {style}><title>tensor {}: {} at offset {}, \
                 live [{}, {}){name}{operator}</title></rect>",
                x1 - x0,
                y1 - y0,
                row.id,
                unit.exact(row.size),
                row.offset,
                row.lower,
                row.upper
            );
            let text = format!("{}", row.id);
            if pass == 0 && y1 - y0 >= 14.0 && x1 - x0 >= 7.6 * text.len() as f64 + 6.0 {
                let _ = write!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#222\" \
                     pointer-events=\"none\">{text}</text>",
                    (x0 + x1) / 2.0,
                    (y0 + y1) / 2.0 + 4.0
                );
            }
        }
    }

    /// Sum of the live buffers over time, as a step line.
    fn live_bytes(&self, svg: &mut String, memory: Memory, y: &dyn Fn(u64) -> f64) {
        let mut hull: BTreeMap<usize, (u64, u64, u64)> = BTreeMap::new();
        for row in self.plan.rows.iter().filter(|row| row.memory == memory) {
            let whole = hull.entry(row.buffer).or_insert((row.lower, row.upper, 0));
            *whole = (whole.0.min(row.lower), whole.1.max(row.upper), whole.2.max(row.size));
        }
        let mut steps: BTreeMap<u64, i128> = BTreeMap::new();
        for (lower, upper, size) in hull.into_values().filter(|(lower, upper, _)| lower < upper) {
            *steps.entry(lower).or_insert(0) += i128::from(size);
            *steps.entry(upper).or_insert(0) -= i128::from(size);
        }
        let mut load = 0_i128;
        let mut path = format!("M{LEFT} {:.1}", y(0));
        for (time, change) in steps {
            load += change;
            let _ = write!(path, "H{:.1}V{:.1}", self.x(time), y(u64::try_from(load).unwrap_or(0)));
        }
        let _ = write!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"#333\" stroke-width=\"1.4\" stroke-opacity=\"0.6\"/>"
        );
    }
}

fn fill(id: u64) -> &'static str {
    // Neighbouring ids are neighbours in the picture: a step coprime to the palette gives them
    // different fills.
    FILLS[(id.wrapping_mul(3) % FILLS.len() as u64) as usize]
}

/// `text` for SVG and HTML: without markup, and without characters that XML does not allow.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(letter),
            // Other control characters and these two are not allowed in XML at all.
            control if control.is_control() => safe.push(' '),
            '\u{FFFE}' | '\u{FFFF}' => safe.push(' '),
            other => safe.push(other),
        }
    }
    safe
}
