"""The paper's experiments, run again: configurations -> records -> tables, figures and pages.

Run them from the repository's folder::

    python -m experiments --help
    python -m experiments table1 --tasks auto-truck --features 100 --seeds 1
"""
