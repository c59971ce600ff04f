"""The windmill against an exact RBF SVM, at the median bandwidth and at its best.

    python benchmarks/windmill.py

2000 training and 50,000 test samples. Whatever is tuned is tuned by five-fold cross-validation on
the training samples.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from notsorandom import FourierClassifier
from notsorandom.baselines import median_gamma
from notsorandom.datasets import make_windmill


def main() -> None:
    """Fit all models on each seed's windmill, and print their mean accuracies."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    scores: dict[str, list[float]] = {}
    for seed in range(options.seeds):
        X, y = make_windmill(2000, random_state=seed)
        test = make_windmill(50_000, random_state=1000 + seed)
        gamma = median_gamma(X)
        grid = {"C": 10.0 ** np.arange(-1, 5), "gamma": gamma * 4.0 ** np.arange(-1, 5)}
        models: dict[str, Any] = {
            "RBF SVM, median bandwidth, C = 1": SVC(gamma=gamma),
            "RBF SVM, bandwidth and C tuned": GridSearchCV(SVC(), grid, cv=5),
            "ours, m = 100, C = 1": FourierClassifier(100, random_state=seed),
            "ours, m = 1000, C = 1": FourierClassifier(1000, random_state=seed),
            "ours, m = 100, C tuned": GridSearchCV(
                FourierClassifier(100, random_state=seed), {"C": 10.0 ** np.arange(0, 4)}, cv=5
            ),
        }
        for name, model in models.items():
            scores.setdefault(name, []).append(100 * model.fit(X, y).score(*test))
            print(f"seed {seed}: {name:<34} {scores[name][-1]:6.2f} %", flush=True)
    for name, values in scores.items():
        print(f"mean:   {name:<34} {np.mean(values):6.2f} +- {np.std(values):.2f} %")


if __name__ == "__main__":
    main()
