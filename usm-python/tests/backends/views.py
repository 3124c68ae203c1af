"""Random views for copies between any two."""


def views_of_one_shape(rng):
    """Two keys of views of one shape, of an array of 9 x 9 x 9 x 9.

    The steps go in either direction. Along some axes the second view has one element only, to be
    repeated.
    """
    shape = [rng.randint(1, 8) for _ in range(rng.randint(1, 4))]

    def key(repeats):
        slices = []
        for extent in shape:
            if repeats and rng.random() < 0.2:
                extent = 1
            step = rng.choice([-1, 1] if extent > 5 else [-2, -1, 1, 2])
            low = rng.randint(0, 8 - abs(step) * (extent - 1))
            first = low if step > 0 else low - step * (extent - 1)
            stop = first + step * extent
            slices.append(slice(first, stop if stop >= 0 else None, step))
        return (*slices, *(rng.randrange(9) for _ in range(4 - len(shape))))

    return key(False), key(True)
