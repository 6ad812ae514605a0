"""hetlit: one private mean of users who hold different amounts of data.

The names below are the library; `hetlit.sizes` has the size profiles and
`hetlit.concentration` more ways to say how far a user's mean strays.
"""

__version__ = "0.1.0"

from . import baselines, sizes
from .bounds import beta_binomial_information, dp_cramer_rao, k_star
from .concentration import sub_gaussian_width
from .estimate import Estimate, Trace
from .first_guesses import initial_mean, initial_mean_error, initial_variance
from .ideal import estimate_ideal
from .ledger import Ledger
from .model import Users, sample_users, user_variance
from .nonprivate import estimate_nonprivate, estimate_nonprivate_ideal
from .populations import Beta, Constant, TruncatedGaussian, TwoPoint
from .private_k import estimate_private_k
from .ptr import ptr_distance
from .public_size import estimate_public_size
from .ratio import ratio_statistics
from .selection import order_statistic_probabilities, private_order_statistic
from .weights import (
    best_threshold,
    inverse_variance_weights,
    optimal_weights,
    truncated_weights,
)

__all__ = [
    "Beta",
    "Constant",
    "Estimate",
    "Ledger",
    "Trace",
    "TruncatedGaussian",
    "TwoPoint",
    "Users",
    "__version__",
    "baselines",
    "best_threshold",
    "beta_binomial_information",
    "dp_cramer_rao",
    "estimate_ideal",
    "estimate_nonprivate",
    "estimate_nonprivate_ideal",
    "estimate_private_k",
    "estimate_public_size",
    "initial_mean",
    "initial_mean_error",
    "initial_variance",
    "inverse_variance_weights",
    "k_star",
    "optimal_weights",
    "order_statistic_probabilities",
    "private_order_statistic",
    "ptr_distance",
    "ratio_statistics",
    "sample_users",
    "sizes",
    "sub_gaussian_width",
    "truncated_weights",
    "user_variance",
]
