"""What is measured: accuracy at equal total epsilon, and cost at scale."""
