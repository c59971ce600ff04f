import re
import shutil
import time
import warnings
from html import escape

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score, log_loss, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import notsorandom
from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Sphere
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.display.calibration import calibration_error
from notsorandom.display.figures import import_pyplot
from notsorandom.display.inspection import score_predictions
from notsorandom.display.page import (
    bars_section,
    facts_section,
    figures_section,
    matrix_section,
    section,
    write_page,
)
from notsorandom.display.results import (
    Predictions,
    accuracy_error,
    find_caution,
    format_number,
    score_beside_guessing,
)
from notsorandom.display.sections import mistakes_section

pytestmark = pytest.mark.usefixtures("quick_trials")


def titles(path):
    return re.findall("<h2>(.*?)</h2>", path.read_text(encoding="utf-8"))


def facts(path):
    text = path.read_text(encoding="utf-8")
    return dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", text))


@pytest.fixture(scope="module")
def windmill_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "windmill.html"
    X, y = make_windmill(150, random_state=0)
    model = FourierClassifier(12, loss="logistic", smoothing=0.06, random_state=0).fit(X, y)
    X_test, y_test = make_windmill(200, random_state=1)
    test = {"X_test": X_test, "y_test": y_test}
    page = notsorandom.report(model, X, y, path, **test, title="Windmill", research=True)
    assert page == path
    return path, model, (X_test, y_test)


@pytest.fixture(scope="module")
def digits_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "digits.html"
    X, y = load_digits(n_class=4, return_X_y=True)
    model = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X[:200], y[:200])
    return notsorandom.report(model, X[:200], y[:200], path, image_shape=(8, 8))


@pytest.fixture(scope="module")
def regression_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "regression.html"
    X = np.random.default_rng(0).standard_normal((100, 2))
    model = FourierRegressor(8, C=1.0, smoothing=0.06, random_state=0).fit(X, X**2)
    return notsorandom.report(model, X, X**2, path)


class TestPage:
    def test_text_is_escaped(self, tmp_path):
        name = "</script><script>alert('1 & $2')</script>"
        sections = [facts_section(name, [(name, name)]), section(name, "", name)]
        figure = import_pyplot().Figure()
        figure.subplots().set_xlabel(name)
        sections.append(figures_section(name, [(name, figure)], name))
        sections.append(bars_section(name, [(name, 1.0)], name, name))
        sections.append(matrix_section(name, [name, name], np.eye(2, dtype=int), name))
        text = write_page(tmp_path / "page.html", name, name, sections).read_text()
        assert "<script>alert" not in text
        assert text.count(f"<h2>{escape(name)}</h2>") == len(sections)

    def test_it_is_one_file(self, windmill_page):
        text = windmill_page[0].read_text(encoding="utf-8")
        assert not re.search(r'(src|href)="(?!data:|#)', text)
        assert "default-src 'none'" in text
        # Addresses are names of XML formats, not requests.
        assert {address.split("/")[2] for address in re.findall(r"https?://[^\s\"'<]+", text)} == {
            "www.w3.org"
        }

    def test_failure_leaves_the_old_page(self, tmp_path):
        path = tmp_path / "page.html"
        path.write_text("old")
        with pytest.raises(TypeError):
            write_page(path, "new", "", [object()])
        for bad in (tmp_path / "page.png", tmp_path, str(tmp_path / "page")):
            with pytest.raises(ValueError, match=r"\.html"):
                write_page(bad, "new", "", [])
        with pytest.raises(TypeError, match="path=None is not allowed"):
            write_page(None, "new", "", [])
        with pytest.raises(FileNotFoundError):
            write_page(tmp_path / "no" / "page.html", "new", "", [])
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_figures_are_closed_and_equal_figures_give_equal_pages(self):
        bodies = []
        for _ in range(2):
            figure, axis = import_pyplot().subplots()
            axis.plot([1, 2], "o-")
            bodies.append(figures_section("lines", [("two points", figure)]))
            assert not import_pyplot().fignum_exists(figure.number)
        assert bodies[0] == bodies[1]


class TestReport:
    def test_planar_model(self, windmill_page):
        path, model, (X_test, y_test) = windmill_page
        assert titles(path) == [
            "Result",
            "Which columns matter",
            "Confusion matrix of the test rows",
            "Ranking of the test rows",
            "Probabilities of the test rows",
            "Learned features",
            "Settings",
            "Spectrum of the kernel",
            "Game, round by round",
            "Course of the game",
            "Choice of the parameters",
        ]
        text = path.read_text(encoding="utf-8")
        assert text.index("<summary>For researchers") < text.index("Settings")
        hits, probabilities = model.predict(X_test) == y_test, model.predict_proba(X_test)
        area = roc_auc_score(y_test, probabilities[:, 1])
        precision = average_precision_score(y_test, probabilities[:, 1])
        assert f"ROC AUC {area:.4g}, average precision {precision:.4g}." in text
        error = np.std([*hits, 0, 0, 1, 1]) / np.sqrt(len(hits) + 4)
        largest = max(np.mean(y_test), 1 - np.mean(y_test))
        assert facts(path) | {
            "test accuracy": f"{100 * hits.mean():.2f} %",
            "standard error of accuracy": f"{100 * error:.2f} %",
            "accuracy of guessing the largest class": f"{100 * largest:.2f} %",
            "temperature": f"{model.temperature_:.4g}",
            "loss": "logistic",
            "C": f"{model.C_:.4g}",
            "search spectrum": model.spectrum_,
        } == facts(path)
        error = 100 * calibration_error(y_test, probabilities[:, 1])
        for words in (
            "Predicts the target (2 classes) from 2 columns. Learned from 150 rows, ",
            f"predicts the target correctly in {hits.sum()} of 200 test rows, which",
            "adds up 12 learned features",
            "random (RBF)",
            "12 frequencies (effective number",
            f"round {len(model.history_['plays'])}: 12 frequencies",
            f"by {error:.2f} % on the average (expected calibration error)",
            f"Log loss: {log_loss(y_test, probabilities):.4g}.",
            f"{len(model.tuning_['loss'])} settings compared",
            f"Chosen: C = {model.C_:.4g}, smoothing 0.06, {model.spectrum_} spectrum",
        ):
            assert words in text

    def test_research_shows_the_certificate_and_bounds(self, windmill_page):
        path, model, _ = windmill_page
        certificate = model.certificate(*make_windmill(150, random_state=0))
        text = path.read_text("utf-8")
        assert escape(certificate.sentence) in text
        assert "Bounds on the value of the game" in text

    def test_without_research_the_game_is_not_replayed(self, windmill_page, monkeypatch, tmp_path):
        path, model, _ = windmill_page
        monkeypatch.setattr(FourierClassifier, "certificate", None)
        plain = notsorandom.report(model, *make_windmill(150, random_state=0), tmp_path / "p.html")
        removed = {"Game, round by round"}
        parts = [title.replace("test", "training") for title in titles(path)]
        assert titles(plain) == [title for title in parts if title not in removed]
        assert "Bounds on the value of the game" not in plain.read_text("utf-8")

    @pytest.mark.parametrize("kind", ["array", "frame", "classes", "weights"])
    def test_of_many_rows_some_are_drawn(self, kind, tmp_path, monkeypatch):
        """Scores are of all test rows up to a limit, linear models of few training rows."""
        monkeypatch.setattr("notsorandom.display.report.MAX_TRAINED", 100)
        monkeypatch.setattr("notsorandom.display.report.MAX_SCORED", 150)
        X, y = make_windmill(300, random_state=0)
        if kind == "classes":
            y[7] = 2  # the only one of its class
        weights = np.where(np.arange(300) < 200, 1.0, 0.0) if kind == "weights" else None
        model = FourierClassifier(8, C=1.0, smoothing=0.06, random_state=0)
        model.fit(X, y, sample_weight=weights)
        given, labels = X, y
        if kind == "frame":
            given, labels = pd.DataFrame(X), pd.Series(y, name="side")
        path = notsorandom.report(model, given, labels, tmp_path / "page.html")
        text = path.read_text("utf-8")
        assert "of 150 training rows (drawn from 300)" in text
        assert re.search(
            "fitted to 10[01] rows." if kind == "classes" else "fitted to 100 rows.", text
        )
        if kind == "frame":
            assert "Predicts side" in text
        monkeypatch.setattr("notsorandom.display.report.MAX_CURVE_COEFFICIENTS", 7)
        without = notsorandom.report(model, given, labels, tmp_path / "page.html")
        assert "random features" in text
        assert "random features" not in without.read_text("utf-8")
        assert titles(without) == titles(path)
        with pytest.raises(ValueError, match=r"299 samples, but the game was played on 300"):
            notsorandom.report(model, given[:299], labels[:299], tmp_path / "other.html")

    def test_multiclass_images(self, digits_page):
        assert "Game, round by round" not in titles(digits_page)
        assert "Confusion matrix of the training rows" in titles(digits_page)
        assert "as images" in digits_page.read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        "settings",
        [
            {"space": "sphere"},
            {"space": Sphere("zonal")},
            {"space": "sphere", "solver": "equilibrium", "smoothing": 0},
            {"solver": "reweight"},
            {"phase": "paired", "loss": "squared_hinge"},
            {"loss": "hinge", "C": 1.0, "search": "langevin"},
        ],
    )
    def test_every_kind_of_model_has_a_page(self, settings, tmp_path):
        X, y = make_checkerboard(80, random_state=0)
        labels = np.array(["<no>", r"$\yes$"])[y]
        settings = {"smoothing": 0.06, "random_state": 0} | settings
        model = FourierClassifier(12, **settings).fit(X, labels)
        path = notsorandom.report(model, X, labels, str(tmp_path / "page.html"))
        found = titles(path)
        assert "Course of the game" in found
        assert ("Choice of the parameters" in found) == (model.tuning_ is not None)
        has_probabilities = any(title.startswith("Probabilities") for title in found)
        assert has_probabilities == (model.loss == "logistic")
        assert "<no>" not in path.read_text()
        assert r"$\yes$" in path.read_text()
        assert re.search("waves? around the sphere|most go up and down", path.read_text())

    def test_linear_part(self, trend, tmp_path):
        """The page has no bounds and no game on the plane, which are of waves alone."""
        model, X, y = trend
        path = notsorandom.report(model, X, y, tmp_path / "page.html", research=True)
        text = path.read_text(encoding="utf-8")
        found = titles(path)
        assert found[found.index("Learned features") + 1] == "Linear part"
        assert "Game, round by round" not in found
        assert "Course of the game" in found
        for words in (
            "is a linear model of the columns plus 20 learned features",
            "Certificates and bounds are for models without a linear part only",
            "and on random features, all beside the linear part.",
            "spectrum, with a linear part.",
        ):
            assert words in text
        slopes = model.kernel_.linear_scale * model.coef_[0, 20:] * X.std(axis=0)
        assert facts(path) | {
            "linear part": "yes",
            "x0": f"{slopes[0]:+.4g}",
            "x1": f"{slopes[1]:+.4g}",
        } == facts(path)
        assert slopes[0] > 5 * abs(slopes[1])

    @pytest.mark.parametrize("kind", ["classes", "outputs", "harmonics", "images"])
    def test_kinds_of_models_with_a_linear_part(self, kind, tmp_path):
        X = make_checkerboard(120, random_state=0)[0]
        settings = {"linear": True, "smoothing": 0.06, "random_state": 0, "n_components": 8}
        y = np.digitize(X[:, 0] + np.sin(4 * X[:, 1]), [-0.5, 0.5])
        model, targets, options = {
            "classes": (FourierClassifier(**settings), np.array(["a", "<b>", "c"])[y], {}),
            "outputs": (FourierRegressor(**settings), X[:, :2], {}),
            "harmonics": (FourierClassifier(space="sphere", **settings), y, {}),
            "images": (FourierClassifier(**settings), y, {"image_shape": (1, 3)}),
        }[kind]
        path = notsorandom.report(model.fit(X, targets), X, targets, tmp_path / "p.html", **options)
        assert ("Linear part" in titles(path)) == (kind in ("classes", "outputs"))
        assert "linear model of the columns plus" in path.read_text(encoding="utf-8")
        if kind == "classes":
            assert "x0 (&lt;b&gt;)" in facts(path)

    def test_regression_with_named_columns(self, tmp_path, rng):
        X = pd.DataFrame(rng.standard_normal((60, 2)), columns=["usage", "tickets"])
        model = FourierRegressor(8, smoothing=0.06, random_state=0).fit(X, X["usage"] ** 2)
        path = notsorandom.report(model, X, X["usage"] ** 2, tmp_path / "page.html")
        text = path.read_text(encoding="utf-8")
        errors = model.predict(X) - X["usage"] ** 2
        assert facts(path) | {
            "training R^2": f"{model.score(X, X['usage'] ** 2):.4g}",
            "R^2 of guessing the mean": "0",
            "root mean squared error": f"{np.sqrt(np.mean(errors**2)):.4g}",
            "mean absolute error": f"{np.abs(errors).mean():.4g}",
        } == facts(path)
        assert "Predicts usage from 2 columns" in text
        assert re.findall("<tr><th>(.*?)</th>", text) == ["usage", "tickets"]
        assert "Predicted and actual values of the training rows" in titles(path)
        assert "It learned from these rows" in text
        assert not any(title.startswith("Confusion") for title in titles(path))
        assert "R^2 (%)" not in text
        intervals = model.predict_interval(X, 0.9)
        width = format_number((intervals[:, 1] - intervals[:, 0]).mean())
        assert "Grey: intervals for 90 % of new rows." in text
        assert f"Mean width of 90 % intervals: {width}. The model learned from these rows" in text

    def test_regression_with_several_outputs(self, tmp_path, rng):
        """Few held-out rows allow few intervals, and none allow none."""
        X = rng.standard_normal((70, 2))
        y = pd.DataFrame({"a$": X[:, 0], "b": X[:, 1] ** 2})
        path = tmp_path / "page.html"
        for size, shown in ((4, "80 %"), (1, "50 %"), (0, "")):
            settings = {"C": 1.0, "smoothing": 0.06, "calibration_size": size}
            model = FourierRegressor(8, random_state=0, **settings).fit(X[:40], y[:40])
            notsorandom.report(model, X[:40], y[:40], path, X_test=X[40:], y_test=y[40:])
            text = path.read_text(encoding="utf-8")
            assert ("Coverage of the test rows" in titles(path)) == bool(size)
            assert text.count(f"within the {shown} interval: ") == 2 * bool(size)
            assert "The model learned from these rows" not in text
            assert re.search(r"a\$: R\^2 .*, mean absolute error", text)

    def test_errors_of_scores(self, rng):
        """The error of R^2 is about as large as by the bootstrap."""
        y = rng.standard_normal((4000, 2)) * [1, 3]
        scores = y + rng.standard_normal((4000, 2))
        score, error, guess = score_beside_guessing(FourierRegressor(), scores, y)
        boot = []
        for _ in range(300):
            rows = rng.integers(4000, size=4000)
            boot.append(score_predictions(FourierRegressor(), scores[rows], y[rows]))
        assert score == pytest.approx(r2_score(y, scores, multioutput="variance_weighted"))
        assert error == pytest.approx(np.std(boot), rel=0.2)
        assert guess == 0

    def test_errors_of_accuracies(self, rng):
        """Two standard errors cover the true accuracy, also near 1 and for few rows."""
        for n_rows, truth in ((5, 0.9), (20, 0.98), (100, 0.6)):
            found = rng.binomial(n_rows, truth, size=4000) / n_rows
            errors = np.array([accuracy_error(share, n_rows) for share in found])
            centers = (found * n_rows + 2) / (n_rows + 4)
            assert np.mean(np.abs(centers - truth) < 2 * errors) > 0.9
        assert accuracy_error(1.0, 5) > 0.1

    def test_words_of_a_result(self, rng):
        assert find_caution(99, 1.0, 0.01, 0.5).startswith("99 rows are too few to tell how good")
        assert "not clearly better" in find_caution(100, 0.55, 0.03, 0.5)
        assert find_caution(100, 0.6, 0.03, 0.5) == ""
        # Of a rare class, no accuracy is much higher than that of guessing.
        assert find_caution(1000, 0.95, 0.007, 0.95, log_ratio=10.0) == ""
        assert "not clearly better" in find_caution(1000, 0.95, 0.007, 0.95, log_ratio=2.0)
        assert [format_number(x) for x in (1e5, 2345.678, -1e-7)] == ["100,000", "2346", "-1e-07"]
        y = rng.standard_normal((7, 2))
        words = Predictions(FourierRegressor(), y + 0.1, y, "test", "a, b", len(y)).describe()
        assert "all outputs together" in words
        assert words.endswith("But 7 rows are too few to tell how good the model is.")
        words = Predictions(
            FourierRegressor(), y[:, :1] + 0.5, y[:, 0], "test", "a", len(y)
        ).describe()
        assert "prediction of a is off by 0.5. Always" in words

    def test_many_classes_have_a_list_of_mistakes(self, rng):
        codes = np.arange(220) % 22
        X = np.column_stack([np.cos(codes), np.sin(codes), codes]) + rng.normal(0, 0.3, (220, 3))
        model = FourierClassifier(30, C=1.0, smoothing=0.06, random_state=0).fit(X, codes)
        scores, predicted = model.decision_function(X), model.predict(X)
        text = mistakes_section(Predictions(model, scores, codes, "training", "a", len(codes)))
        assert "Most frequent mistakes in the training rows" in text
        found = re.findall(r"<th>(\d+) taken for (\d+)</th>.*?<td>([\d.]+) %</td>", text)
        for actual, other, share in found:
            rows = predicted[codes == int(actual)]
            assert float(share) == round(100 * np.mean(rows == int(other)), 2) > 0
        assert bool(found) == (model.score(X, codes) < 1)

    def test_bad_input_writes_nothing(self, tmp_path):
        X, y = make_windmill(60, random_state=0)
        path = tmp_path / "page.html"
        model = FourierClassifier(8, smoothing=0.06, random_state=0)
        with pytest.raises(ValueError, match="not fitted"):
            notsorandom.report(model, X, y, path)
        model.fit(X, y)
        for wrong, error, message in (
            ({"X_test": X}, ValueError, "give both or neither"),
            ({"image_shape": (3, 3)}, ValueError, r"image_shape=\(3, 3\) is not allowed"),
            ({"path": tmp_path / "no" / "page.html"}, FileNotFoundError, None),
            ({"title": 5}, TypeError, "title=5 is not allowed"),
            ({"X_test": X[:, :1], "y_test": y}, ValueError, "1 features"),
            ({"X_test": np.nan * X, "y_test": y}, ValueError, "NaN"),
            ({"X_test": X, "y_test": y[:9]}, ValueError, None),
            ({"X": X[:30], "y": y[:30]}, ValueError, "X has 30 samples, but the game was played"),
        ):
            with pytest.raises(error, match=message):
                notsorandom.report(model, **{"X": X, "y": y, "path": path} | wrong)
        X, y = make_checkerboard(60, random_state=0)
        sphere = FourierClassifier(8, space="sphere", smoothing=0.06).fit(X, y)
        with pytest.raises(ValueError, match="not allowed on the sphere's harmonics"):
            notsorandom.report(sphere, X, y, path, image_shape=(1, 2))
        assert not list(tmp_path.iterdir())

    def test_column_names_are_checked(self, tmp_path):
        X, y = make_windmill(60, random_state=0)
        X = pd.DataFrame(X, columns=["east", "north"])
        model = FourierClassifier(8, smoothing=0.06, random_state=0).fit(X, y)
        path = tmp_path / "page.html"
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".* feature names")
            notsorandom.report(model, X, pd.Series(y), path, X_test=X, y_test=y)
        assert facts(path)["test accuracy"] == f"{100 * model.score(X, y):.2f} %"
        with pytest.raises(ValueError, match="feature names"):
            notsorandom.report(model, X, y, path, X_test=X[["north", "east"]], y_test=y)


class TestPipelines:
    def test_pipeline_and_its_last_step_have_the_same_page(self, tmp_path):
        X, y = make_windmill(150, random_state=0)
        X = X * [1, 100] + [50, 3000]  # far from zero
        last_step = FourierClassifier(8, smoothing=0.06, random_state=0)
        model = make_pipeline(StandardScaler(), last_step).fit(X, y)
        whole = notsorandom.report(model, X, y, tmp_path / "a.html", X_test=X, y_test=y)
        Z = model[:-1].transform(X)
        last = notsorandom.report(model[-1], Z, y, tmp_path / "b.html", X_test=Z, y_test=y)
        assert titles(whole) == titles(last)
        name = "seconds of learning"
        assert facts(whole) | {name: ""} == facts(last) | {name: ""}
        with pytest.raises(ValueError, match=r"give the whole pipeline, report\(pipeline, X"):
            notsorandom.report(model[-1], X, y, tmp_path / "page.html")
        assert not (tmp_path / "page.html").exists()

    @pytest.mark.filterwarnings("ignore:Columns left out")
    def test_tables(self, tmp_path):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"age": rng.normal(40, 9, 80), "city": rng.choice(["A", "B"], 80)})
        frame["one"] = 1
        y = np.where((frame["age"] > 40) ^ (frame["city"] == "A"), "yes", "no")
        model = notsorandom.tabular_pipeline(n_components=8, random_state=0).fit(frame, y)
        page = notsorandom.report(model, frame, y, tmp_path / "page.html")
        text = page.read_text()
        assert {"age", "city"} <= set(re.findall("<th>(.*?)</th>", text))
        assert "from 3 columns, 1 of which is left out" in text
        assert "Left out: one (constant)." in text


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install 'notsorandom[all]'"
    )
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def open_page(browser, path, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = context.new_page()
    messages, requests = [], []
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(path.resolve().as_uri())
    tab.locator("summary").click()  # shows what is for researchers
    return tab, messages, requests


@pytest.mark.slow
class TestBrowser:
    @pytest.mark.parametrize("page", ["windmill_page", "digits_page", "regression_page"])
    @pytest.mark.parametrize("width", [390, 1200])
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_page_fits_and_requests_nothing(self, browser, request, page, width, scheme):
        found = request.getfixturevalue(page)
        path = found[0] if page == "windmill_page" else found
        tab, messages, requests = open_page(browser, path, width, scheme)
        assert messages == []
        assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        for element, is_light in (("body", scheme == "light"), ("svg text", scheme == "dark")):
            name = "color" if element == "svg text" else "backgroundColor"
            color = tab.evaluate(f"getComputedStyle(document.querySelector('{element}')).{name}")
            assert (np.mean([int(level) for level in re.findall(r"\d+", color)]) > 150) == is_light

    def test_slider_and_button_move_the_frames(self, browser, windmill_page):
        tab, messages, _ = open_page(browser, windmill_page[0], 1200, "light")
        output, panels = tab.locator("output"), tab.locator(".frame")
        assert output.inner_text().startswith("round 1: ")
        before = [panel.screenshot() for panel in panels.all()]
        tab.locator("input[type=range]").focus()
        tab.keyboard.press("End")
        assert output.inner_text().endswith(": 12 frequencies")
        after = [panel.screenshot() for panel in panels.all()]
        assert len(before) == 3
        assert all(old != new for old, new in zip(before, after, strict=True))
        tab.keyboard.press("Home")
        assert [panel.screenshot() for panel in panels.all()] == before
        button, slider = tab.locator("button"), tab.locator("input")
        first = output.inner_text()
        button.click()
        assert button.inner_text() == "pause"
        deadline = time.monotonic() + 20
        while int(slider.input_value()) < 1 and time.monotonic() < deadline:
            tab.wait_for_timeout(50)  # the page's security policy forbids wait_for_function
        button.click()
        assert button.inner_text() == "play"
        assert output.inner_text() != first
        assert messages == []
