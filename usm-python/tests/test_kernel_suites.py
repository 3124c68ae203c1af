"""Kernels of SHOC, PolyBench, Taichi and Warp, as those in `test_kernel_programs.py`."""

import numpy as np
import pytest
from test_kernel_programs import PROGRAMS, check, program, randoms

import usm

_BEFORE = set(PROGRAMS)
LOCAL = usm.CLK_LOCAL_MEM_FENCE


@usm.kernel
def md(place, neighbors, most, force):
    i, n = usm.get_global_id(0), place.shape[0]
    x, y, z = place[i, 0], place[i, 1], place[i, 2]
    fx, fy, fz = 0.0, 0.0, 0.0
    for k in range(most):
        j = neighbors[k * n + i]
        dx, dy, dz = x - place[j, 0], y - place[j, 1], z - place[j, 2]
        squared = dx * dx + dy * dy + dz * dz
        if squared < 0.5:
            r2 = 1 / squared
            r6 = r2 * r2 * r2
            f = r2 * r6 * (1.5 * r6 - 2)
            fx, fy, fz = fx + dx * f, fy + dy * f, fz + dz * f
    force[i, 0], force[i, 1], force[i, 2] = fx, fy, fz


@program("shoc md", md="checked")
def _(launch):
    n, most = 101, 9
    place = np.random.default_rng(1).permutation(np.mgrid[:5, :5, :5].reshape(3, -1).T)[:n] * 0.4
    squared = ((place[:, None] - place[None]) ** 2).sum(2) + 9 * np.eye(n)
    near = squared.argsort(1)[:, :most]
    force = launch.array(np.zeros((n, 3)))
    launch(md, n, launch.array(place), launch.array(near.T.ravel()), most, force)
    s = np.take_along_axis(squared, near, 1)
    f = np.where(s < 0.5, s**-4 * (1.5 * s**-3 - 2), 0)
    return [(force, ((place[:, None] - place[near]) * f[..., None]).sum(1))]


@usm.kernel
def spmv_vector(values, columns, starts, x, y):
    part = usm.local.array(128, np.float64)
    t = usm.get_local_id(0)
    lane, row = t % 32, usm.get_group_id(0) * 4 + t // 32
    total = 0.0
    if row < y.shape[0]:
        for k in range(starts[row] + lane, starts[row + 1], 32):
            total += values[k] * x[columns[k]]
    part[t] = total
    usm.barrier(LOCAL)
    step = 16
    while step > 0:
        if lane < step:
            part[t] += part[t + step]
        usm.barrier(LOCAL)
        step //= 2
    if lane == 0 and row < y.shape[0]:
        y[row] = part[t]


@program("shoc spmv csr_vector", spmv_vector="checked")
def _(launch):
    n, random = 61, np.random.default_rng(1)
    dense = np.where(random.random((n, 97)) < 0.5, random.random((n, 97)), 0)
    rows, columns = np.nonzero(dense)
    starts, x, y = np.searchsorted(rows, np.arange(n + 1)), randoms(97), launch.array(np.zeros(n))
    launch(spmv_vector, (-(-n // 4) * 128, 128), *map(launch.array, (dense[rows, columns], columns, starts, x)), y)
    return [(y, dense @ x)]


@usm.kernel
def atax_rows(a, x, between):
    i = usm.get_global_id(0)
    for j in range(a.shape[1]):
        between[i] += a[i, j] * x[j]


@usm.kernel
def atax_columns(a, y, between):
    j = usm.get_global_id(0)
    for i in range(a.shape[0]):
        y[j] += a[i, j] * between[i]


@program("polybench atax", atax_rows="proven", atax_columns="proven")
def _(launch):
    a, x = randoms(37, 41), randoms(41)
    m, between, y = launch.array(a), launch.array(np.zeros(37)), launch.array(np.zeros(41))
    launch(atax_rows, 37, m, launch.array(x), between)
    launch(atax_columns, 41, m, y, between)
    return [(y, a.T @ (a @ x))]


@usm.kernel
def gramschmidt_project(a, r, q, k):
    j = usm.get_global_id(0) + k + 1
    if j < a.shape[1]:
        r[k, j] = 0
        for i in range(a.shape[0]):
            r[k, j] += q[i, k] * a[i, j]
        for i in range(a.shape[0]):
            a[i, j] -= q[i, k] * r[k, j]


@usm.kernel
def gramschmidt_norm(a, r, q, k):
    i = usm.get_global_id(0)
    total = 0.0
    for row in range(a.shape[0]):
        total += a[row, k] * a[row, k]
    q[i, k] = a[i, k] / np.sqrt(total)
    if i == 0:
        r[k, k] = np.sqrt(total)


@program("polybench gramschmidt", gramschmidt_norm="proven", gramschmidt_project="inspected")
def _(launch):
    x = randoms(23, 11) + np.eye(23, 11)
    a, r, q = launch.array(x), launch.array(np.zeros((11, 11))), launch.array(np.zeros((23, 11)))
    for k in range(11):
        launch(gramschmidt_norm, 23, a, r, q, k)
        launch(gramschmidt_project, 11, a, r, q, k)
    wanted_q, wanted_r = np.linalg.qr(x)
    signs = np.sign(np.diag(wanted_r))
    return [(q, wanted_q * signs), (r, wanted_r * signs[:, None])]


@usm.kernel
def gemm(alpha, beta, a, b, c):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] *= beta
        for k in range(a.shape[1]):
            c[i, j] += alpha * a[i, k] * b[k, j]


@program("polybench gemm", gemm="proven")
def _(launch):
    a, b, c = randoms(37, 29), randoms(29, 41), randoms(37, 41, seed=4)
    out = launch.array(c)
    launch(gemm, ((40, 64), (8, 32)), 1.5, 0.5, launch.array(a), launch.array(b), out)
    return [(out, 1.5 * a @ b + 0.5 * c)]


@usm.kernel
def fdtd_y(ey, hz, t):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    ey[i, j] = t if i == 0 else ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])


@usm.kernel
def fdtd_x(ex, hz):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    if j > 0:
        ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])


@usm.kernel
def fdtd_z(ex, ey, hz):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    if i < hz.shape[0] - 1 and j < hz.shape[1] - 1:
        hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@program("polybench fdtd-2d", fdtd_y="inspected", fdtd_x="proven", fdtd_z="proven")
def _(launch):
    ex, ey, hz = (randoms(23, 29, seed=seed) for seed in range(3))
    x, y, z = map(launch.array, (ex, ey, hz))
    for t in range(3):
        launch(fdtd_y, usm.Range(23, 29), y, z, float(t))
        launch(fdtd_x, usm.Range(23, 29), x, z)
        launch(fdtd_z, usm.Range(23, 29), x, y, z)
        ey[0], ey[1:] = t, ey[1:] - 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return [(z, hz)]


@usm.kernel
def life_count(alive, counts):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    n, m = alive.shape
    total = 0
    for di in range(-1, 2):
        for dj in range(-1, 2):
            if di != 0 or dj != 0:
                total += alive[(i + di + n) % n, (j + dj + m) % m]
    counts[i, j] = total


@program("taichi life", life_count="inspected")
def _(launch):
    alive = np.random.default_rng(1).integers(0, 2, (23, 29))
    counts = launch.array(np.zeros((23, 29), int))
    launch(life_count, usm.Range(23, 29), launch.array(alive), counts)
    turns = [(di, dj) for di in (-1, 0, 1) for dj in (-1, 0, 1) if di or dj]
    return [(counts, sum(np.roll(alive, turn, (0, 1)) for turn in turns))]


@usm.kernel
def springs(x, pairs, rest, force):
    s = usm.get_global_id(0)
    i, j = pairs[s, 0], pairs[s, 1]
    a, b = x[i], x[j]
    d = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    length = np.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
    f = 3 * (length - rest[s]) / length
    for k in range(3):
        step = f * (b[k] - a[k])
        usm.atomic.add(force, (i, k), step)
        usm.atomic.sub(force, (j, k), step)


@program("warp cloth springs", springs="checked")
def _(launch):
    x, random = randoms(37, 3), np.random.default_rng(1)
    pairs = np.stack([random.permutation(37)[:2] for _ in range(101)])
    rest, force = randoms(101), launch.array(np.zeros((37, 3)))
    launch(springs, 101, *map(launch.array, (x, pairs, rest)), force)
    d = x[pairs[:, 1]] - x[pairs[:, 0]]
    length = np.linalg.norm(d, axis=1)
    f, wanted = (3 * (length - rest) / length)[:, None] * d, np.zeros((37, 3))
    np.add.at(wanted, pairs[:, 0], f)
    np.subtract.at(wanted, pairs[:, 1], f)
    return [(force, wanted)]


@usm.kernel
def jacobi(a, b):
    i, j = usm.get_global_id(0) + 1, usm.get_global_id(1) + 1
    if i < a.shape[0] - 1 and j < a.shape[1] - 1:
        b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])


@program("polybench jacobi-2d", jacobi="proven")
def _(launch):
    a = randoms(23, 29)
    one, two = launch.array(a), launch.array(a)
    for _ in range(4):
        launch(jacobi, usm.Range(23, 29), one, two)
        one, two = two, one
        a[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
    return [(one, a)]


@usm.kernel
def correlation_centre(data):
    j = usm.get_global_id(0)
    n = data.shape[0]
    mean, squared = 0.0, 0.0
    for i in range(n):
        mean += data[i, j]
    mean /= n
    for i in range(n):
        squared += (data[i, j] - mean) ** 2
    deviation = np.sqrt(squared / n)
    if deviation <= 0.005:
        deviation = 1.0
    for i in range(n):
        data[i, j] = (data[i, j] - mean) / (np.sqrt(float(n)) * deviation)


@usm.kernel
def correlation_pairs(data, result):
    j = usm.get_global_id(0)
    result[j, j] = 1.0
    for k in range(j + 1, data.shape[1]):
        total = 0.0
        for i in range(data.shape[0]):
            total += data[i, j] * data[i, k]
        result[j, k] = total
        result[k, j] = total


@program("polybench correlation", correlation_centre="inspected", correlation_pairs="inspected")
def _(launch):
    x = randoms(37, 23)
    data, result = launch.array(x), launch.array(np.zeros((23, 23)))
    launch(correlation_centre, 23, data)
    launch(correlation_pairs, 23, data, result)
    return [(result, np.corrcoef(x.T))]


@usm.kernel
def doitgen(a, c4, total):
    r, q = usm.get_global_id(0), usm.get_global_id(1)
    for p in range(c4.shape[1]):
        total[r, q, p] = 0.0
        for s in range(c4.shape[0]):
            total[r, q, p] += a[r, q, s] * c4[s, p]
    for p in range(c4.shape[1]):
        a[r, q, p] = total[r, q, p]


@program("polybench doitgen", doitgen="inspected")
def _(launch):
    x, c4 = randoms(7, 11, 13), randoms(13, 13, seed=4)
    a = launch.array(x)
    launch(doitgen, usm.Range(7, 11), a, launch.array(c4), launch.array(np.zeros_like(x)))
    return [(a, x @ c4)]


@usm.kernel
def primes(counts):
    n = usm.get_global_id(0)
    is_prime, k = n > 1, 2
    while k * k <= n and is_prime:
        is_prime = n % k != 0
        k += 1
    if is_prime:
        usm.atomic.add(counts, 0, 1)


@program("taichi primes", primes="proven")
def _(launch):
    counts = launch.array(np.zeros(1, int))
    launch(primes, 1009, counts)
    return [(counts, [168])]


@usm.kernel
def lcs(a, b, f):
    for i in range(1, a.size + 1):
        for j in range(1, b.size + 1):
            same = 1 if a[i - 1] == b[j - 1] else 0
            f[i, j] = max(f[i - 1, j - 1] + same, f[i - 1, j], f[i, j - 1])


@program("taichi lcs", lcs="inspected")
def _(launch):
    a, b = np.random.default_rng(1).integers(0, 9, (2, 53))
    f = launch.array(np.zeros((54, 54), int))
    launch(lcs, 1, launch.array(a), launch.array(b), f)
    wanted = np.zeros((54, 54), int)
    for i in range(1, 54):
        for j in range(1, 54):
            wanted[i, j] = max(wanted[i - 1, j - 1] + (a[i - 1] == b[j - 1]), wanted[i - 1, j], wanted[i, j - 1])
    return [(f, wanted)]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in _BEFORE])
def test_a_program_is_right_and_has_its_proof(queue, name):
    check(name, queue)
