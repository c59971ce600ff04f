"""Ordinary data frames: a pipeline of scikit-learn's own parts around an estimator.

A table is cleaned (:class:`TableCleaner`), its numbers are scaled (:class:`NumberEncoder`), its
categories are one-hot encoded, and the estimator gets the resulting columns, by name.
"""

from notsorandom.tabular.cleaner import TableCleaner
from notsorandom.tabular.numbers import NumberEncoder
from notsorandom.tabular.pipeline import TabularPipeline, tabular_pipeline

__all__ = ["NumberEncoder", "TableCleaner", "TabularPipeline", "tabular_pipeline"]
