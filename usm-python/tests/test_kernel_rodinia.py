"""Kernels of Rodinia, written anew, as those in `test_kernel_programs.py`."""

import numpy as np
import pytest
from test_kernel_programs import PROGRAMS, check, program, randoms

import usm

_BEFORE = set(PROGRAMS)
LOCAL = usm.CLK_LOCAL_MEM_FENCE
BLOCK = 7


@usm.kernel
def bfs_visit(starts, edges, frontier, fresh, visited, cost):
    i = usm.get_global_id(0)
    if frontier[i]:
        frontier[i] = False
        for e in range(starts[i], starts[i + 1]):
            other = edges[e]
            if not visited[other]:
                cost[other] = cost[i] + 1
                fresh[other] = True


@usm.kernel
def bfs_advance(frontier, fresh, visited, more):
    i = usm.get_global_id(0)
    if fresh[i]:
        frontier[i] = True
        visited[i] = True
        more[0] = True
        fresh[i] = False


@program("rodinia bfs", bfs_visit="unordered", bfs_advance="unordered")
def _(launch):
    n = 211
    random = np.random.default_rng(1)
    starts = np.concatenate([[0], np.cumsum(random.integers(0, 4, n))])
    edges = random.integers(0, n, starts[-1])
    first = np.arange(n) == 0
    frontier, fresh, visited = launch.array(first), launch.array(first & False), launch.array(first)
    cost = launch.array(np.where(first, 0, -1))
    a, b = launch.array(starts), launch.array(edges)
    wanted, level = np.where(first, 0, -1), [0]
    while level:
        more = launch.array(np.zeros(1, bool))
        launch(bfs_visit, n, a, b, frontier, fresh, visited, cost)
        launch(bfs_advance, n, frontier, fresh, visited, more)
        others = {int(other) for i in level for other in edges[starts[i] : starts[i + 1]] if wanted[other] < 0}
        wanted[list(others)] = wanted[level[0]] + 1
        level = list(others)
        assert bool(usm.to_numpy(more)[0]) == bool(others)
    return [(cost, wanted)]


TILE = 8


@usm.kernel
def hotspot(power, heat, out, rounds, across, along, leak, step):
    now = usm.local.array((TILE, TILE), np.float32)
    later = usm.local.array((TILE, TILE), np.float32)
    ty, tx = usm.get_local_id(0), usm.get_local_id(1)
    rows, cols = heat.shape
    inner = TILE - 2 * rounds
    y0, x0 = inner * usm.get_group_id(0) - rounds, inner * usm.get_group_id(1) - rounds
    y, x = y0 + ty, x0 + tx
    inside = 0 <= y < rows and 0 <= x < cols
    if inside:
        now[ty, tx] = heat[y, x]
    usm.barrier(LOCAL)
    north, south = max(ty - 1, -y0), min(ty + 1, rows - 1 - y0)
    west, east = max(tx - 1, -x0), min(tx + 1, cols - 1 - x0)
    done = False
    for r in range(rounds):
        done = False
        if r + 1 <= tx <= TILE - 2 - r and r + 1 <= ty <= TILE - 2 - r and inside:
            done = True
            here = now[ty, tx]
            flow = (now[south, tx] + now[north, tx] - 2 * here) * along + (now[ty, east] + now[ty, west] - 2 * here) * across
            later[ty, tx] = here + step * (power[y, x] + flow + (80 - here) * leak)
        usm.barrier(LOCAL)
        if r == rounds - 1:
            break
        if done:
            now[ty, tx] = later[ty, tx]
        usm.barrier(LOCAL)
    if done:
        out[y, x] = later[ty, tx]


@program("rodinia hotspot", hotspot="inspected")
def _(launch):
    power, heat = randoms(33, 29).astype("f4"), 70 + randoms(33, 29, seed=4).astype("f4")
    out = launch.array(np.zeros((33, 29), "f4"))
    groups = [-(-extent // 4) for extent in (33, 29)]
    sizes = tuple(TILE * one for one in groups), (TILE, TILE)
    launch(hotspot, sizes, launch.array(power), launch.array(heat), out, 2, 0.1, 0.2, 0.05, 0.5)
    for _ in range(2):
        p = np.pad(heat, 1, mode="edge")
        flow = (p[2:, 1:-1] + p[:-2, 1:-1] - 2 * heat) * 0.2 + (p[1:-1, 2:] + p[1:-1, :-2] - 2 * heat) * 0.1
        heat = heat + 0.5 * (power + flow + (80 - heat) * 0.05)
    return [(out, heat)]


@usm.kernel
def pathfinder(rounds, wall, source, out, row):
    before = usm.local.array(16, np.int32)
    result = usm.local.array(16, np.int32)
    tx, cols = usm.get_local_id(0), source.shape[0]
    x0 = (16 - 2 * rounds) * usm.get_group_id(0) - rounds
    x = x0 + tx
    inside = 0 <= x < cols
    if inside:
        before[tx] = source[x]
    usm.barrier(LOCAL)
    west, east = max(tx - 1, -x0), min(tx + 1, cols - 1 - x0)
    done = False
    for r in range(rounds):
        done = False
        if r + 1 <= tx <= 14 - r and inside:
            done = True
            result[tx] = min(before[west], before[tx], before[east]) + wall[row + r, x]
        usm.barrier(LOCAL)
        if r == rounds - 1:
            break
        if done:
            before[tx] = result[tx]
        usm.barrier(LOCAL)
    if done:
        out[x] = result[tx]


@program("rodinia pathfinder", pathfinder="inspected")
def _(launch):
    wall = np.random.default_rng(1).integers(0, 10, (7, 101), dtype="i4")
    a, one, two = launch.array(wall), launch.array(wall[0]), launch.array(np.zeros(101, "i4"))
    for row in (1, 4):
        launch(pathfinder, (16 * -(-101 // 10), 16), 3, a, one, two, row)
        one, two = two, one
    best = wall[0]
    for row in wall[1:]:
        best = np.minimum(np.minimum(best, np.append(best[1:], 99999)), np.append(99999, best[:-1])) + row
    return [(one, best)]


@usm.kernel
def lud_diagonal(m, start):
    shadow = usm.local.array((BLOCK, BLOCK), np.float64)
    t = usm.get_local_id(0)
    for i in range(BLOCK):
        shadow[i, t] = m[start + i, start + t]
    usm.barrier(LOCAL)
    for i in range(BLOCK - 1):
        if t > i:
            for j in range(i):
                shadow[t, i] -= shadow[t, j] * shadow[j, i]
            shadow[t, i] /= shadow[i, i]
        usm.barrier(LOCAL)
        if t > i:
            for j in range(i + 1):
                shadow[i + 1, t] -= shadow[i + 1, j] * shadow[j, t]
        usm.barrier(LOCAL)
    for i in range(1, BLOCK):
        m[start + i, start + t] = shadow[i, t]


@usm.kernel
def lud_perimeter(m, start):
    corner = usm.local.array((BLOCK, BLOCK), np.float64)
    t, away = usm.get_local_id(0), start + (usm.get_group_id(0) + 1) * BLOCK
    if t < BLOCK:
        for i in range(BLOCK):
            corner[i, t] = m[start + i, start + t]
    usm.barrier(LOCAL)
    if t < BLOCK:
        for i in range(1, BLOCK):
            for j in range(i):
                m[start + i, away + t] -= corner[i, j] * m[start + j, away + t]
    else:
        row = away + t - BLOCK
        for i in range(BLOCK):
            for j in range(i):
                m[row, start + i] -= m[row, start + j] * corner[j, i]
            m[row, start + i] /= corner[i, i]


@usm.kernel
def lud_internal(m, start):
    row, col = usm.local.array((BLOCK, BLOCK), np.float64), usm.local.array((BLOCK, BLOCK), np.float64)
    ty, tx = usm.get_local_id(0), usm.get_local_id(1)
    y, x = start + (usm.get_group_id(0) + 1) * BLOCK + ty, start + (usm.get_group_id(1) + 1) * BLOCK + tx
    row[ty, tx] = m[start + ty, x]
    col[ty, tx] = m[y, start + tx]
    usm.barrier(LOCAL)
    total = 0.0
    for k in range(BLOCK):
        total += col[ty, k] * row[k, tx]
    m[y, x] -= total


@program("rodinia lud", lud_diagonal="inspected", lud_perimeter="inspected", lud_internal="inspected")
def _(launch):
    n = 5 * BLOCK
    a = randoms(n, n) + n * np.eye(n)
    m = launch.array(a)
    for start in range(0, n, BLOCK):
        launch(lud_diagonal, (BLOCK, BLOCK), m, start)
        rest = (n - start) // BLOCK - 1
        if rest:
            launch(lud_perimeter, (2 * BLOCK * rest, 2 * BLOCK), m, start)
            launch(lud_internal, ((BLOCK * rest, BLOCK * rest), (BLOCK, BLOCK)), m, start)
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return [(m, a)]


@usm.kernel
def nw(items, score, penalty, first, wave):
    part = usm.local.array((BLOCK + 1, BLOCK + 1), np.int32)
    group, t = usm.get_group_id(0), usm.get_local_id(0)
    y, x = (first + group) * BLOCK, (wave - first - group) * BLOCK
    part[0, t + 1] = score[y, x + t + 1]
    part[t + 1, 0] = score[y + t + 1, x]
    if t == 0:
        part[0, 0] = score[y, x]
    usm.barrier(LOCAL)
    for d in range(2 * BLOCK - 1):
        i, j = d - t + 1, t + 1
        if 1 <= i <= BLOCK:
            both = part[i - 1, j - 1] + items[y + i, x + j]
            part[i, j] = max(both, part[i - 1, j] - penalty, part[i, j - 1] - penalty)
        usm.barrier(LOCAL)
    for i in range(1, BLOCK + 1):
        score[y + i, x + t + 1] = part[i, t + 1]


@program("rodinia nw", nw="inspected")
def _(launch):
    blocks, penalty = 5, 3
    n = blocks * BLOCK + 1
    items = np.random.default_rng(1).integers(-4, 10, (n, n), dtype="i4")
    wanted = np.zeros((n, n), "i4")
    wanted[0], wanted[:, 0] = -penalty * np.arange(n), -penalty * np.arange(n)
    a, score = launch.array(items), launch.array(wanted)
    for wave in range(2 * blocks - 1):
        first, last = max(0, wave - blocks + 1), min(wave, blocks - 1)
        launch(nw, ((last - first + 1) * BLOCK, BLOCK), a, score, penalty, first, wave)
    for i in range(1, n):
        for j in range(1, n):
            wanted[i, j] = max(wanted[i - 1, j - 1] + items[i, j], wanted[i - 1, j] - penalty, wanted[i, j - 1] - penalty)
    return [(score, wanted)]


@usm.kernel
def srad_slopes(image, north, south, west, east, slopes, c, q0, rows):
    k = usm.get_global_id(0)
    row, col = k % rows, k // rows
    here = image[k]
    for side in range(4):
        if side < 2:
            other = (north[row] if side == 0 else south[row]) + rows * col
        else:
            other = row + rows * (west[col] if side == 2 else east[col])
        slopes[side, k] = image[other] - here
    total, squared = 0.0, 0.0
    for side in range(4):
        total += slopes[side, k]
        squared += slopes[side, k] ** 2
    g2, l = squared / (here * here), total / here
    q = (0.5 * g2 - 0.0625 * l * l) / (1 + 0.25 * l) ** 2
    c[k] = min(max(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0.0), 1.0)


@usm.kernel
def srad_step(image, south, east, slopes, c, rate, rows):
    k = usm.get_global_id(0)
    row, col = k % rows, k // rows
    below, right = c[south[row] + rows * col], c[row + rows * east[col]]
    d = c[k] * slopes[0, k] + below * slopes[1, k] + c[k] * slopes[2, k] + right * slopes[3, k]
    image[k] += 0.25 * rate * d


@program("rodinia srad", srad_slopes="checked", srad_step="checked")
def _(launch):
    rows, cols = 23, 29
    x = np.exp(randoms(rows, cols))
    image, slopes, c = launch.array(x.T.ravel()), launch.array(np.zeros((4, x.size))), launch.array(np.zeros(x.size))
    up, down = (lambda n: launch.array(np.maximum(np.arange(n) - 1, 0))), (lambda n: launch.array(np.minimum(np.arange(n) + 1, n - 1)))
    south, east = down(rows), down(cols)
    launch(srad_slopes, x.size, image, up(rows), south, up(cols), east, slopes, c, 0.3, rows)
    launch(srad_step, x.size, image, south, east, slopes, c, 0.5, rows)
    p = np.pad(x, 1, mode="edge")
    d = np.stack([p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]]) - x
    g2, l = (d**2).sum(0) / x**2, d.sum(0) / x
    q = (0.5 * g2 - l**2 / 16) / (1 + l / 4) ** 2
    k = np.clip(1 / (1 + (q - 0.3) / (0.3 * 1.3)), 0, 1)
    p = np.pad(k, 1, mode="edge")
    return [(image, (x + 0.125 * (k * d[0] + p[2:, 1:-1] * d[1] + k * d[2] + p[1:-1, 2:] * d[3])).T.ravel())]


@usm.kernel
def backprop_forward(values, weights, partial):
    node = usm.local.array(16, np.float64)
    matrix = usm.local.array((16, 16), np.float64)
    by, ty, tx = usm.get_group_id(0), usm.get_local_id(0), usm.get_local_id(1)
    row = 16 * by + ty + 1
    if tx == 0:
        node[ty] = values[row]
    usm.barrier(LOCAL)
    matrix[ty, tx] = weights[row, tx + 1] * node[ty]
    usm.barrier(LOCAL)
    power = 2
    while power <= 16:
        if ty % power == 0:
            matrix[ty, tx] += matrix[ty + power // 2, tx]
        usm.barrier(LOCAL)
        power *= 2
    if ty == 0:
        partial[by, tx] = matrix[0, tx]


@usm.kernel
def backprop_adjust(delta, values, weights, before):
    row, x = usm.get_global_id(0) + 1, usm.get_global_id(1) + 1
    change = 0.3 * delta[x] * values[row] + 0.3 * before[row, x]
    weights[row, x] += change
    before[row, x] = change


@program("rodinia backprop", backprop_forward="inspected", backprop_adjust="proven")
def _(launch):
    n = 5 * 16
    values, weights, before, delta = randoms(n + 1), randoms(n + 1, 17), randoms(n + 1, 17, seed=4), randoms(17)
    a, w, b, partial = launch.array(values), launch.array(weights), launch.array(before), launch.array(np.zeros((5, 16)))
    launch(backprop_forward, ((n, 16), (16, 16)), a, w, partial)
    launch(backprop_adjust, usm.Range(n, 16), launch.array(delta), a, w, b)
    change = 0.3 * delta[1:] * values[1:, None] + 0.3 * before[1:, 1:]
    weights, product = weights.copy(), weights[1:, 1:] * values[1:, None]
    weights[1:, 1:] += change
    return [(partial, product.reshape(5, 16, 16).sum(1)), (w, weights)]


@usm.kernel
def gaussian_factors(factors, a, t):
    i = usm.get_global_id(0)
    if i < a.shape[0] - 1 - t:
        factors[t + i + 1, t] = a[t + i + 1, t] / a[t, t]


@usm.kernel
def gaussian_rows(factors, a, b, t):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    if i < a.shape[0] - 1 - t and j < a.shape[0] - t:
        a[t + 1 + i, t + j] -= factors[t + 1 + i, t] * a[t, t + j]
        if j == 0:
            b[t + 1 + i] -= factors[t + 1 + i, t] * b[t]


@program("rodinia gaussian", gaussian_factors="proven", gaussian_rows="inspected")
def _(launch):
    n = 17
    a, b = randoms(n, n) + n * np.eye(n), randoms(n)
    m, v, factors = launch.array(a), launch.array(b), launch.array(np.zeros((n, n)))
    for t in range(n - 1):
        launch(gaussian_factors, n, factors, m, t)
        launch(gaussian_rows, usm.Range(n, n), factors, m, v, t)
    for k in range(n - 1):
        rate = (a[k + 1 :, k] / a[k, k]).copy()
        b[k + 1 :] -= rate * b[k]
        a[k + 1 :] -= np.outer(rate, a[k])
    return [(m, a), (v, b)]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in _BEFORE])
def test_a_program_is_right_and_has_its_proof(queue, name):
    check(name, queue)
