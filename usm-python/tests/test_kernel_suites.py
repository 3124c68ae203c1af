"""Kernels of SHOC and PolyBench, written anew, as those in `test_kernel_programs.py`."""

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
def fft(x, out):
    a = usm.local.array(64, np.complex128)
    row, t = usm.get_group_id(0), usm.get_local_id(0)
    a[t] = x[row, t]
    a[t + 32] = x[row, t + 32]
    usm.barrier(LOCAL)
    for stage in range(6):
        size = 1 << stage
        part = t % size
        u, v = a[t], a[t + 32] * np.exp(-1j * np.pi * part / size)
        usm.barrier(LOCAL)
        a[2 * t - part] = u + v
        a[2 * t - part + size] = u - v
        usm.barrier(LOCAL)
    out[row, t] = a[t]
    out[row, t + 32] = a[t + 32]


@program("shoc fft", fft="inspected")
def _(launch):
    x = randoms(7, 64) + 1j * randoms(7, 64, seed=4)
    out = launch.array(np.zeros_like(x))
    launch(fft, (7 * 32, 32), launch.array(x), out)
    return [(out, np.fft.fft(x))]


@usm.kernel
def radix_count(keys, shift, counts):
    mine = usm.local.array((4, 16), np.int32)
    group, t = usm.get_group_id(0), usm.get_local_id(0)
    for digit in range(4):
        mine[digit, t] = 0
    for k in range(64 * group + t, min(64 * group + 64, keys.size), 16):
        mine[(keys[k] >> shift) & 3, t] += 1
    usm.barrier(LOCAL)
    if t < 4:
        total = 0
        for other in range(16):
            total += mine[t, other]
        counts[t, group] = total


@usm.kernel
def radix_scan(counts, starts):
    total = 0
    for digit in range(4):
        for group in range(counts.shape[1]):
            starts[digit, group] = total
            total += counts[digit, group]


@usm.kernel
def radix_scatter(keys, shift, starts, out):
    digits = usm.local.array(16, np.int64)
    first = usm.local.array(4, np.int64)
    group, t = usm.get_group_id(0), usm.get_local_id(0)
    if t < 4:
        first[t] = starts[t, group]
    for step in range(4):
        k = 64 * group + 16 * step + t
        digits[t] = (keys[k] >> shift) & 3 if k < keys.size else 4
        usm.barrier(LOCAL)
        rank, same = 0, 0
        for other in range(16):
            rank += digits[other] == digits[t] and other < t
            same += digits[other] == t
        if k < keys.size:
            out[first[digits[t]] + rank] = keys[k]
        usm.barrier(LOCAL)
        if t < 4:
            first[t] += same
        usm.barrier(LOCAL)


@program("shoc radix sort", radix_count="unordered", radix_scan="inspected", radix_scatter="unordered")
def _(launch):
    x = np.random.default_rng(1).integers(0, 1 << 8, 211, dtype="u4")
    keys, out = launch.array(x), launch.array(x)
    counts, starts = launch.array(np.zeros((4, 4), "i4")), launch.array(np.zeros((4, 4), int))
    for shift in range(0, 8, 2):
        launch(radix_count, (64, 16), keys, shift, counts)
        launch(radix_scan, 1, counts, starts)
        launch(radix_scatter, (64, 16), keys, shift, starts, out)
        keys, out = out, keys
    return [(keys, np.sort(x))]


# PolyBench.


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
def gemver_update(a, u1, v1, u2, v2):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    a[i, j] += u1[i] * v1[j] + u2[i] * v2[j]


@usm.kernel
def gemver_transposed(a, beta, x, y, z):
    i = usm.get_global_id(0)
    for j in range(a.shape[0]):
        x[i] += beta * a[j, i] * y[j]
    x[i] += z[i]


@usm.kernel
def gemver_product(a, alpha, x, w):
    i = usm.get_global_id(0)
    for j in range(a.shape[1]):
        w[i] += alpha * a[i, j] * x[j]


@program("polybench gemver", gemver_update="proven", gemver_transposed="proven", gemver_product="proven")
def _(launch):
    n = 37
    a, (u1, v1, u2, v2, y, z) = randoms(n, n), randoms(6, n, seed=4)
    m, x, w = launch.array(a), launch.array(np.zeros(n)), launch.array(np.zeros(n))
    launch(gemver_update, usm.Range(n, n), m, *map(launch.array, (u1, v1, u2, v2)))
    launch(gemver_transposed, n, m, 0.5, x, launch.array(y), launch.array(z))
    launch(gemver_product, n, m, 1.5, x, w)
    a = a + np.outer(u1, v1) + np.outer(u2, v2)
    wanted = 0.5 * a.T @ y + z
    return [(x, wanted), (w, 1.5 * a @ wanted)]


@usm.kernel
def adi_rows(x, a, b):
    i = usm.get_global_id(0)
    for j in range(1, x.shape[1]):
        x[i, j] -= x[i, j - 1] * a[i, j] / b[i, j - 1]
        b[i, j] -= a[i, j] * a[i, j] / b[i, j - 1]
    x[i, x.shape[1] - 1] /= b[i, x.shape[1] - 1]


@usm.kernel
def adi_columns(x, a, b):
    j = usm.get_global_id(0)
    for i in range(1, x.shape[0]):
        x[i, j] -= x[i - 1, j] * a[i, j] / b[i - 1, j]
        b[i, j] -= a[i, j] * a[i, j] / b[i - 1, j]
    x[x.shape[0] - 1, j] /= b[x.shape[0] - 1, j]


@program("polybench adi", adi_rows="proven", adi_columns="inspected")
def _(launch):
    n = 23
    x, a, b = randoms(n, n), randoms(n, n, seed=4), 3 + randoms(n, n, seed=5)
    one, two, three = map(launch.array, (x, a, b))
    launch(adi_rows, n, one, two, three)
    launch(adi_columns, n, one, two, three)
    for turn in range(2):
        x, a, b = x.T.copy(), a.T.copy(), b.T.copy()
        for i in range(1, n):
            x[i] -= x[i - 1] * a[i] / b[i - 1]
            b[i] -= a[i] ** 2 / b[i - 1]
        x[-1] /= b[-1]
    return [(one, x)]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in _BEFORE])
def test_a_program_is_right_and_has_its_proof(queue, name):
    check(name, queue)
