"""The linear model at the end: features in memory (newton) or computed in passes (streaming)."""
