"""What a page shows of a model, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from notsorandom.data.rows import Array, Rows
from notsorandom.display.inspection import Moment, mean_and_spread, potential_on_grid
from notsorandom.display.report.page import Section, shades

# Cells along each side of a map: smooth to the eye once the browser has blown it up.
SIDE = 72
# Room around the samples, so that none is cut.
FRAME = 1.04
# Samples drawn at most; more are a blur.
MOST_POINTS = 3000
# The decision function's colours end here; the margin is at one.
DECISION_LIMIT = 2.0


def facts_section(title: str, facts: Sequence[tuple[str, str]]) -> Section:
    """Names and values."""
    return {"kind": "facts", "title": title, "facts": list(facts)}


def game_section(X: Array, y: Array, game: Sequence[Moment]) -> Section:
    """A slider through the rounds of a game on the plane.

    Parameters
    ----------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        Of 0 and 1.
    game : sequence of Moment
    """
    middle = (X.max(axis=0) + X.min(axis=0)) / 2
    half = FRAME * float((X.max(axis=0) - X.min(axis=0)).max()) / 2 or 1.0
    last = game[-1].kernel
    reach = 1.15 * float(np.abs(last.frequencies).max()) or 1.0
    shown = np.unique(np.linspace(0, len(X) - 1, min(len(X), MOST_POINTS)).astype(int))
    frames = []
    for moment in game:
        dual = np.abs(moment.measure[:, 0])
        side = np.linspace(-reach, reach, SIDE)
        amplitude = np.sqrt(
            potential_on_grid(moment.kernel, Rows(X), moment.measure, side, side[::-1])
        )
        frames.append(
            {
                "round": moment.round,
                "count": len(moment.kernel.frequencies),
                "dual": shades(dual[shown], 0, dual.max()),
                "potential": shades(amplitude, 0, amplitude.max()),
                "decision": shades(
                    moment.decision(square(middle, half).astype(X.dtype))[:, 0],
                    -DECISION_LIMIT,
                    DECISION_LIMIT,
                ),
            }
        )
    places = 255 * (0.5 + (X[shown] - middle) / (2 * half))
    return {
        "kind": "game",
        "title": "The game, round by round",
        "note": "Move the slider: samples by the weight that the game has put on them, the "
        "potential in which the next frequencies are sought, with those found, and the decision "
        "function of an SVM on them.",
        "points": np.round(places, 1).ravel(),
        "labels": y[shown],
        "frequencies": last.frequencies,
        "reach": reach,
        "side": SIDE,
        "frames": frames,
    }


def square(middle: Array, half: float) -> Array:
    """Points of a square grid, row by row from the top, as a canvas has them."""
    steps = np.linspace(-half, half, SIDE)
    horizontal, vertical = np.meshgrid(middle[0] + steps, middle[1] - steps)
    return np.column_stack([horizontal.ravel(), vertical.ravel()])


def history_section(history: Mapping[str, Array], bounds: tuple[Array, Array, Array]) -> Section:
    """How a game went."""
    rounds = np.arange(1, len(history["potential"]) + 1)
    charts = [
        chart(
            "highest potential found, as a share of the largest possible",
            "round",
            "potential",
            [series("potential", rounds, history["potential"])],
            log_y=True,
        ),
        chart(
            "dual variables at the ends of their box",
            "round",
            "share",
            [
                series("at 0", rounds, history["share_at_zero"]),
                series("at C", rounds, history["share_at_upper"], dashed=True),
            ],
            floor=0,
        ),
    ]
    places, upper, lower = bounds
    charts.append(
        chart(
            f"bounds on the value of the game; relative gap {1 - lower[-1] / upper[-1]:.1%} at "
            "the end (lower: estimated)",
            "round",
            "value",
            [
                series("upper", places, upper, marked=True),
                series("lower", places, lower, marked=True),
            ],
            log_x=True,
            floor=0,
        )
    )
    charts.append(
        chart(
            "relative gap between the bounds",
            "round",
            "gap",
            [series("gap", places, 1 - lower / upper, marked=True)],
            log_x=True,
            floor=0,
        )
    )
    return {"kind": "charts", "title": "How the game went", "charts": charts}


def spectrum_section(kernel: Any) -> Section:
    """The frequencies' weights by their lengths or degrees."""
    sizes = kernel.space.sizes(kernel.frequencies)
    return {
        "kind": "charts",
        "title": "What the kernel is made of",
        "charts": [
            chart(
                "weight of each frequency",
                "length or degree",
                "weight",
                [series("weight", sizes, kernel.weights)],
                floor=0,
                stems=True,
            )
        ],
    }


def path_section(
    sizes: Array, accuracies: Mapping[str, Array], title: str, quality: str = "Accuracy"
) -> Section:
    """Accuracy by number of features, each (n_sizes,) or (n_trials, n_sizes), as shares."""
    found = []
    for name, values in accuracies.items():
        mean, spread = mean_and_spread(100 * np.atleast_2d(values))
        found.append(series(name, sizes, mean, marked=True, spread=spread))
    drawn = chart(title, "number of features", "%", found, log_x=True, ticks=sizes)
    return {"kind": "charts", "title": f"{quality} by number of features", "charts": [drawn]}


def images_section(
    title: str,
    images: Array,
    names: Sequence[str],
    note: str = "",
    smooth: bool = False,
    width_rem: float = 6,
) -> Section:
    """Images of signed numbers, each over its largest magnitude; NaN isn't drawn.

    Parameters
    ----------
    title : str
    images : ndarray of shape (n_images, height, width)
    names : sequence of str
    note : str
    smooth : bool
        Whether the browser may blur pixels.
    width_rem : float
        Least width of an image, in letters' heights.
    """
    return {
        "kind": "images",
        "title": title,
        "note": note,
        "height": images.shape[1],
        "width": images.shape[2],
        "smooth": smooth,
        "width_rem": width_rem,
        "images": [
            {
                "title": name,
                "values": shades(image, -np.nanmax(np.abs(image)), np.nanmax(np.abs(image))),
                "hidden": shades(np.isnan(image), 0, 255) if np.isnan(image).any() else None,
            }
            for name, image in zip(names, images, strict=True)
        ],
    }


def confusion_section(y: Array, predictions: Array, classes: Array, title: str) -> Section:
    """How often each class was taken for each."""
    return {
        "kind": "matrix",
        "title": title,
        "names": [str(name) for name in classes.tolist()],
        "counts": confusion_matrix(y, predictions, labels=classes),
    }


def chart(title: str, x_label: str, y_label: str, lines: list[Section], **more: Any) -> Section:
    """One chart: its lines, and how its axes are scaled."""
    return {"title": title, "x_label": x_label, "y_label": y_label, "series": lines, **more}


def series(name: str, x: Array, y: Array, **more: Any) -> Section:
    """One line of a chart."""
    return {"name": name, "x": x, "y": y, **more}
