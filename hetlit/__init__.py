"""hetlit: one private mean of users who hold different amounts of data.

The names below are the library; `hetlit.sizes` has the size profiles and
`hetlit.theory.widths` more ways to say how far a user's mean strays.
"""

__version__ = "0.1.0"

from hetlit.estimators import baselines
from hetlit.estimators.first_guesses import (
    initial_mean,
    initial_mean_error,
    initial_variance,
)
from hetlit.estimators.ideal import estimate_ideal
from hetlit.estimators.nonprivate import estimate_nonprivate, estimate_nonprivate_ideal
from hetlit.estimators.planning import plan
from hetlit.estimators.private_k import estimate_private_k
from hetlit.estimators.private_k.ptr import ptr_distance
from hetlit.estimators.private_k.sums import ratio_statistics
from hetlit.estimators.public_size import estimate_public_size
from hetlit.estimators.result import Estimate, Trace
from hetlit.privacy.ledger import Ledger
from hetlit.privacy.selection import (
    order_statistic_probabilities,
    private_order_statistic,
)
from hetlit.theory.bounds import beta_binomial_information, dp_cramer_rao, k_star
from hetlit.theory.populations import Beta, Constant, TruncatedGaussian, TwoPoint
from hetlit.theory.variance import user_variance
from hetlit.theory.weights import (
    best_threshold,
    inverse_variance_weights,
    optimal_weights,
    truncated_weights,
)
from hetlit.theory.widths import sub_gaussian_width
from hetlit.users import sizes
from hetlit.users.simulate import sample_users
from hetlit.users.table import Users

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
    "plan",
    "private_order_statistic",
    "ptr_distance",
    "ratio_statistics",
    "sample_users",
    "sizes",
    "sub_gaussian_width",
    "truncated_weights",
    "user_variance",
]
