"""The linear model: Newton's method in memory (newton) or in passes (streaming), and softmax."""
