//! Random launches of random kernels, judged by the interpreter: none that races is accepted, and
//! nearly all others are.

use usm_kernel_ir::inspect::{Inspector, Verdict};
use usm_kernel_ir::proof::{Shape, claims};
use usm_kernel_ir::{
    Argument, Fault, Input, Interpreter, Kernel, Literal, Order, Parameter, Scalar, Space, text,
};

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ word >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Forms of real programs. `g`, `l`, `t` are global, local and group id; `n`, `m` are scalars.
const FORMS: &[&str] = &[
    // Columns in strides of the group, with a guard.
    "for c in (l..n).step_by(local_size(0) as usize) { o[t * n + c] = 1; }",
    "let mut c = l; while c < n { o[t * n + c] += 1; c += local_size(0); }",
    "for k in 0..4_u64 { let c = k * local_size(0) + l; if c < n { o[t * n + c] = 1; } }",
    // Rows and columns of a flat index.
    "if m > 0 { let (r, c) = (g / m, g % m); o[r * m + c] = 1; }",
    "if m > 0 { let (r, c) = (g / m, g % m); o[c * n + r] = 1; }",
    "if m > 0 { o[(g / m) * n + g % m] += 1; }",
    // Pairs.
    "if n > 0 { let (i, j) = (g / n, g % n); if i < j { o[i * n + j] = 1; o[j * n + i] = 2; } }",
    "if n > 0 { let (i, j) = (g / n, g % n); if i <= j { o[i * n + j] = 1; o[j * n + i] += 2; } }",
    // A torus.
    "if n > 0 { o[(g + m) % n] = x[(g + 1) % n]; }",
    "if g < n { o[(g + m) % n] = x[(g + 1) % n]; }",
    "if g < n { o[(g + 1) % n] += x[g]; }",
    // Halo groups, which write under a flag.
    "if local_size(0) > 2 { let i = t * (local_size(0) - 2) + l; let inner = l > 0 && l < local_size(0) - 1; if inner { o[i] = x[i]; } }",
    "let mut flag = false; if l >= 1 && l + 1 < local_size(0) { flag = true; } if flag && local_size(0) > 2 { o[t * (local_size(0) - 2) + l - 1] = 1; }",
    // Grid-stride loops, and pieces.
    "for i in (g..n * m).step_by(global_size(0) as usize) { o[i] += 1; }",
    "for k in 0..m { o[g * m + k] = k as u32; }",
    "for k in 0..m { o[k * global_size(0) + g] += 1; }",
    "for k in 0..m { o[g + k] = 1; }",
    // Every other one.
    "o[2 * g] = 1; o[2 * g + 1] = x[g];",
    "if g % 2 == 0 { o[g] = x[g]; } else { o[g] += 1; }",
    "if g % 2 == 0 { o[g / 2] = 1; }",
    "if g == 0 { for j in 0..n { o[j] = 1; } }",
    "o[g ^ 1] = 1;",
    "o[global_size(0) - 1 - g] = x[g];",
    // Conditions from memory.
    "if x[g] > 3 { if m > 0 { let (r, c) = (g / m, g % m); o[r * m + c] = 1; } }",
    "if m > 0 { for k in 0..x[g] { o[(g / m) * m + g % m] += k; } }",
    "let mut s = 0_u32; for k in 0..n { if x[k] > 2 { break; } s += x[k]; } if g < n { o[(g + m) % n] = s; }",
    // The bits of an index reversed.
    "let mut r = 0_u64; let mut v = g; for _k in 0..4_u64 { r = r * 2 + v % 2; v /= 2; } o[r] = 1;",
    // Triangular loops.
    "for j in g..16_u64 { o[g * 16 + j] = 1; }",
    "for j in 0..g { o[g * (g - 1) / 2 + j] = 1; }",
];

/// Forms with local memory `lm` of 32 elements in groups of 8.
const GROUPS: &[&str] = &[
    // Trees, whole and in segments.
    "lm[l] = x[g]; barrier(LOCAL); let mut s = 4_u64; while s > 0 { if l < s { lm[l] += lm[l + s]; } barrier(LOCAL); s /= 2; } if l == 0 { o[t] = lm[0]; }",
    "lm[l] = x[g]; barrier(LOCAL); let mut s = 2_u64; while s > 0 { if l % 4 < s { lm[l] += lm[l + s]; } barrier(LOCAL); s /= 2; } if l % 4 == 0 { o[t * 2 + l / 4] = lm[l]; }",
    "lm[l] = x[g]; barrier(LOCAL); let mut s = 1_u64; while s < 8 { if l % (2 * s) == 0 { lm[l] += lm[l + s]; } barrier(LOCAL); s *= 2; } o[g] = lm[0];",
    // A transposed tile at odd sizes.
    "if l < 8 { lm[l] = x[g]; } barrier(LOCAL); if m > 0 { let (r, c) = (l / 4, l % 4); o[t * 8 + c * 2 + r] = lm[r * 4 + c]; }",
    "lm[(l % 4) * 2 + l / 4] = x[g]; barrier(LOCAL); o[g] = lm[l];",
    // LU of a constant size.
    "for i in 0..7_u64 { if l > i { for j in 0..i { lm[l] += lm[8 + j]; } } barrier(LOCAL); if l == i { lm[8 + i] = lm[l]; } barrier(LOCAL); } o[g] = lm[l];",
    // Halos, ping and pong.
    "lm[l + 1] = x[g]; if l == 0 { lm[0] = 0; } if l == 7 { lm[9] = 0; } barrier(LOCAL); o[g] = lm[l] + lm[l + 2];",
    "lm[l] = x[g]; barrier(LOCAL); let mut from = 0_u64; let mut s = 1_u64; while s < 8 { let to = 16 - from; if l >= s { lm[to + l] = lm[from + l] + lm[from + l - s]; } else { lm[to + l] = lm[from + l]; } barrier(LOCAL); from = to; s *= 2; } o[g] = lm[from + l];",
    "lm[l] = x[g]; lm[7 - l] = 1; o[g] = 1;",
    "if l < m { lm[l * 2] = 1; } barrier(LOCAL); if l >= m { lm[l] = 2; } o[g] = 0;",
    // Global memory between barriers.
    "o[g] = 1; barrier(GLOBAL); o[t * 8 + 7 - l] += 1;",
    "o[t * 8 + (l + m) % 8] = 1; barrier(GLOBAL); o[g] += 1;",
];

/// A random expression of `u64`s without overflow in the usual case.
fn expression(random: &mut Random, depth: u64, names: &[&str]) -> String {
    if depth == 0 || random.below(4) == 0 {
        return match random.below(4) {
            0 => format!("{}_u64", random.pick(&[0, 1, 2, 3, 5, 8])),
            1 => random.pick(&["n", "m"]).to_string(),
            _ => random.pick(names).to_string(),
        };
    }
    let (one, two) = (expression(random, depth - 1, names), expression(random, depth - 1, names));
    match random.below(8) {
        0..=2 => format!("({one} + {two})"),
        3..=4 => format!("({one} * {two})"),
        5 => format!("({one} / {}_u64)", random.pick(&[2, 3, 4, 8])),
        6 => format!("({one} % {}_u64)", random.pick(&[2, 3, 4, 8])),
        _ => format!("min({one}, {two})"),
    }
}

fn condition(random: &mut Random, names: &[&str]) -> String {
    let (one, two) = (expression(random, 1, names), expression(random, 2, names));
    format!("{one} {} {two}", random.pick(&["<", "<=", "==", "!=", ">", ">="]))
}

fn statement(random: &mut Random, depth: u64, names: &[&str]) -> String {
    let value = random.pick(&["1", "x[g]", "o[g] + 1"]);
    match random.below(if depth == 0 { 3 } else { 7 }) {
        0..=2 => format!("o[{}] = {value};", expression(random, 2, names)),
        3 => format!("if {} {{ {} }}", condition(random, names), statement(random, depth - 1, names)),
        4 => format!(
            "if {} {{ {} }} else {{ {} }}",
            condition(random, names),
            statement(random, depth - 1, names),
            statement(random, depth - 1, names)
        ),
        _ => {
            let mut inside = names.to_vec();
            inside.push("c");
            let (start, end) = (expression(random, 1, names), expression(random, 1, names));
            let step = random.pick(&["1", "2", "3", "local_size(0) as usize"]);
            format!(
                "for c in ({start}..{end}).step_by({step}) {{ {} }}",
                statement(random, depth - 1, &inside)
            )
        }
    }
}

/// A kernel, and whether it has groups of 8.
fn source(random: &mut Random) -> (String, bool) {
    let parameters = "n: u64, m: u64, x: &[u32], o: &mut [u32]";
    let ids = "let (g, l, t) = (global_id(0), local_id(0), group_id(0));";
    match random.below(4) {
        0 => {
            let body = random.pick(GROUPS);
            let local = "#[local] let mut lm: [u32; 32];";
            (format!("#[kernel(group = 8)] fn f({parameters}) {{ {local} {ids} {body} }}"), true)
        }
        1 => {
            let body: String =
                (0..=random.below(2)).map(|_| statement(random, 2, &["g", "l", "t"])).collect();
            (format!("#[kernel] fn f({parameters}) {{ {ids} {body} }}"), false)
        }
        _ => {
            let body = random.pick(FORMS);
            (format!("#[kernel] fn f({parameters}) {{ {ids} {body} }}"), false)
        }
    }
}

#[derive(Default, Debug)]
struct Count {
    /// Launches with too many steps.
    other: u64,
    /// Launches with an index outside.
    outside: u64,
    races: u64,
    free: u64,
    /// Of these, those whose indices are accepted as inside.
    inside: u64,
    proven: u64,
    inspected: u64,
    kernels_refused: u64,
}

/// Launches of one kernel.
fn launches(random: &mut Random, source: &str, grouped: bool, count: &mut Count) {
    // A refused kernel's launches count as such.
    let kernel = match usm_kernel_rust::read(source, "f.rs") {
        Ok(mut kernels) => Ok(kernels.remove(0)),
        Err(refused) if refused.to_string().contains("may touch one element") => {
            let source = source.replacen("fn f", "unsafe fn f", 1);
            Err(usm_kernel_rust::read(&source, "f.rs").expect("a kernel").remove(0))
        }
        Err(refused) => panic!("{source}: {refused}"),
    };
    count.kernels_refused += u64::from(kernel.is_err());
    let mut inspector = kernel.as_ref().ok().map(|kernel| {
        let claims = claims(kernel).expect("claims");
        (Inspector::new(kernel.clone(), claims.clone()), claims)
    });
    let kernel: &Kernel = kernel.as_ref().unwrap_or_else(|kernel| kernel);
    for _ in 0..6 {
        let (n, m) = (random.pick(&[1, 2, 3, 5, 7, 8, 16, 17, 33]), random.pick(&[0, 1, 2, 3, 4, 5, 8, 11]));
        let local = if grouped { 8 } else { random.pick(&[1, 2, 3, 4, 8]) };
        let global = local * random.pick(&[1, 2, 3, 4]);
        let len = random.pick(&[1200, 1200, 1200, 40, 12_u64]);
        let content: Vec<u8> = (0..len).flat_map(|_| (random.below(8) as u32).to_ne_bytes()).collect();
        let values = [n, m].map(|value| Literal::integer(Scalar::U64, value));
        let arguments: Vec<Argument<'_>> = (kernel.parameters.iter())
            .map(|parameter| match parameter {
                Parameter::Value(id) => Argument::Value(values[id.0 as usize]),
                Parameter::Array(_) => Argument::Array(&content),
            })
            .collect();
        let lengths: Vec<u64> =
            kernel.arrays.iter().map(|array| if array.space.is_parameter() { len } else { 0 }).collect();
        assert!(kernel.arrays.iter().all(|array| !matches!(array.space, Space::Private(_))));
        let shape = Shape { global: &[global], local: &[local], lengths: &lengths, values: &values };
        let input = Input::new(kernel, &[global], &[local], &arguments).expect("a launch");
        let fault = Interpreter::new(kernel, input, Order::Forwards, 1 << 16).run().err();
        if matches!(fault, Some(Fault::Outside { .. })) {
            count.outside += 1;
            if let Some((inspector, _)) = &mut inspector {
                assert!(
                    !inspector.open_bounds(&shape, true).is_empty(),
                    "{source}: {n} {m} {global}: {fault:?}"
                );
            }
            continue;
        }
        if !matches!(fault, None | Some(Fault::Race { .. })) {
            count.other += 1;
            continue;
        }
        let verdict = inspector
            .as_mut()
            .map(|(inspector, claims)| (claims.race(&shape).is_none(), inspector.verdict(&shape)));
        let told =
            || format!("{source}\nn {n}, m {m}, global {global}, local {local}: {verdict:?}, {fault:?}");
        match &fault {
            None => {
                count.free += 1;
                let open = |(inspector, _): &mut (Inspector, _)| inspector.open_bounds(&shape, true);
                count.inside += u64::from(inspector.as_mut().map(open).is_some_and(|open| open.is_empty()));
                match &verdict {
                    Some((true, _)) => count.proven += 1,
                    Some((_, Verdict::Free)) => count.inspected += 1,
                    Some((_, Verdict::Race(_))) => panic!("no race: {}", told()),
                    _ if std::env::var_os("USM_TELL").is_some() => eprintln!("{}", told()),
                    _ => {}
                }
            }
            Some(Fault::Race { .. }) => {
                count.races += 1;
                let accepted = matches!(&verdict, Some((true, _) | (_, Verdict::Free)));
                assert!(!accepted, "a race: {}", told());
            }
            Some(_) => unreachable!(),
        }
    }
}

#[test]
fn no_launch_that_races_is_accepted_and_nearly_all_others_are() {
    let cases = skip::cases("USM_INSPECTED", 150);
    let mut count = Count::default();
    for seed in 0..cases {
        let mut random = Random(seed.wrapping_mul(0x1234_5678_9ABC_DEF1));
        let (source, grouped) = source(&mut random);
        launches(&mut random, &source, grouped, &mut count);
    }
    println!("{count:?}");
    assert!(count.races * 10 > cases && count.free > cases, "{count:?}");
    let accepted = count.proven + count.inspected;
    assert!(count.outside > 0 && count.inside * 100 >= count.free * 90, "{count:?}");
    assert!(accepted * 100 >= count.free * 95, "{accepted} of {}: {count:?}", count.free);
}

/// Wrong verdicts are seen: of a kernel whose one index is changed after its claims were made.
#[test]
fn a_wrong_claim_would_be_seen() {
    let right = "#[kernel] fn f(n: u64, m: u64, x: &[u32], o: &mut [u32]) { o[global_id(0)] = 1; }";
    let wrong = right.replace("o[global_id(0)]", "o[global_id(0) / 2]").replacen("fn f", "unsafe fn f", 1);
    let kernel = |source: &str| usm_kernel_rust::read(source, "f.rs").expect("a kernel").remove(0);
    let (right, mut wrong) = (kernel(right), kernel(&wrong));
    wrong.trusted = false;
    let (lengths, values) = ([1200; 2], [Literal::integer(Scalar::U64, 1); 2]);
    let shape = Shape { global: &[8], local: &[4], lengths: &lengths, values: &values };
    assert!(claims(&right).expect("claims").race(&shape).is_none());
    let bytes = vec![0; 4800];
    let arguments = [
        Argument::Value(values[0]),
        Argument::Value(values[1]),
        Argument::Array(&bytes),
        Argument::Array(&bytes),
    ];
    let input = Input::new(&wrong, &[8], &[4], &arguments).expect("a launch");
    let fault = Interpreter::new(&wrong, input, Order::Forwards, 1 << 16).run().err();
    assert!(matches!(fault, Some(Fault::Race { .. })), "{fault:?}: the judge sees it");
    let claims = claims(&wrong).expect("only launches decide");
    assert!(claims.race(&shape).is_some());
    assert!(matches!(Inspector::new(wrong.clone(), claims).verdict(&shape), Verdict::Race(_)));
    assert_eq!(text::parse(&text::write(&wrong)).expect("the text form"), wrong);
}
