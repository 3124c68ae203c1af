//! A picture of peak against added time: one mark for each point, a line that falls in steps.

use alloc::format;
use alloc::string::String;
use core::fmt::Write as _;

use super::axis::{Unit, ticks};
use super::escaped;
use crate::planner::recompute::Curve;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 76.0;
const BOTTOM: f64 = 64.0;

/// Draws a curve of recompute; `title` is the name of the graph.
#[must_use]
pub fn recompute_curve(curve: &Curve, title: &str) -> String {
    let peak = curve.points.first().map_or(1, |point| point.plan.peak).max(1);
    let time = curve.points.last().map_or(1, |point| point.time).max(1);
    let unit = Unit::of(peak);
    let x = |at: u64| LEFT + (WIDTH - LEFT - RIGHT) * (at as f64 / time as f64);
    let y = |bytes: u64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (bytes as f64 / peak as f64);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let mut svg = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"13\">\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\
         <text x=\"{LEFT}\" y=\"28\" font-size=\"18\" font-weight=\"bold\">{}</text>\
         <text x=\"{LEFT}\" y=\"50\" fill=\"#444\">peak against added time, {} points; no change is below {}</text>",
        escaped(title),
        curve.points.len(),
        unit.exact(curve.bound),
    );
    for tick in ticks(peak, unit.bytes, 8) {
        let at = y(tick);
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#444\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            unit.short(tick),
        );
    }
    for tick in ticks(time, 1, 8) {
        let at = x(tick);
        let _ = write!(
            svg,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#444\">{tick}</text>",
            bottom + 20.0,
        );
    }
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#444\">added time (units of cost)</text>\
         <text x=\"20\" y=\"{:.1}\" fill=\"#444\">{}</text>\
         <line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bound:.1}\" y2=\"{bound:.1}\" stroke=\"#070\" stroke-width=\"2\" \
         stroke-dasharray=\"7 4\"><title>lower bound: {}</title></line>",
        (LEFT + right) / 2.0,
        bottom + 46.0,
        TOP - 10.0,
        unit.name,
        unit.exact(curve.bound),
        bound = y(curve.bound),
    );
    let mut path = String::new();
    for (at, point) in curve.points.iter().enumerate() {
        let (across, up) = (x(point.time), y(point.plan.peak));
        // The peak stays until there is time for the next point.
        let _ = if at == 0 {
            write!(path, "M{across:.1} {up:.1}")
        } else {
            write!(path, " H{across:.1} V{up:.1}")
        };
    }
    let _ = write!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"#333\" stroke-width=\"1.5\"/>");
    for point in &curve.points {
        let facts = format!("peak {}, added time {}", unit.exact(point.plan.peak), point.time);
        let _ = write!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"#88bde6\" stroke=\"#111\"><title>{facts}</title></circle>",
            x(point.time),
            y(point.plan.peak),
        );
    }
    svg.push_str("</svg>\n");
    svg
}
