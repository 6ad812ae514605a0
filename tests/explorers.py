"""Where tests look at an explorer."""

import itertools


def values_of(parameters):
    """The values of each parameter, whose type its explorer knows and mypy does not."""
    return [parameter.values for parameter in parameters]


def some_points(explorer, count, rng):
    """The corners of the parameter box, and random points in it."""
    values = values_of(explorer.parameters)
    names = [parameter.name for parameter in explorer.parameters]
    points = list(itertools.product(*((v[0], v[-1]) for v in values)))
    points += [tuple(v[rng.integers(len(v))] for v in values) for _ in range(count)]
    return [dict(zip(names, point, strict=True)) for point in points]
