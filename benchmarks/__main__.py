"""Run the benchmarks and store their results beside the code.

python -m benchmarks             everything, about half an hour on two cores
python -m benchmarks accuracy    or one of them
python -m benchmarks checks      only when named: how long `make test` takes
python -m benchmarks imports     only when named: how long `import hetlit` takes
python -m benchmarks outside     only when named: sizes and rates nothing was tuned on
"""

import sys

from . import (
    accuracy,
    checks,
    explorers,
    imports,
    notebooks,
    outside,
    private_sizes,
    scale,
    shares,
)

BENCHMARKS = {
    "accuracy": accuracy.main,
    "private_sizes": private_sizes.main,
    "shares": shares.main,
    "scale": scale.main,
    "notebooks": notebooks.main,
    "explorers": explorers.main,
}

WHEN_NAMED = {
    "checks": checks.main,
    "imports": imports.main,
    "outside": outside.main,
}

for name in sys.argv[1:] or BENCHMARKS:
    (BENCHMARKS | WHEN_NAMED)[name]()
