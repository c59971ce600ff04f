"""Ordinary tables: what columns are taken for, and the pipeline around an estimator."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import reference
from scipy.stats import norm, rankdata
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from notsorandom import Euclidean, FourierClassifier, FourierRegressor, Sphere, tabular_pipeline
from notsorandom.data.column_kinds import convert, infer_kind, parse_plain_numbers, useless_numbers
from notsorandom.tabular import NumberEncoder, TableCleaner, numbers
from notsorandom.tabular.cleaner import SHORT, to_numbers
from notsorandom.tabular.numbers import SCORE_COLUMNS, known_quantiles

pytestmark = pytest.mark.usefixtures("quick_trials")


DAYS = pd.date_range("2020-02-01", periods=30).strftime("%Y-%m-%d").tolist()


@pytest.fixture(scope="module")
def table():
    """A table with every kind of column, and a target that needs several of them."""
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {
            "id": rng.permutation(n) + 1000,
            "name": [f"person {k}" for k in range(n)],
            "age": rng.normal(40, 12, n).round(1),
            "income": np.exp(rng.normal(10, 2, n)),
            "paid": rng.choice(["Yes", "no", "YES", None], n),
            "city": rng.choice(["Rome", "Oslo", "Bonn", ""], n, p=[0.4, 0.3, 0.2, 0.1]),
            "since": rng.choice(pd.date_range("2020-01-01", periods=400), n),
            "born": [f"{d}.{m}.1980" for d, m in rng.integers(1, 13, (n, 2))],
            "kind": "a",
            "nothing": None,
        }
    )
    frame.loc[::17, "age"] = np.nan
    y = np.where((frame["age"].fillna(0) > 40) ^ (frame["city"] == "Rome"), "buys", "leaves")
    return frame, y


@pytest.fixture
def cleaner(table):
    """A cleaner that was fitted to the table."""
    with pytest.warns(UserWarning, match="left out"):
        return TableCleaner().fit(table[0])


def clean(**columns):
    """Return the clean table of some columns, with what they were taken for."""
    cleaner = TableCleaner()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cleaner.fit_transform(pd.DataFrame(columns)), cleaner


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 4], "number"),
        ([1.5, None, np.inf], "number"),
        (pd.array([1, None, 3], dtype="Int64"), "number"),
        (pd.to_timedelta(["1 day", "2 days", "1 day"]), "number"),
        (["1", " 2.5", "n/a"], "number"),
        (["1e3", "-7", "?"], "number"),
        ([True, False, True], "boolean"),
        ([True, None, False], "boolean"),
        (pd.array([True, None, False], dtype="boolean"), "boolean"),
        (["yes", "No", "YES"], "boolean"),
        (["t", "F", ""], "boolean"),
        (["a", "b", "a"], "category"),
        (["1", "b", "1"], "category"),
        (["yes", "no", "maybe", "no"], "category"),
        (pd.Categorical([1, 2, 1]), "category"),
        ([1, "a", 1], "category"),
        (pd.to_datetime(["2020-01-01", None, "2021-01-01"]), "date"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]).tz_localize("Asia/Tokyo"), "date"),
        (["2020-01-31", "2021-02-28", "NA"], "date"),
        (["2020-01-31T10:00:00Z", "2021-02-28T11:30:00+02:00"], "date"),
        (["31.1.2020", "28.2.2021"], "date"),
        (["1/31/2020", "2/28/2021"], "date"),
        (["31/1/2020 10:30", "28/2/2021 00:00"], "date"),
        (["31-Jan-2020", "28-Feb-2021"], "date"),
        (["Jan 31, 2020", "Feb 28, 2021"], "date"),
        (["May", "June", "May"], "category"),
        (["1-2", "3-4", "1-2"], "category"),
        (["2020-01-31", "later", "later"], "category"),
    ],
)
def test_what_a_column_is_taken_for(values, kind):
    _, cleaner = clean(x=values)
    assert cleaner.kinds_ == {"x": kind}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["a", "a", "a"], "constant"),
        ([2.0, 2.0, 2.0], "constant"),
        ([None, "", "NA"], "empty"),
        ([np.nan, np.nan, np.inf], "empty"),
        (["a", "b", None], "all values differ"),
        ([1, 2, 3], "row numbers"),
        ([0, 1, 2], "row numbers"),
        (pd.to_datetime(["2020-01-01"] * 3), "constant"),
    ],
)
def test_columns_that_say_nothing_are_left_out_and_named(values, reason):
    frame = pd.DataFrame({"x": values, "y": [0.5, 1, 3]})
    with pytest.warns(UserWarning, match=rf"left out: 'x' \({reason}"):
        cleaner = TableCleaner().fit(frame)
    assert cleaner.left_out_["x"].startswith(reason)
    assert cleaner.get_feature_names_out().tolist() == ["y"]
    assert cleaner.transform(frame[["y"]]).columns.tolist() == ["y"]  # not needed any more


@pytest.mark.parametrize(
    ("name", "is_left_out"), [("id", True), ("user_id", True), ("userId", True), ("paid", False)]
)
def test_identifiers_are_recognised_by_name_and_values(name, is_left_out):
    _, cleaner = clean(**{name: [17, 11, 19, 12], "x": [0.5, 1, 2, 4]})
    assert (name in cleaner.left_out_) == is_left_out
    _, cleaner = clean(**{name: [17, 11, 17, 12], "x": [0.5, 1, 2, 4]})
    assert not cleaner.left_out_  # repeated values may mean something


def test_columns_that_say_nothing_in_many_rows():
    """Row numbers after a shuffle and a split, and names of which none is frequent."""
    rng = np.random.default_rng(0)
    numbers, names = rng.permutation(100)[:60], [f"n{k // 3}" for k in range(60)]
    columns = {"x": rng.normal(size=60), "number": numbers, "name": names}
    _, cleaner = clean(**columns, count=rng.integers(0, 99, 60), sparse=numbers * 7)
    assert cleaner.left_out_ == {"number": "row numbers", "name": "no value is frequent"}


@pytest.mark.parametrize("n_rows", [1, 2, 3, 19, 20, 40])
def test_columns_of_numbers_against_one_at_a_time(n_rows, rng):
    """They are judged as blocks, of columns of any of NumPy's types."""
    orders = [np.arange(n_rows), np.arange(n_rows) + 1, rng.permutation(n_rows) + 3]
    orders += [rng.permutation(4 * n_rows)[:n_rows], rng.integers(0, 3, n_rows), np.ones(n_rows)]
    orders += [np.arange(n_rows)[::-1], rng.normal(size=n_rows), np.full(n_rows, np.nan)]
    orders += [np.where(rng.random(n_rows) < 0.3, np.inf, each) for each in orders]
    columns = {"x": rng.random(n_rows) < 2}
    for number, values in enumerate(orders):
        columns |= {f"{number}": values, f"{number}_id": values, f"{number}f": values + 0.0}
    frame = pd.DataFrame(columns | {"text": ["a", "b"] * (n_rows // 2) + ["a"] * (n_rows % 2)})
    useless = useless_numbers(frame.columns, to_numbers(frame.drop(columns="text")))
    for name in columns:
        values = frame[name].to_numpy(float)
        expected = reference.useless_numbers(name, np.where(np.isfinite(values), values, np.nan))
        assert useless.get(name, "") == expected, name


def test_empty_columns_at_predict(table, cleaner):
    """A single row has columns of any type where values are missing."""
    for missing in (None, np.nan, pd.NaT, pd.NA):
        row = cleaner.transform(pd.DataFrame([dict.fromkeys(table[0], missing)]))
        assert row.drop(columns="city").isna().all(axis=None)
        assert row["city"].tolist() == ["missing"]


def test_categories_of_whole_numbers_in_any_type():
    """A gap makes floats of integers."""
    cleaner = TableCleaner().fit(pd.DataFrame({"x": pd.Categorical([1, 2, 1, 2])}))
    found = cleaner.transform(pd.DataFrame({"x": pd.Categorical([1.0, 2.0, None, 1.0])}))
    assert found["x"].tolist() == ["1", "2", "missing", "1"]


def test_constant_columns_with_gaps_are_kept():
    """Where something is missing may matter."""
    frame, cleaner = clean(x=[2.0, np.nan, 2.0], y=["a", None, "a"], z=[1.0, 5.0, 2.0])
    assert not cleaner.left_out_
    assert frame["y"].tolist() == ["a", "missing", "a"]


def test_clean_values():
    frame, _ = clean(
        number=["1", " 2.5", "n/a"],
        boolean=["yes", "No", None],
        category=[" b", "b", None],
        date=["31.1.2020", "1.2.2020", None],
        whole=pd.Categorical([1, 2, 1]),
    )
    expected = {
        "number": [1, 2.5, np.nan],
        "boolean": [1, 0, np.nan],
        "category": ["b", "b", "missing"],
        "date_days": [18292, 18293, np.nan],
        "date_month": [1, 2, np.nan],
        "date_day": [31, 1, np.nan],
        "date_weekday": [4, 5, np.nan],
        "whole": ["1", "2", "1"],
    }
    pd.testing.assert_frame_equal(frame, pd.DataFrame(expected), check_dtype=False)
    assert set(frame.dtypes[["number", "boolean", "date_days"]]) == {np.dtype(float)}


def test_dates_are_the_same_as_text_and_as_dates():
    dates = pd.to_datetime(["2020-01-31 10:30", "2021-02-28 12:00", None])
    one, _ = clean(x=dates)
    two, _ = clean(x=dates.strftime("%d.%m.%Y %H:%M"))
    three, _ = clean(x=dates.strftime("%Y-%m-%dT%H:%M:%S"))
    for other in (two, three):
        pd.testing.assert_frame_equal(one, other)
    assert one["x_hour"].tolist()[:2] == [10.5, 12.0]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("age", "old", "'age' had numbers at fit, but row 3 has 'old': correct it"),
        ("paid", "perhaps", "'paid' had booleans at fit, but row 3 has 'perhaps'"),
        ("born", "in May", "'born' had dates at fit, but row 3 has 'in May'"),
        ("since", 3.5, "'since' had dates at fit, but row 3 has 3.5"),
    ],
)
def test_values_of_another_kind_at_predict(table, cleaner, column, value, message):
    other = table[0].astype({column: object})
    other.loc[3, column] = value
    with pytest.raises(ValueError, match=message):
        cleaner.transform(other)
    other.loc[3, column] = None
    cleaner.transform(other)


def test_columns_are_found_by_name(table, cleaner):
    frame, _ = table
    expected = cleaner.transform(frame)
    shuffled = frame[frame.columns[::-1]].assign(other=1)
    pd.testing.assert_frame_equal(cleaner.transform(shuffled), expected)
    with pytest.raises(ValueError, match="lacks columns that it had at fit: 'age'"):
        cleaner.transform(frame.drop(columns="age"))
    assert expected.columns.tolist() == cleaner.get_feature_names_out().tolist()


def test_wrong_tables():
    """A failed fit changes nothing."""
    dates = pd.to_datetime(["2020-01-01", "2020-02-01"])
    for columns, message in (
        ([("x", [1, 2]), ("x", [3, 4])], "same name, 'x': rename"),
        ([("x", [1, 1])], r"All columns of 2 .* were left out: 'x' \(constant\)"),
        ([("x", dates), ("x_month", [1.5, 2])], "'x_month' would be made of dates, but exist"),
    ):
        names, values = zip(*columns, strict=True)
        cleaner, table = TableCleaner(), pd.concat([pd.Series(each) for each in values], axis=1)
        with pytest.raises(ValueError, match=message):
            cleaner.fit(table.set_axis(names, axis=1))
        assert not vars(cleaner)
    with pytest.raises(ValueError, match="'regressor' or an estimator"):
        tabular_pipeline("cluster")
    with pytest.raises(TypeError, match="such as FourierClassifier"):
        tabular_pipeline(FourierClassifier)
    with pytest.raises(ValueError, match=r"numbers='ranks' is not allowed: .* 'scores', 'both'"):
        tabular_pipeline(numbers="ranks")
    with pytest.raises(ValueError, match="output=None is not allowed"):
        NumberEncoder(None).fit([[1.0], [2.0]])


@parametrize_with_checks([NumberEncoder(), NumberEncoder("scores"), TableCleaner()])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Columns left out")
        check(estimator)


class TestNumbers:
    """Each column of `make_columns` is a case of its own."""

    def make_columns(self, n=2000):
        rng = np.random.default_rng(0)
        columns = {
            "heavy": rng.standard_t(1, n),
            "ties": rng.normal(size=n).round(1),  # about 70 distinct values
            "zeros": np.maximum(rng.normal(size=n), 0),  # half of them equal
            "few": rng.integers(10, size=n),
            "eleven": rng.integers(11, size=n),
            "rare": np.arange(n) == 0,  # interquartile range zero
            "small": rng.normal(size=n) * 1e-308,
            "huge": rng.normal(size=n) * 1e303,
        }
        X = pd.DataFrame(columns, dtype=float)
        X.loc[::7, ["heavy", "few"]] = np.nan
        return X

    def test_numbers_against_their_formula(self):
        X = self.make_columns()
        encoded = NumberEncoder("raw").set_output(transform="pandas").fit_transform(X)
        for name in X.drop(columns=["huge", "small"]):
            column = X[name].to_numpy()
            known = column[~np.isnan(column)]
            lower, center, upper = np.quantile(known, [0.25, 0.5, 0.75])
            scale = upper - lower if upper > lower else np.ptp(known) / 2
            z = np.nan_to_num((column - center) / scale)
            values = encoded.pop(f"{name} (number)")
            np.testing.assert_allclose(values, z / np.sqrt(1 + (z / 3) ** 2))
            assert np.abs(values).max() < 3
        for name in ("heavy", "few"):
            np.testing.assert_array_equal(encoded.pop(f"{name} (missing)"), X[name].isna())
        assert set(encoded) == {"huge (number)", "small (number)"}

    def test_quantiles_of_known_values(self, rng):
        X = rng.normal(size=(30, 200)).round(1)
        X[rng.random(X.shape) < rng.random(200)] = np.nan
        X[:, 0] = np.nan
        shares = [0, 0.25, 0.5, 0.75, 1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns of NaN only
            expected = np.nanquantile(X, shares, axis=0)
        np.testing.assert_array_equal(known_quantiles(X, shares), expected)

    @pytest.mark.parametrize(("shape", "has_scores"), [((12, 20), True), ((12, 21), False)])
    def test_many_columns_and_few_rows_have_no_scores(self, shape, has_scores, rng, monkeypatch):
        monkeypatch.setattr(numbers, "MANY_COLUMNS", 20)
        X = rng.normal(size=shape)
        assert len(NumberEncoder("auto").fit(X).score_columns_) == has_scores * shape[1]
        assert len(NumberEncoder("auto").fit(rng.normal(size=(21, 21))).score_columns_) == 21
        assert len(NumberEncoder("both").fit(X).score_columns_) == shape[1]

    @pytest.mark.parametrize("name", ["heavy", "ties", "zeros", "eleven", "huge"])
    def test_scores_against_ranks(self, name):
        """Of more than 256 distinct values, other values are off by less than the spacing."""
        column = self.make_columns()[name]
        encoder = NumberEncoder("scores").fit(column.to_frame())
        known = column.dropna()
        exact = norm.ppf((rankdata(known) - 0.5) / len(known)).clip(-3, 3)
        scores = encoder.transform(known.to_frame())[:, 0]
        error = np.abs(scores - exact)
        n_values = known.nunique()
        assert encoder.n_knots_[0] <= min(n_values, 256)
        if n_values <= 256:
            np.testing.assert_allclose(scores, exact, atol=1e-12)
        else:
            assert error.max() < 6 / 127
            # Smooth curves are much nearer, and both sides of the step at zero are exact.
            assert error.mean() < 0.005
        assert (np.diff(scores[np.argsort(known)]) >= 0).all()

    def test_scores_between_and_outside_of_training_values(self):
        X = np.arange(12.0)[:, None]
        encoder = NumberEncoder("scores").fit(X)
        low, middle, high = encoder.transform([[-1e300], [4.25], [1e300]]).ravel()
        exact = norm.ppf((np.arange(12) + 0.5) / 12)
        assert middle == pytest.approx(0.75 * exact[4] + 0.25 * exact[5])
        assert [low, high] == pytest.approx([exact[0], exact[-1]])
        assert encoder.transform([[0.0], [11.0]]).ravel().tolist() == [low, high]

    @pytest.mark.parametrize("output", ["raw", "scores", "both"])
    def test_which_columns_come_out(self, output):
        X = self.make_columns()
        encoder = NumberEncoder(output).set_output(transform="pandas").fit(X)
        scored = ["heavy", "ties", "zeros", "eleven", "huge"]  # "small" has no numbers that count
        names = {
            "raw": [f"{name} (number)" for name in X],
            "scores": [f"{name} (number)" for name in X if name not in scored],
        }
        names["both"] = names["raw"]
        expected = list(names[output])
        if output != "raw":
            expected += [f"{name} (score)" for name in scored]
        expected += ["heavy (missing)", "few (missing)"]
        encoded = encoder.transform(X.assign(ties=np.nan))
        assert encoded.columns.tolist() == expected
        assert [X.columns[k] for k in encoder.input_columns()] == [
            name.split(" ")[0] for name in expected
        ]
        # NaN is the middle, also where none was missing at fit.
        assert not encoded.filter(like="ties").any(axis=None)
        assert np.isfinite(encoded).all(axis=None)
        assert (np.abs(encoded) <= 3).all(axis=None)

    def test_the_parts_are_the_same_in_every_output(self):
        X = self.make_columns()
        encoded = {
            output: NumberEncoder(output).set_output(transform="pandas").fit_transform(X)
            for output in ("raw", "scores", "both")
        }
        for output in ("raw", "scores"):
            columns = list(encoded[output])
            pd.testing.assert_frame_equal(encoded["both"][columns], encoded[output])

    def test_huge_numbers_are_at_the_limit(self):
        encoder = NumberEncoder().fit(np.linspace(-1, 1, 1001)[:, None])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scaled = encoder.transform([[1e140], [1e300], [-1.7e308]])
        np.testing.assert_allclose(scaled, np.array([[3, 3], [3, 3], [-3, -3]]))


@pytest.mark.filterwarnings("ignore:Columns left out")
class TestPipeline:
    def test_from_a_messy_table_to_predictions(self, table):
        frame, y = table
        model = tabular_pipeline(n_components=40, random_state=0).fit(frame, y)
        assert model.score(frame, y) > 0.9
        names = model[-1].feature_names_in_.tolist()
        numbers = ["age", "paid", "since_days", "since_month", "born_day"]
        assert {f"{name} (number)" for name in numbers} <= set(names)
        scores = {name for name in names if re.fullmatch(SCORE_COLUMNS, name)}
        assert {"age (score)", "income (score)", "since_days (score)"} <= scores
        assert all(name.endswith(" (score)") for name in scores)
        assert "age (missing)" in names
        assert {"city_Rome (category)", "city_missing (category)"} <= set(names)
        assert not {"id", "name", "kind", "nothing"} & {name.split(" (")[0] for name in names}
        assert model.predict_proba(frame).shape == (300, 2)

    def test_intervals_and_sets_are_those_of_the_last_step(self, table):
        frame, labels = table
        numbers = frame["age"].fillna(0) + 10 * (frame["city"] == "Rome")
        several = np.column_stack([numbers, -numbers])
        settings = {"n_components": 10, "random_state": 0}
        for kind, y, method in (
            ("regressor", numbers, "predict_interval"),
            ("regressor", several, "predict_interval"),
            ("classifier", labels, "predict_set"),
        ):
            model = tabular_pipeline(kind, **settings).fit(frame[:200], y[:200])
            encoded, last = model[:-1].transform(frame), model[-1]
            for stage in ("fitted", "calibrated"):
                for coverage in (0.8, [0.5, 0.9]):
                    found = getattr(model, method)(frame, coverage)
                    expected = getattr(last, method)(encoded, coverage)
                    np.testing.assert_array_equal(found, expected)
                if stage == "fitted":
                    before = last.held_out_scores_
                    weights = np.repeat([0.0, 2.0], 50)
                    assert model.calibrate(frame[200:], y[200:], weights) is model
                    assert last.held_out_scores_ is not before
                    assert last.held_out_scores_.counts.sum() == pytest.approx(100)
            if kind == "regressor":
                pairs = zip(
                    model.predict(frame, return_std=True),
                    last.predict(encoded, return_std=True),
                    strict=True,
                )
                for found, expected in pairs:
                    np.testing.assert_array_equal(found, expected)
            copied = pickle.loads(pickle.dumps(model))
            np.testing.assert_array_equal(
                getattr(copied, method)(frame), getattr(model, method)(frame)
            )

    def test_a_pipeline_has_the_methods_of_its_last_step_only(self):
        names = ("predict_interval", "predict_set", "calibrate")
        has = {
            last: [hasattr(tabular_pipeline(estimator), name) for name in names]
            for last, estimator in {
                "regressor": "regressor",
                "classifier": "classifier",
                "hinge": FourierClassifier(loss="hinge"),
                "other": LogisticRegression(),
            }.items()
        }
        assert has == {
            "regressor": [True, False, True],
            "classifier": [False, True, True],
            "hinge": [False, False, False],
            "other": [False, False, False],
        }
        with pytest.raises(AttributeError) as caught:
            tabular_pipeline(loss="hinge").predict_set(None)
        assert "fit with loss='logistic'" in str(caught.value.__cause__)

    def test_a_pipeline_is_one_of_scikit_learn(self, table):
        frame, _ = table
        model = tabular_pipeline("regressor", n_components=5, random_state=0)
        copied = clone(model.set_params(model__C=2.0))
        assert isinstance(model, Pipeline)
        assert type(copied) is type(model)
        assert copied.get_params()["model__C"] == 2.0
        assert "NumberEncoder" in model._repr_html_()
        model.set_output(transform="pandas").fit(frame, frame["age"].fillna(0))
        assert isinstance(model.predict_interval(frame), np.ndarray)

    def test_unknown_categories_and_empty_rows(self, table):
        frame, y = table
        model = tabular_pipeline(n_components=10, random_state=0).fit(frame, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            unknown = model.predict_proba(frame.assign(city="Paris"))
            empty = model.predict_proba(frame.head(2).assign(**dict.fromkeys(frame)))
        assert np.isfinite(unknown).all()
        assert np.isfinite(empty).all()

    def test_rare_categories_share_a_column(self):
        frame = pd.DataFrame({"x": [*"aaaaaabbbbbb", "c", "d", "d"], "z": np.arange(15) / 2})
        encoded = tabular_pipeline()[:-1].fit_transform(frame)
        names = [name.split(" ")[0] for name in encoded]
        assert names == ["z", "z", "x_a", "x_b", "x_infrequent_sklearn"]
        assert encoded["x_infrequent_sklearn (category)"].sum() == 3

    def test_regression_and_other_estimators(self, table):
        frame, y = table
        target = frame["age"].fillna(0) + 10 * (frame["city"] == "Rome")
        model = tabular_pipeline("regressor", n_components=40, random_state=0)
        assert isinstance(model[-1], FourierRegressor)
        assert model.fit(frame, target).score(frame, target) > 0.9
        given = LogisticRegression()
        model = tabular_pipeline(given, C=0.5)
        assert model[-1].C == 0.5
        assert given.C == 1.0
        assert model.fit(frame, y).score(frame, y) > 0.55

    @pytest.mark.parametrize(
        ("given", "output"),
        [
            ("classifier", "auto"),
            (FourierRegressor(), "auto"),
            (FourierRegressor(space=Euclidean(max_norm=3.0)), "raw"),
            (FourierClassifier(space=Sphere(normalize=True)), "raw"),
            (LogisticRegression(), "raw"),
        ],
    )
    def test_what_the_estimators_get_of_numbers(self, given, output):
        encoders = {
            numbers: tabular_pipeline(given, numbers=numbers)["encode"].transformers[0][1]
            for numbers in ("auto", "raw", "scores", "both")
        }
        assert encoders.pop("auto").output == output
        assert all(encoder.output == numbers for numbers, encoder in encoders.items())

    def test_trials_choose_whether_to_use_scores(self):
        """Only where that was not decided."""
        model = FourierClassifier
        for pipeline, expected in (
            (tabular_pipeline(), SCORE_COLUMNS),
            (tabular_pipeline(numbers="both"), model().optional_columns),
            (tabular_pipeline(optional_columns="x.*"), "x.*"),
            (tabular_pipeline(optional_columns=None), None),
            (tabular_pipeline(model(optional_columns="x.*")), "x.*"),
            (tabular_pipeline(model(space="sphere")), model().optional_columns),
        ):
            assert pipeline["model"].optional_columns == expected

    def test_inside_of_scikit_learn(self, table):
        frame, y = table
        model = tabular_pipeline(n_components=5, smoothing=0.06, C=1.0, random_state=0)
        assert cross_val_score(clone(model), frame, y, cv=2).mean() > 0.5
        grid = GridSearchCV(model, {"model__n_components": [5, 10]}, cv=2).fit(frame, y)
        assert grid.best_params_["model__n_components"] in (5, 10)

    def test_the_last_step_alone_does_not_take_the_table(self, table):
        frame, y = table
        model = tabular_pipeline(n_components=5, random_state=0).fit(frame, y)
        with pytest.raises(ValueError, match="feature names"):
            model[-1].predict(frame)

    def test_other_libraries_and_arrays(self, table):
        frame, y = table
        model = tabular_pipeline(n_components=5, random_state=0)
        expected = model.fit(frame, y).predict(frame)
        needed = "needs polars: pip install 'notsorandom[all]'"
        polars = pytest.importorskip("polars", reason=needed)
        np.testing.assert_array_equal(model.predict(polars.from_pandas(frame)), expected)
        values = frame[["age", "income"]].to_numpy()
        assert tabular_pipeline(n_components=5).fit(values, y).predict(values).shape == y.shape

    def test_skrub_around_our_estimator(self, table):
        """What skrub makes of a table suits our estimators too."""
        skrub = pytest.importorskip("skrub", reason="needs skrub: pip install 'notsorandom[all]'")
        frame, y = table
        model = skrub.tabular_pipeline(FourierClassifier(20, random_state=0))
        assert model.fit(frame, y).score(frame, y) > 0.6  # 0.5 by guessing
        assert model.predict_proba(frame).shape == (300, 2)


@pytest.mark.parametrize(
    ("cells", "numbers", "text_format"),
    [
        (["1.234,56", "-7,5"], [1234.56, -7.5], "1.234,5"),
        (["1,5", "2,75"], [1.5, 2.75], "1.234,5"),
        (["1,234.56", "5"], [1234.56, 5], "1,234.5"),
        (["-$5.10", "$1,200"], [-5.1, 1200], "1,234.5"),
        (["12%", "7.5 %"], [12, 7.5], ""),
        (["€ 5", "6 €"], [5, 6], ""),
    ],
)
def test_numbers_with_signs_and_marks(cells, numbers, text_format):
    column = pd.Series(cells * 10)
    assert infer_kind(column) == ("number", text_format)
    values = convert(column, "x", "number", text_format)
    np.testing.assert_allclose(values, numbers * 10)


@pytest.mark.parametrize(
    ("cells", "is_plain"),
    [
        ([1, 2.5, None, np.nan, pd.NA], True),
        ([" 1.5 ", "2e3", "-7.", "+3", "0012", None], True),
        ([np.int64(3), np.float32(0.5), "4"], True),
        (["1", "NA"], False),
        (["1", "$5"], False),
        (["1", 10**400], False),
    ],
)
def test_numbers_that_are_read_cell_by_cell(cells, is_plain):
    column = pd.Series(cells, dtype=object)
    numbers = parse_plain_numbers(column.to_numpy())
    assert (numbers is not None) == is_plain
    frame = pd.DataFrame({"x": [f"{k}.5" for k in range(30)]})
    cleaner = TableCleaner().fit(frame)
    if is_plain:
        np.testing.assert_array_equal(numbers, convert(column, "x", "number", ""))
        np.testing.assert_array_equal(cleaner.transform(column.to_frame("x"))["x"], numbers)


@pytest.mark.parametrize("cell", [True, "1_000", "inf", "1e999", np.inf, "x", 1j, "\u0663", "1 2"])
def test_cells_that_are_no_plain_numbers(cell):
    """Whether they are numbers is decided by pandas, in short and in long tables."""
    assert parse_plain_numbers(np.array([cell, 1], dtype=object)) is None
    cleaner = TableCleaner().fit(pd.DataFrame({"x": [f"{k}.5" for k in range(30)]}))
    for n_rows in (1, SHORT + 1):
        with pytest.raises(ValueError, match="'x' had numbers at fit, but row 0 has"):
            cleaner.transform(pd.DataFrame({"x": pd.Series([cell] * n_rows, dtype=object)}))


@pytest.mark.parametrize("cells", [["1,5", "1.5"], ["1.234,5", "1,234.5"], ["12,34", "1,234.5"]])
def test_numbers_of_two_formats_are_categories(cells):
    assert infer_kind(pd.Series(cells * 10)) == ("category", "")


@pytest.mark.parametrize(
    ("values", "other", "message"),
    [
        ([*map(str, range(30))], "unknown", "30 of 31 values are numbers, but not 'unknown'"),
        (DAYS * 2, "2020-02-30", "60 of 61 values are dates, but not '2020-02-30'"),
    ],
)
def test_a_few_values_of_another_kind_are_warned_of(values, other, message):
    frame = pd.DataFrame({"x": [*values, other], "y": np.arange(len(values) + 1) % 7})
    with pytest.warns(UserWarning, match=message):
        TableCleaner().fit(frame)


def test_dates_of_two_readings_are_warned_of():
    dates = [f"{month:02d}/{day:02d}/2020" for month in range(1, 13) for day in range(1, 13)]
    frame = pd.DataFrame({"when": dates})
    with pytest.warns(UserWarning, match="read as month/day/year, but may be day/month/year"):
        TableCleaner().fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableCleaner().fit(pd.DataFrame({"when": [*dates, "01/13/2020"]}))


def test_errors_of_dates_name_the_format():
    cleaner = TableCleaner().fit(pd.DataFrame({"when": pd.date_range("2020-01-01", periods=30)}))
    with pytest.raises(ValueError, match="At fit they were like 2020-01-31"):
        cleaner.transform(pd.DataFrame({"when": ["21.01.2023"]}))


def test_a_step_can_be_replaced_where_rows_are_not_counted_from_zero():
    frame = pd.DataFrame({"a": np.linspace(-1, 1, 60), "c": ["u", "v"] * 30}, index=range(100, 160))
    model = tabular_pipeline("classifier", n_components=4, C=1.0, smoothing=0.1, random_state=0)
    model.set_params(encode__number=make_pipeline(StandardScaler(), SimpleImputer()))
    assert model.fit(frame, frame["a"] > 0).score(frame, frame["a"] > 0) > 0.9
