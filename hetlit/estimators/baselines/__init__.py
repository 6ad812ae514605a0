"""What people use instead: simple means, truncation and contribution bounding."""

from hetlit.estimators.baselines.bounding import contribution_bounding
from hetlit.estimators.baselines.huber import huber
from hetlit.estimators.baselines.simple import median_truncation, pooled_mean, user_mean

__all__ = [
    "contribution_bounding",
    "huber",
    "median_truncation",
    "pooled_mean",
    "user_mean",
]
