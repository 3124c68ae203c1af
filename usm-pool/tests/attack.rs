//! Random graphs rich in views, permits, loops and parts: planners, `Plan::verify` and
//! `verify::graph` beside an executor that runs plans byte by byte. Rows are tampered with too. `N`
//! says how many graphs, `SEED` which.

#![cfg(feature = "alloc")]
#![allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    reason = "one throwaway generator, kept because it found faults that nothing else did"
)]
use std::collections::*;
use usm_pool::alias::InPlace;
use usm_pool::graph::Graph as G;
use usm_pool::verify;
use usm_pool::*;

#[derive(Clone)]
struct R(u64);
impl R {
    fn n(&mut self, b: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545F4914F6CDD1D) >> 33) % b.max(1)
    }
    fn p(&mut self, a: u64, b: u64) -> bool {
        self.n(b) < a
    }
}

#[derive(Clone, Debug)]
struct T {
    id: u64,
    size: u64,
    align: Option<u64>,
    pad: u64,
    kind: Option<TensorKind>,
    alias: Option<(usize, u64)>,
    produced: bool,
}

fn graph(r: &mut R) -> Option<G> {
    let mut ts: Vec<T> = Vec::new();
    let wild = r.p(1, 3);
    let new = |ts: &mut Vec<T>, r: &mut R, size: u64, alias| {
        let id = ts.len() as u64;
        let kind = None;
        ts.push(T {
            id,
            size,
            align: if r.p(1, 6) { Some(1 << r.n(5)) } else { None },
            pad: if r.p(1, 12) && alias == None { r.n(8) } else { 0 },
            kind,
            alias,
            produced: false,
        });
        ts.len() - 1
    };
    let view = |ts: &mut Vec<T>, r: &mut R, of: usize| {
        let whole = ts[of].size;
        let size = match r.n(4) {
            0 => whole,
            1 => whole / 2,
            _ => r.n(whole + 1),
        };
        let off = match r.n(3) {
            0 => 0,
            1 => whole - size,
            _ => r.n(whole - size + 1),
        };
        let i = ts.len();
        ts.push(T {
            id: i as u64,
            size,
            align: None,
            pad: 0,
            kind: None,
            alias: Some((of, off)),
            produced: false,
        });
        i
    };
    for _ in 0..r.n(3) {
        let s = r.n(40);
        let t = new(&mut ts, r, s, None);
        ts[t].kind = Some(match r.n(8) {
            0 => TensorKind::Constant,
            1 => TensorKind::Input,
            2 => TensorKind::State,
            _ => TensorKind::Activation,
        });
    }
    let nops = 1 + r.n(10) as usize;
    let mut ops: Vec<(Vec<usize>, Vec<usize>, Vec<(usize, usize)>)> = Vec::new();
    for _ in 0..nops {
        let mut ins = vec![];
        for _ in 0..r.n(4) {
            if ts.is_empty() {
                break;
            }
            let w = if wild { ts.len() } else { ts.len().min(6) };
            let of = ts.len() - 1 - r.n(w as u64) as usize;
            let t = if r.p(1, 3) { view(&mut ts, r, of) } else { of };
            ins.push(t);
            if r.p(1, 8) {
                ins.push(t);
            }
            if r.p(1, 4) {
                let v = view(&mut ts, r, t);
                ins.push(v);
            }
        }
        let mut outs = vec![];
        for _ in 0..(1 + r.n(3)).min(1 + r.n(3)) {
            let like = if ins.is_empty() { None } else { Some(ts[ins[r.n(ins.len() as u64) as usize]].size) };
            let size = if r.p(2, 3) { like.unwrap_or(8) } else { r.n(40) };
            match r.n(12) {
                0 if !ins.is_empty() => {
                    let of = ins[r.n(ins.len() as u64) as usize];
                    let v = view(&mut ts, r, of);
                    outs.push(v)
                }
                1 | 2 => {
                    let size = size + if r.p(1, 2) { r.n(20) } else { 0 };
                    let root = new(&mut ts, r, size, None);
                    ts[root].kind = Some(TensorKind::Activation);
                    let v = view(&mut ts, r, root);
                    outs.push(v);
                    if r.p(1, 2) {
                        let v = view(&mut ts, r, v);
                        outs.push(v);
                    }
                    if r.p(1, 3) {
                        outs.push(root)
                    }
                }
                3 if !ts.is_empty() => {
                    let of = r.n(ts.len() as u64) as usize;
                    let v = view(&mut ts, r, of);
                    outs.push(v)
                }
                4 if !ts.is_empty() => {
                    let of = r.n(ts.len() as u64) as usize;
                    if !ts[of].produced {
                        outs.push(of)
                    }
                }
                _ => {
                    let t = new(&mut ts, r, size, None);
                    outs.push(t)
                }
            }
        }
        outs.retain({
            let mut seen = HashSet::new();
            move |o| seen.insert(*o)
        });
        for &o in &outs {
            ts[o].produced = true;
        }
        let mut per = vec![];
        let d = 1 + r.n(4);
        for &i in &ins {
            for &o in &outs {
                if r.n(4) < d {
                    per.push((i, o));
                }
            }
        }
        ops.push((ins, outs, per));
    }
    let loops: Vec<(usize, usize)> = if r.p(1, 4) {
        let a = r.n(nops as u64) as usize;
        let b = a + r.n((nops - a) as u64) as usize;
        let mut l = vec![(a, b)];
        if r.p(1, 3) {
            let c = a + r.n((b - a + 1) as u64) as usize;
            let d = c + r.n((b - c + 1) as u64) as usize;
            if (c, d) != (a, b) {
                l.push((c, d));
            }
        }
        // carried reads
        if r.p(1, 2) {
            let late = b;
            let outs = ops[late].1.clone();
            if let Some(&o) = outs.first() {
                let at = a + r.n((b - a + 1) as u64) as usize;
                ops[at].0.push(o);
            }
        }
        l
    } else {
        vec![]
    };
    // ids shuffled
    let mut perm: Vec<u64> = (0..ts.len() as u64).map(|x| x * 3 + 1).collect();
    if r.p(1, 2) {
        for i in (1..perm.len()).rev() {
            let j = r.n(i as u64 + 1) as usize;
            perm.swap(i, j);
        }
    }
    let mut order: Vec<usize> = (0..ts.len()).collect();
    if r.p(1, 3) {
        for i in (1..order.len()).rev() {
            let j = r.n(i as u64 + 1) as usize;
            order.swap(i, j);
        }
    }
    let mut b = G::builder().default_alignment(if r.p(1, 2) { 1 } else { 8 });
    for &k in &order {
        let t = &ts[k];
        let mut x = Tensor::new(perm[k], t.size).padding(t.pad);
        if let Some(a) = t.align {
            x = x.alignment(a)
        }
        if let Some(k) = t.kind {
            x = x.kind(k)
        }
        if let Some((of, off)) = t.alias {
            x = x.alias_of(perm[of], off)
        }
        b = b.tensor(x);
    }
    for (ins, outs, per) in &ops {
        let mut o = Op::new("").inputs(ins.iter().map(|&i| perm[i])).outputs(outs.iter().map(|&i| perm[i]));
        for &(i, j) in per {
            o = o.in_place(perm[i], perm[j]);
        }
        b = b.op(o);
    }
    for (k, t) in ts.iter().enumerate() {
        if r.p(1, 14) {
            b = b.output(perm[k]);
        }
    }
    for (f, l) in loops {
        b = b.loop_body(f, l);
    }
    b.build().ok()
}

// A memory: tensor -> cells
struct Mem {
    at: Vec<Option<(usize, usize)>>,
    cells: Vec<Vec<u64>>,
}
impl Mem {
    fn unshared(g: &G) -> Mem {
        let mut cells = vec![vec![]; g.tensors().len()];
        let at = g
            .tensors()
            .iter()
            .enumerate()
            .map(|(i, t)| {
                cells[t.root] = if cells[t.root].is_empty() {
                    vec![0; g.tensors()[t.root].size as usize]
                } else {
                    std::mem::take(&mut cells[t.root])
                };
                Some((t.root, t.root_offset as usize))
            })
            .collect();
        Mem { at, cells }
    }
    fn planned(g: &G, rows: &[Row]) -> Mem {
        let mut m = Mem::unshared(g);
        let n = m.cells.len();
        let big = rows.iter().map(|r| (r.offset + r.size) as usize).max().unwrap_or(0);
        m.cells.push(vec![u64::MAX; big]);
        m.cells.push(vec![u64::MAX; big]);
        for row in rows {
            let t = g.tensor_index(row.id).unwrap();
            m.at[t] = Some((n + row.memory as usize, row.offset as usize));
        }
        for (i, t) in g.tensors().iter().enumerate() {
            assert_eq!(t.kind == TensorKind::Activation, m.at[i].unwrap().0 >= n);
        }
        m
    }
    fn write(&mut self, g: &G, t: usize, base: u64) {
        let (a, o) = self.at[t].unwrap();
        for k in 0..g.tensors()[t].size as usize {
            self.cells[a][o + k] = base + k as u64 + 1;
        }
    }
    fn get(&self, t: usize, k: usize) -> u64 {
        let (a, o) = self.at[t].unwrap();
        self.cells[a][o + k]
    }
}

struct Ex<'a> {
    undef: std::cell::Cell<bool>,
    g: &'a G,
    a: Mem,
    b: Mem,
    tok: u64,
    viewwrites: bool,
}
impl<'a> Ex<'a> {
    fn new(g: &'a G, rows: &[Row], viewwrites: bool) -> Self {
        let mut e = Ex {
            undef: Default::default(),
            g,
            a: Mem::unshared(g),
            b: Mem::planned(g, rows),
            tok: 1 << 20,
            viewwrites,
        };
        for (root, t) in g.tensors().iter().enumerate() {
            if t.alias.is_some() {
                continue;
            }
            let fam = g.family(root);
            let w = fam.iter().filter_map(|&m| g.tensors()[m].producer).min();
            let rd = fam.iter().filter_map(|&m| g.tensors()[m].users.first().copied()).min();
            let given = match (w, rd) {
                (None, _) => true,
                (Some(w), Some(r)) => r <= w && t.producer.is_none(),
                _ => false,
            };
            if given {
                e.fill(root);
            }
        }
        e
    }
    fn fill(&mut self, t: usize) {
        self.tok += 1 << 12;
        let k = self.tok;
        self.a.write(self.g, t, k);
        self.b.write(self.g, t, k);
    }
    fn cmp(&self, t: usize, excuse: &dyn Fn(usize) -> bool, what: &str) -> Result<(), String> {
        for k in 0..self.g.tensors()[t].size as usize {
            let (x, y) = (self.a.get(t, k), self.b.get(t, k));
            if x == 0 {
                self.undef.set(true);
            }
            if x != 0 && x != y && !excuse(k) {
                return Err(format!("tensor {} (index {t}) byte {k} {what}", self.g.tensors()[t].id));
            }
        }
        Ok(())
    }
    fn writes(&self, op: usize, o: usize) -> bool {
        let node = &self.g.ops()[op];
        self.viewwrites || !node.inputs.iter().any(|&i| self.g.tensors()[i].root == self.g.tensors()[o].root)
    }
    fn start(&mut self, op: usize) -> Result<(), String> {
        let node = &self.g.ops()[op];
        for &i in &node.inputs {
            self.cmp(i, &|_| false, &format!("start of op {op}"))?;
        }
        for &o in &node.outputs {
            if self.writes(op, o) {
                self.fill(o);
            }
        }
        Ok(())
    }
    fn finish(&mut self, op: usize) -> Result<(), String> {
        let node = &self.g.ops()[op];
        for &i in &node.inputs {
            let (arena, at) = self.b.at[i].unwrap();
            let mut ex = vec![];
            for &(x, y) in &node.in_place {
                if x == i
                    && self.b.at[y] == Some((arena, at))
                    && self.g.tensors()[y].size <= self.g.tensors()[x].size
                    && self.g.tensors()[x].root != self.g.tensors()[y].root
                {
                    ex.push(self.g.tensors()[y].size as usize)
                }
            }
            let m = ex.into_iter().max().unwrap_or(0);
            self.cmp(i, &|k| k < m, &format!("end of op {op}"))?;
        }
        for &o in &node.outputs {
            if self.writes(op, o) {
                self.fill(o);
            }
        }
        for &o in &node.outputs {
            if !self.g.tensors()[o].users.is_empty() || self.g.tensors()[o].is_output {
                self.cmp(o, &|_| false, &format!("output of op {op}"))?;
            }
        }
        Ok(())
    }
    fn outs(&self) -> Result<(), String> {
        for &o in self.g.outputs() {
            self.cmp(o, &|_| false, "after run")?;
        }
        Ok(())
    }
    fn enter(&mut self, f: usize, l: usize) {
        for t in 0..self.g.tensors().len() {
            let n = &self.g.tensors()[t];
            if let Some(p) = n.producer {
                if f <= p && p <= l && n.users.iter().any(|&u| f <= u && u <= p) {
                    self.fill(t);
                }
            }
        }
    }
}

fn trace(g: &G, iters: usize) -> Vec<(Option<(usize, usize)>, usize)> {
    // list of loop enters and ops (recursive over nested loops)
    fn go(
        g: &G,
        lo: usize,
        hi: usize,
        skip: usize,
        iters: usize,
        out: &mut Vec<(Option<(usize, usize)>, usize)>,
    ) {
        let mut op = lo;
        while op <= hi {
            // outermost loop starting here, of index not in skip bitmask
            let best = g
                .loops()
                .iter()
                .enumerate()
                .filter(|(k, l)| l.0 == op && l.1 <= hi && skip >> k & 1 == 0)
                .max_by_key(|(_, l)| l.1);
            if let Some((k, &(f, l))) = best {
                out.push((Some((f, l)), 0));
                for _ in 0..iters {
                    go(g, f, l, skip | 1 << k, iters, out);
                }
                op = l + 1;
            } else {
                out.push((None, op));
                op += 1;
            }
        }
    }
    let mut out = vec![];
    if !g.ops().is_empty() {
        go(g, 0, g.ops().len() - 1, 0, iters, &mut out);
    }
    out
}

fn inorder(g: &G, rows: &[Row], vw: bool, iters: usize) -> Result<(), String> {
    let mut e = Ex::new(g, rows, vw);
    let r = (|| {
        for (l, op) in trace(g, iters) {
            match l {
                Some((f, l)) => e.enter(f, l),
                None => {
                    e.start(op)?;
                    e.finish(op)?;
                }
            }
        }
        e.outs()
    })();
    if e.undef.get() { Ok(()) } else { r }
}

fn preds(g: &G, op: usize) -> Vec<usize> {
    let ts = g.tensors();
    let mut f = vec![];
    for &i in &g.ops()[op].inputs {
        if let Some(p) = ts[i].producer {
            f.push(p);
            continue;
        }
        for &m in g.family(ts[i].root) {
            let (x, y) = (&ts[i], &ts[m]);
            if x.root_offset.max(y.root_offset) < (x.root_offset + x.size).min(y.root_offset + y.size) {
                if let Some(p) = y.producer {
                    if !g.ops()[p].inputs.iter().any(|&q| ts[q].root == x.root) {
                        f.push(p)
                    }
                }
            }
        }
    }
    f
}

fn ooo(
    g: &G,
    rows: &[Row],
    edges: &[(usize, usize)],
    vw: bool,
    r: &mut R,
    iters: usize,
) -> Result<(), String> {
    // only single loops w/o nesting: unrolled; with nested skip
    if g.loops().len() > 1 {
        return Ok(());
    }
    let n = g.ops().len();
    let it = |op: usize| if g.loops().iter().any(|&(f, l)| f <= op && op <= l) { iters } else { 1 };
    let inst: Vec<(usize, usize)> = (0..n).flat_map(|op| (0..it(op)).map(move |i| (op, i))).collect();
    let idx: HashMap<(usize, usize), usize> = inst.iter().enumerate().map(|(k, &x)| (x, k)).collect();
    let mut wait: Vec<Vec<usize>> = vec![vec![]; inst.len()];
    let inl = |op: usize| it(op) > 1;
    for (k, &(op, i)) in inst.iter().enumerate() {
        let mut ps: Vec<usize> = preds(g, op).into_iter().filter(|&p| p < op).collect();
        ps.extend(edges.iter().filter(|e| e.1 == op).map(|e| e.0));
        for p in ps {
            let j = if inl(p) && inl(op) { i } else { it(p) - 1 };
            wait[k].push(idx[&(p, j)]);
        }
        for p in preds(g, op) {
            if p >= op && i > 0 {
                wait[k].push(idx[&(p, i - 1)]);
            }
        }
        if i > 0 {
            wait[k].push(idx[&(op, i - 1)]);
        }
        if i > 0 && r.p(1, 1) {
            if let Some(&(f, l)) = g.loops().first() {
                for o in f..=l {
                    wait[k].push(idx[&(o, i - 1)]);
                }
            }
        }
    }
    let mut e = Ex::new(g, rows, vw);
    // loop enters: at the first start of a body op... only when carried; skip graphs with carried
    // for ooo
    for &(f, l) in g.loops() {
        for t in g.tensors() {
            if let Some(p) = t.producer {
                if f <= p && p <= l && t.users.iter().any(|&u| f <= u && u <= p) {
                    return Ok(());
                }
            }
        }
    }
    let mut done = vec![false; inst.len()];
    let mut pend: Vec<usize> = (0..inst.len()).collect();
    let mut run: Vec<usize> = vec![];
    let r2 = (|| {
        while !pend.is_empty() || !run.is_empty() {
            let ready: Vec<usize> =
                (0..pend.len()).filter(|&k| wait[pend[k]].iter().all(|&w| done[w])).collect();
            if !ready.is_empty() && (run.is_empty() || r.p(1, 2)) {
                let k = pend.swap_remove(ready[r.n(ready.len() as u64) as usize]);
                e.start(inst[k].0)?;
                run.push(k);
            } else if !run.is_empty() {
                let k = run.swap_remove(r.n(run.len() as u64) as usize);
                e.finish(inst[k].0)?;
                done[k] = true;
            } else {
                return Ok(());
            }
        }
        e.outs()
    })();
    if e.undef.get() { Ok(()) } else { r2 }
}

fn desc(g: &G, rows: &[Row]) -> String {
    let mut s = String::new();
    for (i, t) in g.tensors().iter().enumerate() {
        s += &format!(
            "\n t{i} id {} size {} al {} kind {:?} alias {:?} root {}+{} prod {:?} users {:?} out {} row {:?}",
            t.id,
            t.size,
            t.alignment,
            t.kind,
            t.alias,
            t.root,
            t.root_offset,
            t.producer,
            t.users,
            t.is_output,
            rows.iter().find(|r| r.id == t.id).map(|r| (r.offset, r.buffer))
        );
    }
    for (i, o) in g.ops().iter().enumerate() {
        s += &format!("\n op {i}: {:?} -> {:?} permits {:?}", o.inputs, o.outputs, o.in_place);
    }
    s + &format!("\n loops {:?}", g.loops())
}

fn execs(
    g: &G,
    q: Queue,
    edges: &[(usize, usize)],
    rows: &[Row],
    r: &mut R,
    stat: &mut [u64; 4],
) -> Result<(), String> {
    for vw in [false, true] {
        if edges.is_empty() || edges.iter().all(|e| e.0 < e.1) {
            for it in [1, 2, 3] {
                if it > 1 && g.loops().is_empty() {
                    continue;
                }
                inorder(g, rows, vw, it).map_err(|e| format!("{e} (in order, vw {vw}, iters {it})"))?;
                stat[0] += 1;
            }
        }
        if q == Queue::OutOfOrder {
            for _ in 0..5 {
                ooo(g, rows, edges, vw, r, 2).map_err(|e| format!("{e} (ooo, vw {vw})"))?;
                stat[1] += 1;
            }
        }
    }
    Ok(())
}

#[test]
fn plans_and_checkers_agree_with_an_executor() {
    let n: u64 = std::env::var("N").ok().and_then(|s| s.parse().ok()).unwrap_or(300);
    let seed: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut r = R(seed * 77777 + 5);
    let (mut built, mut plans, mut acc, mut rej, mut bad) = (0u64, 0u64, 0u64, 0u64, 0u64);
    let mut stat = [0u64; 4];
    let mut kinds: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let mut note = |k: &str, d: String| {
        let e = kinds.entry(k.to_string()).or_insert((0, d.clone()));
        e.0 += 1;
        if d.len() < e.1.len() {
            e.1 = d;
        }
    };
    for round in 0..n {
        let Some(g) = graph(&mut r) else { continue };
        built += 1;
        for q in [Queue::InOrder, Queue::OutOfOrder] {
            let mut o = Options::default();
            o.queue = q;
            o.nodes = 64;
            let mut all = vec![];
            for c in [InPlace::Never, InPlace::SameSize, InPlace::Always] {
                let p = Problem::from_graph(&g, q, c).unwrap();
                o.strategy = Strategy::ALL[r.n(5) as usize];
                let pl = plan(&p, &o).unwrap();
                all.push((g.clone(), p, pl));
            }
            if q == Queue::OutOfOrder {
                o.ordering_edges = r.n(4) as usize;
            }
            let (p, pl) = plan_graph(&g, &o).unwrap();
            all.push((g.clone(), p, pl));
            if q == Queue::InOrder && r.p(1, 2) {
                let re = usm_pool::planner::reorder::reorder(&g, InPlace::Always).unwrap();
                if let Ok(g2) = g.reordered(&re.order) {
                    let (p, pl) = plan_graph(&g2, &o).unwrap();
                    all.push((g2, p, pl));
                }
            }
            for (g, p, pl) in all {
                plans += 1;
                if let Err(e) = pl.verify(&p) {
                    note("own plan refused by Plan::verify", format!("{e} {}", desc(&g, &pl.rows)));
                }
                let vg = verify::graph(&g, q, &pl.ordering_edges, &pl.rows);
                let ex = execs(&g, q, &pl.ordering_edges, &pl.rows, &mut r, &mut stat);
                match (&vg, &ex) {
                    (Err(e), Ok(())) => note(
                        "own plan refused by verify::graph, runs right",
                        format!("{e} {q:?} {}", desc(&g, &pl.rows)),
                    ),
                    (Err(e), Err(x)) => note(
                        "own plan WRONG, refused by verify::graph",
                        format!("{e} | {x} {q:?} {}", desc(&g, &pl.rows)),
                    ),
                    (Ok(()), Err(x)) => note(
                        &format!("own plan WRONG, accepted {q:?} loops {}", !g.loops().is_empty()),
                        format!("{x} {q:?} edges {:?} {}", pl.ordering_edges, desc(&g, &pl.rows)),
                    ),
                    _ => {}
                }
                // tamper
                for _ in 0..4 {
                    let mut rows = pl.rows.clone();
                    if rows.is_empty() {
                        continue;
                    }
                    for _ in 0..1 + r.n(2) {
                        let a = rows[r.n(rows.len() as u64) as usize];
                        let b = rows[r.n(rows.len() as u64) as usize];
                        let ta = g.tensor_index(a.id).unwrap();
                        let root = g.tensors()[ta].root;
                        let to = if r.p(2, 3) {
                            b.offset + if r.p(1, 4) { r.n(b.size + 1) } else { 0 }
                        } else {
                            r.n(64)
                        };
                        let base = to.saturating_sub(g.tensors()[ta].root_offset);
                        let base = base / g.tensors()[root].alignment * g.tensors()[root].alignment;
                        for row in rows.iter_mut() {
                            let t = g.tensor_index(row.id).unwrap();
                            if g.tensors()[t].root == root {
                                row.offset = base + g.tensors()[t].root_offset;
                            }
                        }
                    }
                    let edges: Vec<(usize, usize)> = if q == Queue::OutOfOrder {
                        (0..r.n(4))
                            .filter_map(|_| {
                                let n = g.ops().len() as u64;
                                let (a, b) = (r.n(n) as usize, r.n(n) as usize);
                                (a < b).then_some((a, b))
                            })
                            .collect()
                    } else {
                        vec![]
                    };
                    match verify::graph(&g, q, &edges, &rows) {
                        Ok(()) => {
                            acc += 1;
                            if let Err(x) = execs(&g, q, &edges, &rows, &mut r, &mut stat) {
                                note(
                                    &format!(
                                        "tampered rows WRONG, accepted {q:?} loops {} {}",
                                        !g.loops().is_empty(),
                                        if x.contains("vw true") { "vw" } else { "" }
                                    ),
                                    format!("{x} {q:?} edges {edges:?} {}", desc(&g, &rows)),
                                );
                            }
                        }
                        Err(_) => {
                            rej += 1;
                        }
                    }
                }
            }
        }
    }
    println!("{built} graphs of {n}, {plans} plans, tampered accepted {acc} refused {rej}, runs {stat:?}");
    for (k, (c, d)) in &kinds {
        println!("== {k}: {c}\n{d}");
    }
    assert!(built > n / 2 && acc > n && rej > n, "{built} {acc} {rej}");
    assert!(kinds.is_empty(), "{} kinds of faults", kinds.len());
}
