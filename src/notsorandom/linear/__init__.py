"""The linear model: Newton's method on features in memory (newton) or in passes (streaming)."""
