"""The kernels by which groups sort: digits of 8 bits, each in two steps of 4 within a tile.

A step needs no atomic operation and no vote of neighbours. An item counts its elements in 16 fields
of one word, 4 bits each, so it has at most 15; sums over items have 16 bits, 4 in a word.
"""

from functools import lru_cache

from .. import _usm
from .._kernel import CLK_LOCAL_MEM_FENCE, atomic, barrier, get_group_id, get_local_id, local, ordered_kernel, private
from .run import GROUP

#: Bits of a digit.
BITS = 8
DIGITS = 1 << BITS
#: Copies of a group's counters, so that equal digits of neighbours count side by side.
_COPIES = 8
#: Elements that an item counts at a time.
_EACH = 8
#: Items whose counts one item adds up. A gap after them lies between banks.
_CHUNK = 16
_CHUNKS = GROUP // _CHUNK
#: Words of the counts of all items for 4 digits.
_ROOM = GROUP + _CHUNKS
#: The most groups of a launch, whose counts one group adds up.
MOST_GROUPS = 4 * GROUP
#: The steps in which a group adds up its items' numbers, two in each round.
_ROUNDS = (GROUP.bit_length() - 1) // 2


#: The most bytes of local memory of a group that moves, beside its tile.
_BESIDE_TILE = 15_400


def elements_of_item(itemsize, places_bytes, local_bytes):
    """Elements of an item in a tile, which fits local memory: odd, so that neighbours' lie in
    different banks. With more than 11 an H200 has registers for two groups at a time only.
    """
    sizes = (11, 7, 3) if itemsize < 8 else (7, 3)
    fits = (each for each in sizes if GROUP * each * (itemsize + places_bytes) + _BESIDE_TILE <= local_bytes)
    return next(fits, 1)


@lru_cache(64)
def counts_of_spans(order):
    """Each group counts the digits of its span."""

    @ordered_kernel
    def count_digits(x, span, shift, counts):
        tallies = local.array(DIGITS * _COPIES, _usm.uint32)
        mine = private.array(_EACH, _usm.int64)
        item, place = get_local_id(0), get_group_id(0)
        for k in range(item, DIGITS * _COPIES, GROUP):
            tallies[k] = 0
        barrier(CLK_LOCAL_MEM_FENCE)
        copy = item & (_COPIES - 1)
        start = place * span
        stop = min(start + span, x.size)
        for first in range(start + item, stop, _EACH * GROUP):
            for j in range(_EACH):
                at = first + j * GROUP
                mine[j] = DIGITS
                if at < stop and at < x.size:
                    mine[j] = int((order(x[at]) >> shift) & (DIGITS - 1))
            for j in range(_EACH):
                digit = mine[j]
                if 0 <= digit < DIGITS:
                    atomic.add(tallies, digit * _COPIES + copy, 1)
        barrier(CLK_LOCAL_MEM_FENCE)
        for digit in range(item, DIGITS, GROUP):
            total = _usm.uint32(0)
            for k in range(_COPIES):
                total += tallies[digit * _COPIES + k]
            counts[digit, place] = total

    return count_digits


@ordered_kernel
def add_up_counts(counts, before, totals):
    """Each group: the elements of a digit before each span, and all elements of the digit."""
    sums, others = local.array(GROUP, _usm.int64), local.array(GROUP, _usm.int64)
    item, digit = get_local_id(0), get_group_id(0)
    spans = counts.shape[1]
    own = 0
    for j in range(4):
        if item * 4 + j < spans:
            own += counts[digit, item * 4 + j]
    sums[item] = own
    barrier(CLK_LOCAL_MEM_FENCE)
    for level in range(_ROUNDS):
        step = 1 << 2 * level
        subtotal = sums[item]
        if 0 < step <= item:
            subtotal += sums[item - step]
        others[item] = subtotal
        barrier(CLK_LOCAL_MEM_FENCE)
        double = 2 << 2 * level
        if 0 < double <= item:
            subtotal += others[item - double]
        sums[item] = subtotal
        barrier(CLK_LOCAL_MEM_FENCE)
    prefix = sums[item] - own
    for j in range(4):
        if item * 4 + j < spans:
            before[digit, item * 4 + j] = prefix
            prefix += counts[digit, item * 4 + j]
    if item == GROUP - 1:
        totals[digit] = prefix


@lru_cache(64)
def moves_of_spans(order, bits_type, places_type, each, last, moves_keys, moves_places, begins):
    """Each group moves the elements of its span, a tile of `each` elements an item at a time.

    A tile is sorted by the digit in local memory first, so that neighbours are written together.
    `last` are the bits that no element comes after.
    """
    tile = GROUP * each
    places_room = tile if moves_places else 1
    unsigned = _usm.uint64
    ones = 0x0001000100010001

    @ordered_kernel
    def move_by_digit(x, places, span, shift, before, totals, out, places_out):
        keys, tile_places = local.array(tile, bits_type), local.array(places_room, places_type)
        cells, chunks = local.array(4 * _ROOM, unsigned), local.array(4 * _CHUNKS, unsigned)
        wholes = local.array(4, unsigned)
        sums, others = local.array(DIGITS, places_type), local.array(DIGITS, places_type)
        begins_at, ends_at = local.array(DIGITS, _usm.uint32), local.array(DIGITS, _usm.uint32)
        own, own_places = private.array(each, bits_type), private.array(each, places_type)
        ranks, route = private.array(each, _usm.uint32), private.array(1, places_type)
        item, place = get_local_id(0), get_group_id(0)
        low = _usm.uint32(shift)
        start = place * span
        stop = min(start + span, x.size)
        # Where the item's digit begins in the span: the elements of lesser digits before it.
        subtotal = totals[item]
        sums[item] = subtotal
        barrier(CLK_LOCAL_MEM_FENCE)
        for level in range(_ROUNDS):
            step = 1 << 2 * level
            if 0 < step <= item:
                subtotal += sums[item - step]
            others[item] = subtotal
            barrier(CLK_LOCAL_MEM_FENCE)
            double = 2 << 2 * level
            if 0 < double <= item:
                subtotal += others[item - double]
            sums[item] = subtotal
            barrier(CLK_LOCAL_MEM_FENCE)
        target = subtotal - totals[item] + before[item, place]
        for first in range(start, stop, tile):
            count = min(stop - first, tile)
            for j in range(each):
                at = j * GROUP + item
                own[j] = last
                if at < count and first + at < x.size:
                    own[j] = x[first + at]
                if moves_places:
                    if not begins:
                        if at < count and first + at < places.size:
                            own_places[j] = places[first + at]
            for j in range(each):
                keys[j * GROUP + item] = own[j]
                if moves_places:
                    if not begins:
                        tile_places[j * GROUP + item] = own_places[j]
            begins_at[item], ends_at[item] = 0, 0
            barrier(CLK_LOCAL_MEM_FENCE)
            for j in range(each):
                own[j] = keys[item * each + j]
                if moves_places:
                    own_places[j] = (first + item * each + j) if begins else tile_places[item * each + j]
            for half in range(2):
                digit_counts = unsigned(0)
                for j in range(each):
                    field = unsigned(((order(own[j]) >> (low + _usm.uint32(4 * half))) & 15) * 4)
                    ranks[j] = _usm.uint32(((digit_counts >> field) & 15) * 64 + field)
                    digit_counts += unsigned(1) << field
                for word in range(4):
                    four = (digit_counts >> unsigned(16 * word)) & 0xFFFF
                    spread = (four & 15) | (four & 0xF0) << 12 | (four & 0xF00) << 24 | (four & 0xF000) << 36
                    cells[word * _ROOM + item + item // _CHUNK] = spread
                barrier(CLK_LOCAL_MEM_FENCE)
                if item < 4 * _CHUNKS:
                    prefix = unsigned(0)
                    for k in range(_CHUNK):
                        at = (item & 3) * _ROOM + (item >> 2) * (_CHUNK + 1) + k
                        number = cells[at]
                        cells[at] = prefix
                        prefix += number
                    chunks[(item & 3) * _CHUNKS + (item >> 2)] = prefix
                barrier(CLK_LOCAL_MEM_FENCE)
                if item < 4:
                    prefix = unsigned(0)
                    for k in range(_CHUNKS):
                        number = chunks[item * _CHUNKS + k]
                        chunks[item * _CHUNKS + k] = prefix
                        prefix += number
                    wholes[item] = prefix
                barrier(CLK_LOCAL_MEM_FENCE)
                # The elements of lesser digits: those of earlier fields, and of earlier words.
                earlier = unsigned(0)
                for word in range(4):
                    word_sums = wholes[word] * ones
                    at = word * _ROOM + item + item // _CHUNK
                    cells[at] += chunks[word * _CHUNKS + item // _CHUNK] + (word_sums << 16) + earlier * ones
                    earlier += word_sums >> 48
                for j in range(each):
                    place_of_field = ranks[j] & 63
                    fields = cells[int(place_of_field >> 4) * _ROOM + item + item // _CHUNK]
                    at = int((fields >> unsigned(4 * (place_of_field & 15))) & 0xFFFF) + int(ranks[j] >> 6)
                    if at < tile:
                        keys[at] = own[j]
                        if moves_places:
                            tile_places[at] = own_places[j]
                barrier(CLK_LOCAL_MEM_FENCE)
                if half == 0:
                    for j in range(each):
                        own[j] = keys[item * each + j]
                        if moves_places:
                            own_places[j] = tile_places[item * each + j]
            # Where digits begin and end in the tile.
            for j in range(each):
                at = j * GROUP + item
                if at < count:
                    own[j] = keys[at]
                    digit = _usm.uint32((order(own[j]) >> low) & (DIGITS - 1))
                    ranks[j] = digit
                    previous = _usm.uint32(DIGITS)
                    if at > 0:
                        previous = _usm.uint32((order(keys[at - 1]) >> low) & (DIGITS - 1))
                    if digit != previous:
                        begins_at[digit] = at
                        if previous < DIGITS:
                            ends_at[previous] = at
                    if at == count - 1:
                        ends_at[digit] = count
            barrier(CLK_LOCAL_MEM_FENCE)
            # All lesser digits of the tile are before `target` too: the difference is not below 0.
            others[item] = target - begins_at[item]
            target += ends_at[item] - begins_at[item]
            barrier(CLK_LOCAL_MEM_FENCE)
            for j in range(each):
                at = j * GROUP + item
                if at < count:
                    # Read back, so that the proof of the bounds takes it for any number.
                    route[0] = others[ranks[j] & (DIGITS - 1)] + at
                    to = int(route[0])
                    if moves_keys:
                        if 0 <= to < out.size:
                            out[to] = own[j]
                    if moves_places:
                        if 0 <= to < places_out.size:
                            places_out[to] = tile_places[at]

    return move_by_digit
