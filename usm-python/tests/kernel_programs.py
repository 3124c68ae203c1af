"""Kernels of many kinds, each with NumPy's result: `(arguments, expected)` on a queue."""

import enum
import math

import numpy as np

import usm

GROUP = 16
TABLE = np.array([1.0, 2.0, 4.0, 8.0], np.float32)


@usm.kernel
def saxpy(a, x, y):
    i = usm.get_global_id(0)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@usm.kernel
def stencil(a, b):
    y, x = usm.get_global_id(0), usm.get_global_id(1)
    h, w = a.shape
    if 0 < y < h - 1 and 0 < x < w - 1:
        b[y, x] = (a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1]) / 4


@usm.kernel
def stencil_3d(a, b):
    z, y, x = usm.get_global_id(0), usm.get_global_id(1), usm.get_global_id(2)
    d, h, w = a.shape
    total = 0.0
    for dz in range(-1, 2):
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                if 0 <= z + dz < d and 0 <= y + dy < h and 0 <= x + dx < w:
                    total += a[z + dz, y + dy, x + dx]
    b[z, y, x] = total


@usm.kernel
def scan(a):
    lm = usm.local.array(GROUP, np.int32)
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    lm[l] = a[i]
    d = 1
    while d < GROUP:
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        before = lm[l - d] if l >= d else 0
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        lm[l] += before
        d *= 2
    a[i] = lm[l]


@usm.kernel
def powers(x, n, c):
    i = usm.get_global_id(0)
    c[i] = pow(x[i], 1.5) + pow(x[i], 2) + pow(n[i], 3) + pow(2, 4)


@usm.kernel
def bitonic(a):
    i = usm.get_local_id(0)
    n = a.size
    k = 2
    while k <= n:
        j = k // 2
        while j > 0:
            other = i ^ j
            if other > i:
                up = (i & k) == 0
                if (a[i] > a[other]) == up:
                    a[i], a[other] = a[other], a[i]
            usm.barrier(usm.CLK_GLOBAL_MEM_FENCE)
            j //= 2
        k *= 2


@usm.kernel
def histogram(data, bins):
    i = usm.get_global_id(0)
    usm.atomic.add(bins, data[i] % bins.size, 1)


@usm.kernel
def weights(data, values, bins):
    i = usm.get_global_id(0)
    usm.atomic.add(bins, data[i], values[i])


@usm.kernel
def softmax(a):
    i, l = usm.get_group_id(0), usm.get_local_id(0)
    top = usm.group.reduce_max(a[i, l])
    e = math.exp(a[i, l] - top)
    a[i, l] = e / usm.group.reduce_add(e)


@usm.kernel
def csr(data, indices, starts, x, y):
    row = usm.get_global_id(0)
    total = 0.0
    for k in range(starts[row], starts[row + 1]):
        total += data[k] * x[indices[k]]
    y[row] = total


@usm.device_func
def pull(dx, dy):
    r2 = dx * dx + dy * dy
    if r2 == 0.0:
        return 0.0, 0.0
    inverse = 1.0 / (r2 * math.sqrt(r2))
    return dx * inverse, dy * inverse


@usm.kernel
def n_body(p, f):
    i = usm.get_global_id(0)
    total = usm.private.array(2, np.float64)
    total[0] = total[1] = 0.0
    for j in range(p.shape[0]):
        fx, fy = pull(p[j, 0] - p[i, 0], p[j, 1] - p[i, 1])
        total[0] += fx
        total[1] += fy
    f[i, 0], f[i, 1] = total[0], total[1]


@usm.kernel
def mandelbrot(counts, limit):
    y, x = usm.get_global_id(0), usm.get_global_id(1)
    h, w = counts.shape
    cr, ci = -2.0 + 3.0 * x / w, -1.0 + 2.0 * y / h
    zr = zi = 0.0
    n = 0
    while n < limit and zr * zr + zi * zi < 4.0:
        zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
        n += 1
    counts[y, x] = n


@usm.kernel
def transpose(a, b):
    tile = usm.local.array((4, 4), np.float32)
    y, x = usm.get_global_id(0), usm.get_global_id(1)
    ly, lx = usm.get_local_id(0), usm.get_local_id(1)
    tile[ly, lx] = a[y, x]
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    gy, gx = usm.get_group_id(0), usm.get_group_id(1)
    b[gx * 4 + ly, gy * 4 + lx] = tile[lx, ly]


@usm.kernel
def upper(text):
    i = usm.get_global_id(0)
    c = text[i]
    if 97 <= c <= 122:
        text[i] = c - 32


@usm.device_func
def normal(x):
    return 0.5 * (1.0 + erf(x / math.sqrt(2.0)))


@usm.device_func
def erf(x):
    sign = 1.0
    if x < 0:
        sign = -1.0
        x = -x
    t = 1.0 / (1.0 + 0.3275911 * x)
    y = 1.0 - (((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t * math.exp(-x * x)
    return sign * y


@usm.kernel
def black_scholes(price, strike, years, rate, volatility, call):
    i = usm.get_global_id(0)
    s, k, t = price[i], strike[i], years[i]
    d1 = (math.log(s / k) + (rate + 0.5 * volatility**2) * t) / (volatility * math.sqrt(t))
    d2 = d1 - volatility * math.sqrt(t)
    call[i] = s * normal(d1) - k * math.exp(-rate * t) * normal(d2)


@usm.device_func
def reversed_in_group(array, base):
    lm = usm.local.array(GROUP, np.int64)
    l = usm.get_local_id(0)
    lm[l] = array[base + l]
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    return lm[GROUP - 1 - l]


@usm.kernel
def function_with_barrier(a, b):
    i = usm.get_global_id(0)
    b[i] = reversed_in_group(a, usm.get_group_id(0) * GROUP)


@usm.kernel
def integers(a, b, floor, rest, low, power):
    i = usm.get_global_id(0)
    floor[i] = a[i] // b[i]
    rest[i] = a[i] % b[i]
    low[i] = a[i] >> 2 & 7 | ~a[i] & 8
    power[i] = a[i] ** 3


@usm.kernel
def loops(out):
    i = usm.get_global_id(0)
    total = 0
    for j in range(i, -5, -2):
        if j == 3:
            continue
        if j < -3:
            break
        total += j
    for j in range(3):
        j += 10
        total += j
    out[i] = total * 100 + j
    for k in range(0, 2 * i, i // 2 + 1):
        out[i] += k if k % 2 else -k


@usm.device_func
def first_above(a, limit):
    for k in range(a.size):
        if a[k] > limit:
            return k
    return -1


@usm.kernel
def searches(a, limits, out):
    i = usm.get_global_id(0)
    if i >= out.size:
        return
    out[i] = first_above(a, limits[i])


@usm.kernel
def table(out):
    i = usm.get_global_id(0)
    values = usm.constant.array_like(TABLE)
    out[i] = values[i % 4]


@usm.kernel
def exchange(a, seen):
    i = usm.get_global_id(0)
    while True:
        old = a[0]
        if usm.atomic.cas(a, 0, old, old + 1.5) == old:
            break
    seen[i] = usm.atomic.exch(a, 1, i * 1.0) >= 0


@usm.kernel
def collected(a, total, before, up_to, least, every, some):
    i = usm.get_global_id(0)
    total[i] = usm.group.reduce_add(a[i])
    before[i] = usm.group.exclusive_add(a[i])
    up_to[i] = usm.group.inclusive_max(a[i])
    least[i] = usm.group.broadcast(a[i], 3)
    every[i] = usm.group.all(a[i] > 0)
    some[i] = usm.group.any(a[i] == 5)


@usm.kernel
def kernel(private, restrict, double, long):
    register = usm.get_global_id(0)
    if restrict[register] < double:
        private[register] = long
    else:
        private[register] = restrict[register]


@usm.kernel
def small(a, b, out):
    i = usm.get_global_id(0)
    out[i] = a[i] + b[i]


@usm.kernel
def products(a, b, c, n):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    s = np.float32(0)
    count, last = 0, 0
    for k in range(n):
        x = a[i, k]
        s += x * b[k, j]
        if k % 2 == j % 2:
            count += 1
        for m in range(n):
            s += np.float32(m) * x
        last = k
    c[i, j] = s + count + last


class Way(enum.IntEnum):
    REST = 1
    SUM = 2


@usm.kernel
def by_enumeration(x, way, out):
    i = usm.get_global_id(0)
    if way == Way.REST:
        out[i] = x[i] * Way.SUM
    else:
        out[i] = x[i] + way


@usm.kernel
def exact(x, n, out):
    i = usm.get_global_id(0)
    out[i] = (x[i] + n[i]) - n[i]


def programs():
    """Name, kernel, sizes, arguments, and the result of each written argument."""
    random = np.random.default_rng(7)
    f32 = lambda *shape: random.random(shape, np.float32)  # noqa: E731
    x, y = f32(1000), f32(1000)
    yield "saxpy", saxpy, (1024,), (2.0, x, y), {2: np.float32(2) * x + y}
    a = f32(33, 20)
    b = np.zeros_like(a)
    b[1:-1, 1:-1] = (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) / 4
    yield "stencil", stencil, ((40, 24), (8, 8)), (a, np.zeros_like(a)), {1: b}
    yield "stencil of a view", stencil, ((40, 24),), (np.asfortranarray(a)[:, :], np.zeros((33, 40), np.float32)[:, ::2]), {1: b}
    a = f32(5, 6, 7)
    padded = np.pad(a, 1)
    b = sum(padded[z : z + 5, y : y + 6, x : x + 7] for z in range(3) for y in range(3) for x in range(3))
    yield "stencil in three dimensions", stencil_3d, ((5, 6, 7),), (a, np.zeros_like(a)), {1: b}
    a = random.integers(-9, 9, 4 * GROUP).astype(np.int32)
    yield "scan", scan, (4 * GROUP, GROUP), (a,), {0: a.reshape(4, GROUP).cumsum(1).astype(np.int32).ravel()}
    a = f32(128)
    yield "sort", bitonic, (128,), (a,), {0: np.sort(a)}
    data = random.integers(0, 1000, 500).astype(np.int32)
    bins = np.zeros(10, np.uint32)
    yield "histogram", histogram, (500,), (data, bins), {1: np.bincount(data % 10, minlength=10).astype(np.uint32)}
    data, values = data % 7, f32(500)
    expected = np.bincount(data, values, 7).astype(np.float32)
    yield "histogram of floats", weights, (500,), (data, values, np.zeros(7, np.float32)), {2: expected}
    a = f32(8, 32) * 5
    e = np.exp(a - a.max(1, keepdims=True))
    yield "softmax", softmax, (8 * 32, 32), (a,), {0: e / e.sum(1, keepdims=True)}
    dense = f32(20, 30) * (random.random((20, 30)) < 0.2)
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(21)).astype(np.int64)
    x = f32(30)
    given = (dense[rows, columns], columns.astype(np.int32), starts, x, np.zeros(20, np.float32))
    yield "sparse matrix", csr, (20,), given, {4: dense @ x}
    p = random.random((50, 2))
    d = p[None] - p[:, None]
    r2 = (d**2).sum(2)
    np.fill_diagonal(r2, 1)
    yield "n-body", n_body, (50,), (p, np.zeros_like(p)), {1: (d / (r2**1.5)[..., None]).sum(1)}
    counts = np.zeros((12, 18), np.int32)
    yield "mandelbrot", mandelbrot, ((12, 18),), (counts, 50), {0: mandelbrot_of(12, 18, 50)}
    a = f32(12, 8)
    yield "transposition", transpose, ((12, 8), (4, 4)), (a, np.zeros((8, 12), np.float32)), {1: a.T}
    text = b"Sphinx of black quartz, {judge} my vow!"
    yield "text", upper, (len(text),), (np.frombuffer(text, np.uint8).copy(),), {0: np.frombuffer(text.upper(), np.uint8)}
    s, k, t = random.random((3, 200)) + 0.5
    d1 = (np.log(s / k) + (0.03 + 0.02) * t) / (0.2 * np.sqrt(t))
    n = np.vectorize(lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))))
    expected = s * n(d1) - k * np.exp(-0.03 * t) * n(d1 - 0.2 * np.sqrt(t))
    yield "finance", black_scholes, (200,), (s, k, t, 0.03, 0.2, np.zeros(200)), {5: expected}
    a = random.integers(-99, 99, 3 * GROUP)
    yield "function with a barrier", function_with_barrier, (3 * GROUP, GROUP), (a, np.zeros_like(a)), {1: a.reshape(3, GROUP)[:, ::-1].ravel()}
    for ty in (np.int8, np.int32, np.int64, np.uint16):
        low = 0 if ty is np.uint16 else -40
        a, b = random.integers(low, 40, 99).astype(ty), random.integers(max(low, -9), 9, 99).astype(ty)
        b[b == 0] = 3
        none = np.zeros(99, ty)
        given = (a, b, none, none.copy(), none.copy(), none.copy())
        yield f"integers of {ty.__name__}", integers, (99,), given, {2: a // b, 3: a % b, 4: a >> 2 & 7 | ~a & 8, 5: a**3}
    yield "loops", loops, (9,), (np.zeros(9, np.int64),), {0: np.array([loops_of(i) for i in range(9)])}
    a, limits = f32(64), f32(20) * 1.1
    found = np.array([next((k for k in range(64) if a[k] > limit), -1) for limit in limits])
    yield "search", searches, (32,), (a, limits, np.zeros(20, np.int64)), {2: found}
    yield "table", table, (10,), (np.zeros(10, np.float32),), {0: TABLE[np.arange(10) % 4]}
    yield "exchange", exchange, (30,), (np.zeros(2, np.float32), np.zeros(30, np.int32)), {1: np.ones(30, np.int32)}
    a = random.integers(1, 9, 3 * GROUP).astype(np.int32)
    rows = a.reshape(3, GROUP)
    wide = lambda values: np.broadcast_to(np.asarray(values)[:, None], (3, GROUP)).ravel().astype(np.int32)  # noqa: E731
    none = np.zeros_like(a)
    yield "collectives", collected, (3 * GROUP, GROUP), (a, *(none.copy() for _ in range(6))), {
        1: wide(rows.sum(1)), 2: (rows.cumsum(1) - rows).ravel().astype(np.int32), 3: np.maximum.accumulate(rows, 1).ravel(),
        4: wide(rows[:, 3]), 5: wide((rows > 0).all(1)), 6: wide((rows == 5).any(1)),
    }  # fmt: skip
    a = f32(20)
    yield "words of C", kernel, (20,), (np.zeros(20, np.float32), a, 0.5, 7), {0: np.where(a < 0.5, np.float32(7), a)}
    a, b = random.integers(-99, 99, 50).astype(np.int8), random.integers(0, 255, 50).astype(np.uint8)
    x, n = f32(20), np.full(20, 1 << 24, np.int32)
    yield "float32 beside int32", exact, (20,), (x, n, np.zeros(20)), {2: (x + n) - n}
    # Rows of more than 64 items, where the host runs loops around them.
    left, right = f32(3, 20), f32(20, 150)
    counts = (np.arange(20)[:, None] % 2 == np.arange(150)[None] % 2).sum(0)
    expected = left @ right + left.sum(1, keepdims=True) * np.arange(20).sum() + counts + 19
    yield "products", products, ((3, 150),), (left, right, np.zeros((3, 150), np.float32), 20), {2: expected}
    x = 4 * f32(20) - 2
    yield "members of enumerations", by_enumeration, (20,), (x, 1, np.zeros(20, np.float32)), {2: 2 * x}
    n = np.arange(-25, 25, dtype=np.int32)
    x = f32(50)
    yield "powers", powers, (50,), (x, n, np.zeros(50)), {2: x**1.5 + x**2 + n.astype(np.float64) ** 3 + 16}
    yield "promotion", small, (50,), (a, b, np.zeros(50, np.int16)), {2: a + b}


def mandelbrot_of(h, w, limit):
    y, x = np.mgrid[:h, :w]
    c = -2.0 + 3.0 * x / w + 1j * (-1.0 + 2.0 * y / h)
    z, n = np.zeros_like(c), np.zeros((h, w), np.int32)
    for _ in range(limit):
        inside = abs(z) ** 2 < 4
        z[inside] = z[inside] ** 2 + c[inside]
        n += inside
    return n


def loops_of(i):
    total = 0
    for j in range(i, -5, -2):
        if j == 3:
            continue
        if j < -3:
            break
        total += j
    for j in range(3):
        j += 10
        total += j
    out = total * 100 + j
    for k in range(0, 2 * i, i // 2 + 1):
        out += k if k % 2 else -k
    return out
