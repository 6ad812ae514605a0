"""Mathematics only: variances, weights, widths, bounds. No randomness, no tables."""
