"""Accuracy at equal total epsilon when sizes are private; see `simulation`.

Sizes are cut to k_max = 2000.  The published algorithm spends 6 epsilon and 3 delta
in all, so it is given a sixth of the budget and delta = 1e-6 / 3; propose-test-release
on static cohorts has delta = 1e-6.
"""

from __future__ import annotations

from pathlib import Path

from hetlit import baselines, estimate_private_k

from .simulation import ESTIMATORS, K_MAX, measured, report, side_by_side

RESULTS = Path(__file__).with_name("private_sizes.md")

ESTIMATORS.update(
    {
        "private auto": lambda users, epsilon, rng: estimate_private_k(
            users, epsilon, k_max=K_MAX, rng=rng, trace=True
        ),
        "noisy ratio, static cohorts": lambda users, epsilon, rng: estimate_private_k(
            users, epsilon, k_max=K_MAX, method="ratio", rng=rng, trace=True
        ),
        "propose-test-release, static cohorts": (
            lambda users, epsilon, rng: estimate_private_k(
                users,
                epsilon,
                k_max=K_MAX,
                method="ptr",
                delta=1e-6,
                rng=rng,
                trace=True,
            )
        ),
        "published, honest total": lambda users, epsilon, rng: estimate_private_k(
            users,
            epsilon / 6.0,
            k_max=K_MAX,
            method="paper",
            delta=1e-6 / 3.0,
            rng=rng,
            trace=True,
        ),
        "contribution bounding, private cap": (
            lambda users, epsilon, rng: baselines.contribution_bounding(
                users, epsilon, cap="private", k_max=K_MAX, rng=rng, trace=True
            )
        ),
    }
)


def main() -> None:
    """Measure everything and write private_sizes.md."""
    others = [name for name in ESTIMATORS if name != "private auto"]
    others = [name for name in others if name not in ("auto", "cohorts", "paper")]
    results = measured(side_by_side("private auto", others, K_MAX))
    title = "Accuracy at equal total epsilon, private sizes"
    text = report(title, results, "private auto", others)
    RESULTS.write_text(text)
    print(text[: text.index("## private auto")])
