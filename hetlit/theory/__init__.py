"""Mathematics: variances, populations, weights, widths, bounds. Nothing private."""
