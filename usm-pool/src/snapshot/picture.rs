//! The picture of a snapshot: for each context the bytes in use over time, and the live blocks.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::{Action, Device, Snapshot};
use crate::svg::axis::{Unit, ticks};
use crate::svg::escaped;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const HEAD: f64 = 44.0;
const PANEL: f64 = 160.0;
const FOOT: f64 = 40.0;

impl Snapshot {
    /// A picture with a panel for each context: time across, bytes in use up, refusals as red
    /// marks. Names appear as text, whatever they contain.
    #[must_use]
    pub fn svg(&self) -> String {
        let row = HEAD + PANEL + FOOT;
        let height = row * self.devices.len().max(1) as f64;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" \
             font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
        );
        if self.devices.is_empty() {
            let _ = write!(svg, "<text x=\"{LEFT}\" y=\"28\">no context is in use</text>");
        }
        for (index, device) in self.devices.iter().enumerate() {
            device.panel(&mut svg, row * index as f64);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

impl Device {
    fn panel(&self, svg: &mut String, top: f64) {
        let in_use = self.in_use();
        let (line, peak) = self.usage_line();
        let peak = peak.max(in_use);
        let (unit, blocks) = (Unit::of(peak), self.segments.iter().map(|it| it.blocks.len()).sum::<usize>());
        let _ = write!(
            svg,
            "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{}</text><text x=\"{LEFT}\" y=\"{}\" fill=\"#444\">\
             {blocks} blocks, {} in use, peak {}, {} events</text>",
            top + 18.0,
            escaped(&self.name),
            top + 35.0,
            unit.exact(in_use),
            unit.exact(peak),
            self.events.len()
        );
        let (ceiling, floor) = (top + HEAD, top + HEAD + PANEL);
        let y = |bytes: u64| floor - PANEL * bytes as f64 / (peak.max(1) as f64 * 1.05);
        for bytes in ticks(peak.max(1), unit.bytes, 4) {
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{0}\" y1=\"{1:.1}\" y2=\"{1:.1}\" stroke=\"#e4e4e4\"/>\
                 <text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\" fill=\"#444\">{4} {5}</text>",
                WIDTH - RIGHT,
                y(bytes),
                LEFT - 6.0,
                y(bytes) + 4.0,
                unit.short(bytes),
                unit.name
            );
        }
        let first = self.events.first().map_or(0, |event| event.time);
        let span = self.events.iter().map(|event| event.time.saturating_sub(first)).max().unwrap_or(0);
        let x = |time: u64| {
            LEFT + (WIDTH - LEFT - RIGHT) * time.saturating_sub(first) as f64 / span.max(1) as f64
        };
        let mut path = String::new();
        for (index, (time, bytes)) in line.iter().enumerate() {
            let at = x(*time);
            // Writing to a String cannot fail.
            let _ = match index {
                0 => write!(path, "M{at:.1} {:.1}", y(*bytes)),
                _ => write!(path, "H{at:.1}V{:.1}", y(*bytes)),
            };
        }
        if !path.is_empty() {
            let _ = write!(path, "H{:.1}", WIDTH - RIGHT);
            let _ = write!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"#2a6fb0\" stroke-width=\"1.5\"/>");
        }
        for event in self.events.iter().filter(|event| event.action == Action::Refuse) {
            let at = x(event.time);
            let _ = write!(
                svg,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{ceiling}\" y2=\"{floor}\" stroke=\"#c00\" stroke-width=\"2\">\
                 <title>refused: {} bytes of {} memory</title></line>",
                event.size, event.kind
            );
        }
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{floor}\" y2=\"{floor}\" stroke=\"#444\"/>\
             <text x=\"{LEFT}\" y=\"{}\" fill=\"#444\">{}</text>",
            WIDTH - RIGHT,
            floor + 18.0,
            if self.events.is_empty() {
                String::from("no history was kept")
            } else {
                format!("{:.3} ms", span as f64 / 1000.0)
            }
        );
    }

    /// Bytes in use after each event, and their maximum.
    fn usage_line(&self) -> (Vec<(u64, u64)>, u64) {
        let (mut kinds, mut peak): (BTreeMap<&str, u64>, u64) = (BTreeMap::new(), 0);
        let line = self.events.iter().map(|event| {
            kinds.insert(event.kind, event.current);
            let sum = kinds.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
            peak = peak.max(sum);
            (event.time, sum)
        });
        let line: Vec<_> = line.collect();
        (line, peak)
    }
}
