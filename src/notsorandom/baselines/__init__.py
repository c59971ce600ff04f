"""What the method is compared with."""

from notsorandom.baselines.arc_cosine import arc_cosine_kernel

__all__ = ["arc_cosine_kernel"]
