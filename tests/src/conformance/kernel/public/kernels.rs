//! The kernels of public programs, from one source. They keep the form of the originals: guards,
//! trees and index arithmetic are theirs.

use usm_kernel::prelude::*;

#[kernels]
pub(super) mod rodinia {
    /// A row of the cheapest paths through a grid, some rows at a time: items at the edge of a
    /// group compute for their neighbours only.
    #[kernel(group = 16)]
    pub fn pathfinder(rounds: i64, row: u64, wall: &[i32], source: &[i32], out: &mut [i32]) {
        #[local]
        let mut before: [i32; 16];
        #[local]
        let mut result: [i32; 16];
        let tx = local_id(0) as i64;
        let cols = source.len() as i64;
        let x0 = (16 - 2 * rounds) * group_id(0) as i64 - rounds;
        let x = x0 + tx;
        let inside = x >= 0 && x < cols;
        if inside {
            before[tx as usize] = source[x as usize];
        }
        barrier(LOCAL);
        let (west, east) = (max(tx - 1, -x0), min(tx + 1, cols - 1 - x0));
        let mut done = false;
        for r in 0..rounds {
            done = false;
            if r + 1 <= tx && tx <= 14 - r && inside {
                done = true;
                let best = before[west as usize].min(before[tx as usize]).min(before[east as usize]);
                result[tx as usize] = best + wall[(row + r as u64) * source.len() + x as u64];
            }
            barrier(LOCAL);
            if r == rounds - 1 {
                break;
            }
            if done {
                before[tx as usize] = result[tx as usize];
            }
            barrier(LOCAL);
        }
        if done {
            out[x as usize] = result[tx as usize];
        }
    }

    const TILE: i64 = 8;

    /// Heat of a chip, some steps at a time, with halos as above.
    #[kernel(group = [8, 8])]
    pub fn hotspot(
        rounds: i64,
        rows: i64,
        cols: i64,
        across: f32,
        along: f32,
        leak: f32,
        step: f32,
        power: &[f32],
        heat: &[f32],
        out: &mut [f32],
    ) {
        #[local]
        let mut now: [[f32; 8]; 8];
        #[local]
        let mut later: [[f32; 8]; 8];
        let (ty, tx) = (local_id(0) as i64, local_id(1) as i64);
        let inner = TILE - 2 * rounds;
        let (y0, x0) = (inner * group_id(0) as i64 - rounds, inner * group_id(1) as i64 - rounds);
        let (y, x) = (y0 + ty, x0 + tx);
        let inside = y >= 0 && y < rows && x >= 0 && x < cols;
        if inside {
            now[ty as usize][tx as usize] = heat[(y * cols + x) as usize];
        }
        barrier(LOCAL);
        let (north, south) = (max(ty - 1, -y0), min(ty + 1, rows - 1 - y0));
        let (west, east) = (max(tx - 1, -x0), min(tx + 1, cols - 1 - x0));
        let mut done = false;
        for r in 0..rounds {
            done = false;
            if r + 1 <= tx && tx <= TILE - 2 - r && r + 1 <= ty && ty <= TILE - 2 - r && inside {
                done = true;
                let here = now[ty as usize][tx as usize];
                let vertical =
                    now[south as usize][tx as usize] + now[north as usize][tx as usize] - 2.0 * here;
                let horizontal =
                    now[ty as usize][east as usize] + now[ty as usize][west as usize] - 2.0 * here;
                let flow = vertical * along + horizontal * across;
                let added = power[(y * cols + x) as usize] + flow + (80.0 - here) * leak;
                later[ty as usize][tx as usize] = here + step * added;
            }
            barrier(LOCAL);
            if r == rounds - 1 {
                break;
            }
            if done {
                now[ty as usize][tx as usize] = later[ty as usize][tx as usize];
            }
            barrier(LOCAL);
        }
        if done {
            out[(y * cols + x) as usize] = later[ty as usize][tx as usize];
        }
    }

    const BLOCK: u64 = 7;

    /// The factors of a block on the diagonal of a matrix.
    #[kernel(group = 7)]
    pub fn lud_diagonal(size: u64, start: u64, m: &mut [f64]) {
        #[local]
        let mut shadow: [[f64; 7]; 7];
        let t = local_id(0);
        for i in 0..BLOCK {
            shadow[i][t] = m[(start + i) * size + start + t];
        }
        barrier(LOCAL);
        for i in 0..BLOCK - 1 {
            if t > i {
                for j in 0..i {
                    shadow[t][i] -= shadow[t][j] * shadow[j][i];
                }
                shadow[t][i] /= shadow[i][i];
            }
            barrier(LOCAL);
            if t > i {
                for j in 0..i + 1 {
                    shadow[i + 1][t] -= shadow[i + 1][j] * shadow[j][t];
                }
            }
            barrier(LOCAL);
        }
        for i in 1..BLOCK {
            m[(start + i) * size + start + t] = shadow[i][t];
        }
    }

    /// Neighbours of the nodes at the front of a search.
    #[kernel]
    pub fn bfs_visit(
        starts: &[u32],
        edges: &[u32],
        frontier: &mut [bool],
        fresh: &mut [bool],
        visited: &[bool],
        cost: &mut [i32],
    ) {
        let i = global_id(0);
        if frontier[i] {
            frontier[i] = false;
            for e in starts[i]..starts[i + 1] {
                let other = edges[e as usize] as usize;
                if !visited[other] {
                    cost[other] = cost[i] + 1;
                    fresh[other] = true;
                }
            }
        }
    }

    /// The next front.
    #[kernel]
    pub fn bfs_advance(frontier: &mut [bool], fresh: &mut [bool], visited: &mut [bool], more: &mut [bool]) {
        let i = global_id(0);
        if fresh[i] {
            frontier[i] = true;
            visited[i] = true;
            more[0] = true;
            fresh[i] = false;
        }
    }
}

#[kernels]
pub(super) mod shoc {
    use usm_kernel::prelude::*;

    /// The place of an atom, or the force on it.
    #[derive(Clone, Copy, Debug, PartialEq, Structure)]
    #[repr(C)]
    pub(crate) struct Place {
        pub(crate) x: f64,
        pub(crate) y: f64,
        pub(crate) z: f64,
    }

    /// Forces between atoms and their neighbours.
    #[kernel]
    pub(crate) fn md(most: u64, place: &[Place], neighbors: &[u32], force: &mut [Place]) {
        let i = global_id(0);
        let own = place[i];
        let mut sum = Place { x: 0.0, y: 0.0, z: 0.0 };
        for k in 0..most {
            let other = place[neighbors[k * place.len() + i] as usize];
            let (dx, dy, dz) = (own.x - other.x, own.y - other.y, own.z - other.z);
            let squared = dx * dx + dy * dy + dz * dz;
            if squared < 0.5 {
                let r2 = 1.0 / squared;
                let r6 = r2 * r2 * r2;
                let f = r2 * r6 * (1.5 * r6 - 2.0);
                sum = Place { x: sum.x + dx * f, y: sum.y + dy * f, z: sum.z + dz * f };
            }
        }
        force[i] = sum;
    }

    /// A sparse matrix times a vector: 32 items a row, and a tree in each segment of 32.
    #[kernel(group = 128)]
    pub fn spmv_vector(values: &[f64], columns: &[u32], starts: &[u32], x: &[f64], y: &mut [f64]) {
        #[local]
        let mut part: [f64; 128];
        let t = local_id(0);
        let (lane, row) = (t % 32, group_id(0) * 4 + t / 32);
        let mut total = 0.0_f64;
        if row < y.len() {
            for k in (starts[row] as u64 + lane..starts[row + 1] as u64).step_by(32) {
                total += values[k] * x[columns[k] as usize];
            }
        }
        part[t] = total;
        barrier(LOCAL);
        let mut step = 16_u64;
        while step > 0 {
            if lane < step {
                part[t] += part[t + step];
            }
            barrier(LOCAL);
            step /= 2;
        }
        if lane == 0 && row < y.len() {
            y[row] = part[t];
        }
    }

    const TURNS: [u32; 16] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];

    /// One of the 64 steps of MD5 over a key of four bytes and its padding.
    #[kernel_fn]
    fn added(key: u32, word: u64) -> u32 {
        match word {
            0 => key,
            1 => 0x80,
            14 => 32,
            _ => 0,
        }
    }

    /// The first key of the items' whose digest is the one that is looked for.
    #[kernel]
    pub fn md5(constants: &[u32; 64], wanted: &[u32; 4], first: u32, count: u32, found: &[Atomic<u32>]) {
        let i = global_id(0) as u32;
        if i >= count {
            return;
        }
        let key = first + i * 97;
        let (mut a, mut b, mut c, mut d) =
            (0x6745_2301_u32, 0xefcd_ab89_u32, 0x98ba_dcfe_u32, 0x1032_5476_u32);
        for step in 0..64_u64 {
            let (f, word) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), 7 * step % 16),
            };
            let sum = a + f + constants[step] + added(key, word);
            (a, d, c, b) = (d, c, b, b + sum.rotate_left(TURNS[step / 16 * 4 + step % 4]));
        }
        let digest = [a + 0x6745_2301, b + 0xefcd_ab89, c + 0x98ba_dcfe, d + 0x1032_5476];
        let mut is_same = true;
        for k in 0..4_u64 {
            is_same &= digest[k] == wanted[k];
        }
        if is_same {
            found[0].fetch_min(i);
        }
    }

    /// Sums of a group's elements before each one.
    #[kernel_fn]
    fn before_in_group(own: u32, sums: &mut [u32]) -> u32 {
        let (l, size) = (local_id(0), local_size(0));
        sums[l] = 0;
        let l = l + size;
        sums[l] = own;
        barrier(LOCAL);
        let mut step = 1_u64;
        while step < size {
            let other = sums[l - step];
            barrier(LOCAL);
            sums[l] += other;
            barrier(LOCAL);
            step *= 2;
        }
        sums[l] - own
    }

    /// Sums before each element in the part of a group, and the sums of the parts.
    #[kernel(group = 32)]
    pub fn scan(a: &[u32], out: &mut [u32], totals: &mut [u32]) {
        #[local]
        let mut sums: [u32; 64];
        let (l, i) = (local_id(0), global_id(0));
        let own = if i < a.len() { a[i] } else { 0 };
        let before = before_in_group(own, sums);
        if i < out.len() {
            out[i] = before;
        }
        if l == 31 {
            totals[group_id(0)] = before + own;
        }
    }
}

#[kernels]
pub(super) mod polybench {
    #[kernel(dimensions = 2)]
    pub fn fdtd_y(t: u64, nx: u64, ny: u64, source: &[f32], ey: &mut [f32], hz: &[f32]) {
        let (i, j) = (global_id(0), global_id(1));
        if i < nx && j < ny {
            if i == 0 {
                ey[i * ny + j] = source[t];
            } else {
                ey[i * ny + j] -= 0.5 * (hz[i * ny + j] - hz[(i - 1) * ny + j]);
            }
        }
    }

    #[kernel(dimensions = 2)]
    pub fn fdtd_x(nx: u64, ny: u64, ex: &mut [f32], hz: &[f32]) {
        let (i, j) = (global_id(0), global_id(1));
        if i < nx && j < ny && j > 0 {
            ex[i * (ny + 1) + j] -= 0.5 * (hz[i * ny + j] - hz[i * ny + (j - 1)]);
        }
    }

    #[kernel(dimensions = 2)]
    pub fn fdtd_z(nx: u64, ny: u64, ex: &[f32], ey: &[f32], hz: &mut [f32]) {
        let (i, j) = (global_id(0), global_id(1));
        if i < nx && j < ny {
            let along = ex[i * (ny + 1) + (j + 1)] - ex[i * (ny + 1) + j];
            hz[i * ny + j] -= 0.7 * (along + ey[(i + 1) * ny + j] - ey[i * ny + j]);
        }
    }

    #[kernel]
    pub fn gramschmidt_norm(k: u64, rows: u64, cols: u64, a: &[f64], r: &mut [f64]) {
        if global_id(0) == 0 {
            let mut norm = 0.0_f64;
            for i in 0..rows {
                norm += a[i * cols + k] * a[i * cols + k];
            }
            r[k * cols + k] = norm.sqrt();
        }
    }

    #[kernel]
    pub fn gramschmidt_column(k: u64, rows: u64, cols: u64, a: &[f64], r: &[f64], q: &mut [f64]) {
        let i = global_id(0);
        if i < rows {
            q[i * cols + k] = a[i * cols + k] / r[k * cols + k];
        }
    }

    #[kernel]
    pub fn gramschmidt_others(k: u64, rows: u64, cols: u64, q: &[f64], r: &mut [f64], a: &mut [f64]) {
        let j = global_id(0);
        if j > k && j < cols {
            let mut sum = 0.0_f64;
            for i in 0..rows {
                sum += q[i * cols + k] * a[i * cols + j];
            }
            r[k * cols + j] = sum;
            for i in 0..rows {
                a[i * cols + j] -= q[i * cols + k] * sum;
            }
        }
    }
}

#[kernels]
pub(super) mod cubecl {
    #[kernel_fn]
    fn gelu_scalar<T>(x: T) -> T {
        x * ((x / (2 as T).sqrt()).erf() + 1 as T) / 2 as T
    }

    /// An activation of neural networks.
    #[kernel(instances(f32, f64))]
    pub fn gelu<T>(input: &[T], output: &mut [T]) {
        let i = global_id(0);
        if i < input.len() {
            output[i] = gelu_scalar::<T>(input[i]);
        }
    }
}
