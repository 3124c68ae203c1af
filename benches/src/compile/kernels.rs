//! Ten kernels, each for two types, in both forms.

/// A kernel; `TYPE` stands for its type, `KERNEL` for its name.
struct Both {
    name: &'static str,
    /// The attribute's arguments, the parameters and the body, for `#[kernel]`.
    attribute: &'static str,
    parameters: &'static str,
    body: &'static str,
    /// The group, if the kernel requires one.
    group: &'static str,
    dimensions: u32,
    /// The types of the arguments, and their patterns and views.
    arguments: &'static str,
    patterns: &'static str,
    views: &'static str,
    /// The number of local arrays with 256 elements, and their patterns.
    locals: usize,
    local_patterns: &'static str,
    /// For each array its position and the number of elements it needs.
    needs: &'static [(usize, &'static str)],
    phases: &'static str,
    /// The range and the arguments of a launch.
    launch: &'static str,
}

fn all(form: impl Fn(&Both) -> String) -> String {
    let mut text = String::from(START);
    let mut launches = String::new();
    for both in &KERNELS {
        let one = form(both);
        for ty in ["f32", "f64"] {
            let name = format!("{}_{ty}", both.name);
            text += &one.replace("KERNEL", &name).replace("TYPE", ty);
            let launch = both.launch.replacen(',', &format!(").run({name}, ("), 1);
            let launch = launch.replace("[a]", &format!("&a_{ty}")).replace("[b]", &format!("&mut b_{ty}"));
            launches += &format!("    Launch::new(&queue, {launch})).unwrap().wait().unwrap();\n");
        }
    }
    text + MAIN + &launches + "}\n"
}

pub(super) fn by_macro() -> String {
    all(|both| {
        let Both { attribute, parameters, body, .. } = both;
        format!("#[kernel({attribute})]\nfn KERNEL({parameters}) {{{body}}}\n")
    })
}

pub(super) fn by_hand() -> String {
    all(|both| {
        let Both { dimensions: d, arguments, patterns, views, locals, local_patterns, phases, .. } = both;
        let group = match both.group {
            "" => String::new(),
            group => format!("fn required_group(&self) -> Option<[u64; {d}]> {{ Some({group}) }}"),
        };
        let needs = both
            .needs
            .iter()
            .map(|(place, least)| format!("ArgumentError::at_least(lengths, {place}, {least})?;\n"));
        let needs: String = needs.collect();
        let types = "Local<TYPE>, ".repeat(*locals);
        let local_views = "&mut [TYPE], ".repeat(*locals);
        format!(
            "#[derive(Clone, Copy)]\nstruct KERNEL;
impl Kernel<{d}> for KERNEL {{
    const NAME: &'static str = \"KERNEL\";
    type Arguments = ({arguments});
    type Local = ({types});
    {group}
    fn local(&self, _: &NdRange<{d}>, _: &Values<Self::Arguments>) -> [usize; {locals}] {{ [256; {locals}] }}
    fn check(&self, range: &NdRange<{d}>, lengths: &[usize], values: &Values<Self::Arguments>) -> Result<(), ArgumentError> {{
        let items = range.global().items();
        {needs}Ok(())
    }}
    fn group<O: Order>(&self, group: &mut Group<'_, Self, {d}, O>, ({patterns}): ({views}), ({local_patterns}): ({local_views})) {{{phases}}}
}}\n"
        )
    })
}

const START: &str = "#![allow(warnings)]
use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{ArgumentError, FenceSpace, Group, Kernel, Local, Order, Read, Value, Values, Write};
";

const MAIN: &str = "fn main() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let line = NdRange::new([65_536], [256]).unwrap();
    let plane = NdRange::new([256, 256], [16, 16]).unwrap();
    let a_f32 = UsmVec::<f32, Host, _>::from_slice(&queue, &[0.0; 65_536]).unwrap();
    let a_f64 = UsmVec::<f64, Host, _>::from_slice(&queue, &[0.0; 65_536]).unwrap();
    let mut b_f32 = UsmVec::<f32, Host, _>::from_slice(&queue, &[0.0; 65_536]).unwrap();
    let mut b_f64 = UsmVec::<f64, Host, _>::from_slice(&queue, &[0.0; 65_536]).unwrap();
";

const KERNELS: [Both; 10] = [
    Both {
        name: "reverse",
        attribute: "group = 256",
        parameters: "b: &mut [TYPE]",
        body: "
    #[local]
    let mut lm: [TYPE; 256];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = b[i];
    barrier(LOCAL);
    b[i] += lm[255 - l];
",
        group: "[256]",
        dimensions: 1,
        arguments: "Write<TYPE>,",
        patterns: "b,",
        views: "&mut [TYPE],",
        locals: 1,
        local_patterns: "lm,",
        needs: &[(0, "items")],
        phases: "
        for item in group.items() {
            lm[item.local()] = b[item.global()];
        }
        group.barrier(FenceSpace::LOCAL);
        for item in group.items() {
            b[item.global()] += lm[255 - item.local()];
        }
    ",
        launch: "line, [b],",
    },
    Both {
        name: "axpy",
        attribute: "",
        parameters: "by: TYPE, a: &[TYPE], b: &mut [TYPE]",
        body: "
    let i = global_id(0);
    b[i] += by * a[i];
",
        group: "",
        dimensions: 1,
        arguments: "Value<TYPE>, Read<TYPE>, Write<TYPE>",
        patterns: "by, a, b",
        views: "TYPE, &[TYPE], &mut [TYPE]",
        locals: 0,
        local_patterns: "",
        needs: &[(1, "items"), (2, "items")],
        phases: "
        for item in group.items() {
            b[item.global()] += by * a[item.global()];
        }
    ",
        launch: "line, 2.0, [a], [b]",
    },
    Both {
        name: "reduce",
        attribute: "group = 256",
        parameters: "a: &[TYPE], b: &mut [TYPE]",
        body: "
    #[local]
    let mut lm: [TYPE; 256];
    let l = local_id(0);
    lm[l] = a[global_id(0)];
    barrier(LOCAL);
    let mut h = 128_u64;
    while h > 0 {
        if l < h {
            lm[l] += lm[l + h];
        }
        barrier(LOCAL);
        h /= 2;
    }
    if l == 0 {
        b[group_id(0)] = lm[0];
    }
",
        group: "[256]",
        dimensions: 1,
        arguments: "Read<TYPE>, Write<TYPE>",
        patterns: "a, b",
        views: "&[TYPE], &mut [TYPE]",
        locals: 1,
        local_patterns: "lm,",
        needs: &[(0, "items"), (1, "range.groups().items()")],
        phases: "
        for item in group.items() {
            lm[item.local()] = a[item.global()];
        }
        group.barrier(FenceSpace::LOCAL);
        let mut h = 128;
        while h > 0 {
            for item in group.first(h) {
                lm[item.local()] += lm[item.local() + h];
            }
            group.barrier(FenceSpace::LOCAL);
            h /= 2;
        }
        for _ in group.first(1) {
            b[group.index()] = lm[0];
        }
    ",
        launch: "line, [a], [b]",
    },
    Both {
        name: "scan",
        attribute: "group = 256",
        parameters: "a: &[TYPE], b: &mut [TYPE]",
        body: "
    #[local]
    let mut lm: [TYPE; 256];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    let mut d = 1_u64;
    while d < 256 {
        let mut before: TYPE = 0.0;
        if l >= d {
            before = lm[l - d];
        }
        barrier(LOCAL);
        lm[l] += before;
        barrier(LOCAL);
        d *= 2;
    }
    b[i] = lm[l];
",
        group: "[256]",
        dimensions: 1,
        arguments: "Read<TYPE>, Write<TYPE>",
        patterns: "a, b",
        views: "&[TYPE], &mut [TYPE]",
        locals: 2,
        local_patterns: "lm, befores",
        needs: &[(0, "items"), (1, "items")],
        phases: "
        for item in group.items() {
            lm[item.local()] = a[item.global()];
        }
        group.barrier(FenceSpace::LOCAL);
        let mut d = 1;
        while d < 256 {
            for item in group.items() {
                befores[item.local()] = if item.local() >= d { lm[item.local() - d] } else { 0.0 };
            }
            group.barrier(FenceSpace::LOCAL);
            for item in group.items() {
                lm[item.local()] += befores[item.local()];
            }
            group.barrier(FenceSpace::LOCAL);
            d *= 2;
        }
        for item in group.items() {
            b[item.global()] = lm[item.local()];
        }
    ",
        launch: "line, [a], [b]",
    },
    Both {
        name: "stencil",
        attribute: "dimensions = 2",
        parameters: "w: u64, h: u64, a: &[TYPE], b: &mut [TYPE]",
        body: "
    let (y, x) = (global_id(0), global_id(1));
    if y > 0 && y < h - 1 && x > 0 && x < w - 1 {
        let i = y * w + x;
        b[i] = 0.2 * (a[i] + a[i - 1] + a[i + 1] + a[i - w] + a[i + w]);
    }
",
        group: "",
        dimensions: 2,
        arguments: "Value<u64>, Value<u64>, Read<TYPE>, Write<TYPE>",
        patterns: "w, h, a, b",
        views: "u64, u64, &[TYPE], &mut [TYPE]",
        locals: 0,
        local_patterns: "",
        needs: &[(2, "values.0 * values.1"), (3, "values.0 * values.1")],
        phases: "
        let (w, h) = (w as usize, h as usize);
        for item in group.items() {
            let [y, x] = item.global_id().indices();
            if y > 0 && y < h - 1 && x > 0 && x < w - 1 {
                let i = y * w + x;
                b[i] = 0.2 * (a[i] + a[i - 1] + a[i + 1] + a[i - w] + a[i + w]);
            }
        }
    ",
        launch: "plane, 256, 256, [a], [b]",
    },
    Both {
        name: "matmul",
        attribute: "group = [16, 16]",
        parameters: "n: u64, a: &[TYPE], b: &mut [TYPE]",
        body: "
    #[local]
    let mut left: [TYPE; 256];
    #[local]
    let mut right: [TYPE; 256];
    let (y, x) = (local_id(0), local_id(1));
    let (row, column) = (global_id(0), global_id(1));
    let mut sum: TYPE = 0.0;
    for t in (0..n).step_by(16) {
        left[y * 16 + x] = if row < n && t + x < n { a[row * n + (t + x)] } else { 0.0 };
        right[y * 16 + x] = if t + y < n && column < n { a[(t + y) * n + column] } else { 0.0 };
        barrier(LOCAL);
        for k in 0..16_u64 {
            sum += left[y * 16 + k] * right[k * 16 + x];
        }
        barrier(LOCAL);
    }
    if row < n && column < n {
        b[row * n + column] = sum;
    }
",
        group: "[16, 16]",
        dimensions: 2,
        arguments: "Value<u64>, Read<TYPE>, Write<TYPE>",
        patterns: "n, a, b",
        views: "u64, &[TYPE], &mut [TYPE]",
        locals: 3,
        local_patterns: "left, right, sums",
        needs: &[(1, "values.0 * values.0"), (2, "values.0 * values.0")],
        phases: "
        let n = n as usize;
        for item in group.items() {
            sums[item.local()] = 0.0;
        }
        for t in (0..n).step_by(16) {
            for item in group.items() {
                let ([y, x], [row, column]) = (item.local_id().indices(), item.global_id().indices());
                left[y * 16 + x] = if row < n && t + x < n { a[row * n + (t + x)] } else { 0.0 };
                right[y * 16 + x] = if t + y < n && column < n { a[(t + y) * n + column] } else { 0.0 };
            }
            group.barrier(FenceSpace::LOCAL);
            for item in group.items() {
                let [y, x] = item.local_id().indices();
                for k in 0..16 {
                    sums[item.local()] += left[y * 16 + k] * right[k * 16 + x];
                }
            }
            group.barrier(FenceSpace::LOCAL);
        }
        for item in group.items() {
            let [row, column] = item.global_id().indices();
            if row < n && column < n {
                b[row * n + column] = sums[item.local()];
            }
        }
    ",
        launch: "plane, 256, [a], [b]",
    },
    Both {
        name: "transpose",
        attribute: "group = [16, 16]",
        parameters: "rows: u64, columns: u64, a: &[TYPE], b: &mut [TYPE]",
        body: "
    #[local]
    let mut tile: [TYPE; 256];
    let (y, x) = (local_id(0), local_id(1));
    if global_id(0) < rows && global_id(1) < columns {
        tile[y * 16 + x] = a[global_id(0) * columns + global_id(1)];
    }
    barrier(LOCAL);
    let (row, column) = (group_id(1) * 16 + y, group_id(0) * 16 + x);
    if row < columns && column < rows {
        b[row * rows + column] = tile[x * 16 + y];
    }
",
        group: "[16, 16]",
        dimensions: 2,
        arguments: "Value<u64>, Value<u64>, Read<TYPE>, Write<TYPE>",
        patterns: "rows, columns, a, b",
        views: "u64, u64, &[TYPE], &mut [TYPE]",
        locals: 1,
        local_patterns: "tile,",
        needs: &[(2, "values.0 * values.1"), (3, "values.0 * values.1")],
        phases: "
        let (rows, columns) = (rows as usize, columns as usize);
        for item in group.items() {
            let ([y, x], [row, column]) = (item.local_id().indices(), item.global_id().indices());
            if row < rows && column < columns {
                tile[y * 16 + x] = a[row * columns + column];
            }
        }
        group.barrier(FenceSpace::LOCAL);
        let [one, two] = group.id().indices();
        for item in group.items() {
            let [y, x] = item.local_id().indices();
            let (row, column) = (two * 16 + y, one * 16 + x);
            if row < columns && column < rows {
                b[row * rows + column] = tile[x * 16 + y];
            }
        }
    ",
        launch: "plane, 256, 256, [a], [b]",
    },
    Both {
        name: "rows",
        attribute: "",
        parameters: "n: u64, width: u64, a: &[TYPE], b: &mut [TYPE]",
        body: "
    let i = global_id(0);
    if i < n {
        let mut sum: TYPE = 0.0;
        for k in 0..width {
            sum += a[i * width + k];
        }
        b[i] = sum / (width as TYPE);
    }
",
        group: "",
        dimensions: 1,
        arguments: "Value<u64>, Value<u64>, Read<TYPE>, Write<TYPE>",
        patterns: "n, width, a, b",
        views: "u64, u64, &[TYPE], &mut [TYPE]",
        locals: 0,
        local_patterns: "",
        needs: &[(2, "values.0 * values.1"), (3, "values.0")],
        phases: "
        let (n, width) = (n as usize, width as usize);
        for item in group.items() {
            let i = item.global();
            if i < n {
                let mut sum: TYPE = 0.0;
                for k in 0..width {
                    sum += a[i * width + k];
                }
                b[i] = sum / (width as TYPE);
            }
        }
    ",
        launch: "line, 256, 256, [a], [b]",
    },
    Both {
        name: "waves",
        attribute: "",
        parameters: "by: TYPE, a: &[TYPE], b: &mut [TYPE]",
        body: "
    let i = global_id(0);
    if i < a.len() && i < b.len() {
        let x = a[i] * by;
        let mut y = x.sin() * x.cos();
        if y < 0.0 {
            y = y.abs().sqrt();
        } else {
            y = (y + 1.0).ln();
        }
        b[i] = min(max(y, 0.0), 1.0);
    }
",
        group: "",
        dimensions: 1,
        arguments: "Value<TYPE>, Read<TYPE>, Write<TYPE>",
        patterns: "by, a, b",
        views: "TYPE, &[TYPE], &mut [TYPE]",
        locals: 0,
        local_patterns: "",
        needs: &[],
        phases: "
        for item in group.items() {
            let i = item.global();
            if i < a.len() && i < b.len() {
                let x = a[i] * by;
                let mut y = x.sin() * x.cos();
                if y < 0.0 {
                    y = y.abs().sqrt();
                } else {
                    y = (y + 1.0).ln();
                }
                b[i] = y.max(0.0).min(1.0);
            }
        }
    ",
        launch: "line, 0.5, [a], [b]",
    },
    Both {
        name: "escape",
        attribute: "dimensions = 2",
        parameters: "rounds: u32, width: u64, b: &mut [TYPE]",
        body: "
    let (y, x) = (global_id(0), global_id(1));
    if x < width && y * width + x < b.len() {
        let (cx, cy) = (x as TYPE * 0.01 - 2.0, y as TYPE * 0.01 - 1.0);
        let mut zx: TYPE = 0.0;
        let mut zy: TYPE = 0.0;
        let mut count: TYPE = 0.0;
        for _ in 0..rounds {
            let next = zx * zx - zy * zy + cx;
            zy = 2.0 * zx * zy + cy;
            zx = next;
            if zx * zx + zy * zy > 4.0 {
                break;
            }
            count += 1.0;
        }
        b[y * width + x] = count;
    }
",
        group: "",
        dimensions: 2,
        arguments: "Value<u32>, Value<u64>, Write<TYPE>",
        patterns: "rounds, width, b",
        views: "u32, u64, &mut [TYPE]",
        locals: 0,
        local_patterns: "",
        needs: &[],
        phases: "
        let width = width as usize;
        for item in group.items() {
            let [y, x] = item.global_id().indices();
            if x < width && y * width + x < b.len() {
                let (cx, cy) = (x as TYPE * 0.01 - 2.0, y as TYPE * 0.01 - 1.0);
                let mut zx: TYPE = 0.0;
                let mut zy: TYPE = 0.0;
                let mut count: TYPE = 0.0;
                for _ in 0..rounds {
                    let next = zx * zx - zy * zy + cx;
                    zy = 2.0 * zx * zy + cy;
                    zx = next;
                    if zx * zx + zy * zy > 4.0 {
                        break;
                    }
                    count += 1.0;
                }
                b[y * width + x] = count;
            }
        }
    ",
        launch: "plane, 100, 256, [b]",
    },
];
