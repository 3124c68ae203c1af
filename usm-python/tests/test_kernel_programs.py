"""Kernels of public programs, written anew: results beside NumPy's at odd sizes, and their proofs.

States: proven; inspected; unordered, where memory decides which item comes first; and checked,
where it decides whether an index is inside. Here are those of dpbench, Taichi and
Warp; other suites have files of their own.
"""

import math

import numpy as np
import pytest

import usm

PROGRAMS = {}


def program(name, **states):
    """Adds a program. `states` are those that the proof of each of its kernels must have."""

    def added(function):
        PROGRAMS[name] = function, states
        return function

    return added


class Launches:
    """Launches kernels on one queue, and notes what the proofs of their launches say."""

    def __init__(self, queue):
        self.queue = queue
        self.states = {}

    def array(self, x):
        """A copy of an array on the queue's device."""
        return usm.asarray(np.ascontiguousarray(x), queue=self.queue, copy=True)

    def __call__(self, kernel, sizes, *arguments):
        said = kernel.proof[sizes](*arguments)
        state = said.partition(": ")[0]
        if "is not proven, so it is checked as it runs" in said and state != "unordered":
            state = "checked"
        name = kernel.__wrapped__.__name__
        known = self.states.setdefault(name, state)
        if {known, state} == {"proven", "inspected"}:
            # The numbers of some launches fulfil a condition.
            self.states[name] = "inspected"
        else:
            assert known == state, (name, said)
        kernel[sizes](*arguments)


def check(name, queue):
    function, states = PROGRAMS[name]
    launches = Launches(queue)
    for found, expected in function(launches):
        found, expected = usm.to_numpy(found), np.asarray(expected)
        assert found.shape == expected.shape
        near = {"f4": 2e-5, "f8": 1e-11, "c16": 1e-11}.get(found.dtype.str[1:])
        if near is None:
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, near, near * (1 + abs(expected).max()))
    assert launches.states == states


def randoms(*shape, seed=3):
    return np.random.default_rng(seed).random(shape)


@usm.kernel
def black_scholes(price, strike, years, rate, volatility, call, put):
    i = usm.get_global_id(0)
    p, s, t = price[i], strike[i], years[i]
    a, b = math.log(p / s), t * -rate
    z = t * volatility * volatility * 2
    c, y = z * 0.25, 1 / math.sqrt(z)
    d1, d2 = 0.5 + 0.5 * math.erf((a - b + c) * y), 0.5 + 0.5 * math.erf((a - b - c) * y)
    discounted = math.exp(b) * s
    value = p * d1 - discounted * d2
    call[i] = value
    put[i] = value - p + discounted


@program("dpbench black_scholes", black_scholes="proven")
def _(launch):
    n = 1009
    p, s, t = 10 + 40 * randoms(n), 10 + 40 * randoms(n, seed=4), 1 + randoms(n, seed=5)
    call, put = launch.array(np.zeros(n)), launch.array(np.zeros(n))
    launch(black_scholes, n, *map(launch.array, (p, s, t)), 0.1, 0.2, call, put)
    below = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))
    d1 = (np.log(p / s) + (0.1 + 0.02) * t) / (0.2 * np.sqrt(t))
    expected = p * below(d1) - s * np.exp(-0.1 * t) * below(d1 - 0.2 * np.sqrt(t))
    return [(call, expected), (put, expected - p + s * np.exp(-0.1 * t))]


@usm.kernel
def l2_norm(a, d):
    i = usm.get_global_id(0)
    total = 0.0
    for k in range(a.shape[1]):
        total += a[i, k] * a[i, k]
    d[i] = np.sqrt(total)


@program("dpbench l2_norm", l2_norm="proven")
def _(launch):
    a, d = randoms(1009, 3), launch.array(np.zeros(1009))
    launch(l2_norm, 1009, launch.array(a), d)
    return [(d, np.linalg.norm(a, axis=1))]


@usm.kernel
def pairwise_distance(x, y, d):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    total = 0.0
    for k in range(x.shape[1]):
        step = x[i, k] - y[j, k]
        total += step * step
    d[i, j] = np.sqrt(total)


@program("dpbench pairwise_distance", pairwise_distance="proven")
def _(launch):
    x, y = randoms(37, 3), randoms(41, 3, seed=4)
    d = launch.array(np.zeros((37, 41)))
    launch(pairwise_distance, usm.Range(37, 41), launch.array(x), launch.array(y), d)
    return [(d, np.linalg.norm(x[:, None] - y[None], axis=2))]


@usm.kernel
def kmeans_nearest(points, centers, nearest):
    i = usm.get_global_id(0)
    least = math.inf
    for c in range(centers.shape[0]):
        dx, dy = points[i, 0] - centers[c, 0], points[i, 1] - centers[c, 1]
        distance = math.sqrt(dx * dx + dy * dy)
        if distance < least:
            least = distance
            nearest[i] = c


@usm.kernel
def kmeans_sums(points, nearest, sums, counts):
    i = usm.get_global_id(0)
    c = nearest[i]
    usm.atomic.add(sums, (c, 0), points[i, 0])
    usm.atomic.add(sums, (c, 1), points[i, 1])
    usm.atomic.add(counts, c, 1)


@usm.kernel
def kmeans_centers(sums, counts, centers):
    c = usm.get_global_id(0)
    if counts[c] > 0:
        centers[c, 0] = sums[c, 0] / counts[c]
        centers[c, 1] = sums[c, 1] / counts[c]


@program("dpbench kmeans", kmeans_nearest="proven", kmeans_sums="checked", kmeans_centers="proven")
def _(launch):
    points, start = randoms(1009, 2), randoms(7, 2, seed=4)
    nearest, sums, counts = launch.array(np.zeros(1009, "i4")), launch.array(np.zeros((7, 2))), launch.array(np.zeros(7, "i4"))
    a, centers = launch.array(points), launch.array(start)
    launch(kmeans_nearest, 1009, a, centers, nearest)
    launch(kmeans_sums, 1009, a, nearest, sums, counts)
    launch(kmeans_centers, 7, sums, counts, centers)
    wanted = np.linalg.norm(points[:, None] - start[None], axis=2).argmin(1)
    return [(nearest, wanted), (centers, np.stack([points[wanted == c].mean(0) if (wanted == c).any() else start[c] for c in range(7)]))]


NEIGHBORS, CLASSES = 5, 3


@usm.kernel
def knn(train, labels, test, predictions):
    i = usm.get_global_id(0)
    near = usm.private.array(NEIGHBORS, np.float64)
    label = usm.private.array(NEIGHBORS, np.int64)
    for k in range(NEIGHBORS):
        near[k] = math.inf
    for j in range(train.shape[0]):
        row = train[j]
        distance = 0.0
        for k in range(row.shape[0]):
            step = row[k] - test[i, k]
            distance += step * step
        k = NEIGHBORS - 1
        if distance < near[k]:
            while k > 0 and near[k - 1] > distance:
                near[k] = near[k - 1]
                label[k] = label[k - 1]
                k -= 1
            near[k] = distance
            label[k] = labels[j]
    votes = usm.private.array(CLASSES, np.int64)
    for k in range(NEIGHBORS):
        votes[label[k]] += 1
    best = 0
    for k in range(1, CLASSES):
        if votes[k] > votes[best]:
            best = k
    predictions[i] = best


@program("dpbench knn", knn="checked")
def _(launch):
    train, test = randoms(211, 3), randoms(37, 3, seed=4)
    labels = np.random.default_rng(1).integers(0, CLASSES, 211)
    predictions = launch.array(np.zeros(37, int))
    launch(knn, 37, *map(launch.array, (train, labels, test)), predictions)
    order = np.linalg.norm(test[:, None] - train[None], axis=2).argsort(1)[:, :NEIGHBORS]
    return [(predictions, [np.bincount(labels[row], minlength=CLASSES).argmax() for row in order])]


@usm.kernel
def dbscan_neighbors(n, data, eps, indices, sizes):
    i = usm.get_global_id(0)
    for j in range(n):
        distance = 0.0
        for k in range(data.shape[1]):
            distance += (data[i, k] - data[j, k]) ** 2
        if distance <= eps:
            size = sizes[i]
            indices[i * n + size] = j
            sizes[i] = size + 1


@program("dpbench dbscan", dbscan_neighbors="unordered")
def _(launch):
    data = randoms(53, 3)
    indices, sizes = launch.array(np.full(53 * 53, -1)), launch.array(np.zeros(53, int))
    launch(dbscan_neighbors, 53, 53, launch.array(data), 0.1, indices, sizes)
    near = ((data[:, None] - data[None]) ** 2).sum(2) <= 0.1
    wanted = np.full((53, 53), -1)
    for row, found in zip(wanted, near):
        row[: found.sum()] = np.flatnonzero(found)
    return [(sizes, near.sum(1)), (indices, wanted.ravel())]


BINS = 19


@usm.kernel
def gpairs(a, b, edges, result):
    i = usm.get_global_id(0)
    for start in range(0, b.shape[0], 16):
        mine = usm.private.array(BINS, np.float64)
        for k in range(BINS):
            mine[k] = 0.0
        for j in range(start, min(start + 16, b.shape[0])):
            dx, dy, dz = a[i, 0] - b[j, 0], a[i, 1] - b[j, 1], a[i, 2] - b[j, 2]
            squared = dx * dx + dy * dy + dz * dz
            for k in range(BINS):
                if squared <= edges[k]:
                    mine[k] += a[i, 3] * b[j, 3]
        for k in range(BINS):
            usm.atomic.add(result, k, mine[k])


@program("dpbench gpairs", gpairs="proven")
def _(launch):
    a, b, edges = randoms(101, 4), randoms(107, 4, seed=4), np.linspace(0.01, 3, BINS)
    result = launch.array(np.zeros(BINS))
    launch(gpairs, 101, *map(launch.array, (a, b, edges)), result)
    squared = ((a[:, None, :3] - b[None, :, :3]) ** 2).sum(2)
    weights = a[:, None, 3] * b[None, :, 3]
    return [(result, [weights[squared <= edge].sum() for edge in edges])]


@usm.kernel
def rambo(c, f, q, output):
    i = usm.get_global_id(0)
    for j in range(output.shape[1]):
        cosine = 2 * c[i, j] - 1
        sine = math.sqrt(1 - cosine**2)
        angle = 2 * math.pi * f[i, j]
        energy = -math.log(q[i, j])
        output[i, j, 0] = energy
        output[i, j, 1] = energy * sine * math.sin(angle)
        output[i, j, 2] = energy * sine * math.cos(angle)
        output[i, j, 3] = energy * cosine


@program("dpbench rambo", rambo="proven")
def _(launch):
    c, f, q = (randoms(101, 5, seed=seed) for seed in range(3))
    output = launch.array(np.zeros((101, 5, 4)))
    launch(rambo, 101, *map(launch.array, (c, f, q)), output)
    cosine, angle, energy = 2 * c - 1, 2 * np.pi * f, -np.log(q)
    sine = np.sqrt(1 - cosine**2)
    return [(output, np.stack([energy, energy * sine * np.sin(angle), energy * sine * np.cos(angle), energy * cosine], 2))]


# Taichi and Warp.


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


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_program_is_right_and_has_its_proof(queue, name):
    check(name, queue)
