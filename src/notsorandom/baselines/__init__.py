"""Other kernels and random features, for comparison."""

from notsorandom.baselines.arc_cosine import arc_cosine_kernel
from notsorandom.baselines.lkrf import LKRF
from notsorandom.baselines.random_fourier import RandomFourierFeatures, median_gamma

__all__ = ["LKRF", "RandomFourierFeatures", "arc_cosine_kernel", "median_gamma"]
