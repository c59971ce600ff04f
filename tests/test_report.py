import json
import re
import shutil
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from notsorandom import FourierClassifier, FourierFeatures, Sphere, cli, learning
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.display.report import write_page
from notsorandom.display.report.page import page, plain, shades
from notsorandom.experiments import figure1
from notsorandom.experiments.pairs import pair_config
from notsorandom.experiments.peers import BEST, SMALLEST
from notsorandom.experiments.records import Records


def sections_of(path):
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="sections">(.*?)</script>', text, re.S)
    return json.loads(found.group(1))


@pytest.fixture(scope="module")
def windmill_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "windmill.html"
    X, y = make_windmill(300, random_state=0)
    model = FourierClassifier(40, random_state=0).fit(X, y)
    X_test, y_test = make_windmill(400, random_state=1)
    assert model.report(path, X, y, X_test=X_test, y_test=y_test, title="The windmill") == path
    return path, model, (X_test, y_test)


@pytest.fixture(scope="module")
def digits_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "digits.html"
    X, y = load_digits(return_X_y=True)
    model = FourierFeatures(20, smoothing=0.06, random_state=0).fit(X[:300], y[:300])
    return model.report(path, X[:300], y[:300], image_shape=(8, 8))


@pytest.fixture(scope="module")
def run_page(tmp_path_factory):
    """A page of a run with a record of every kind."""
    folder = tmp_path_factory.mktemp("run")
    records = Records(folder)
    for method, accuracy in (("rbf", 0.7), ("ours", 0.9)):
        for size in (100, 500):
            for seed in range(2):
                config = pair_config("auto-truck", method, size, seed)
                outcome = {"test_accuracy": accuracy + seed / 100 + size / 1e4}
                records.append(config, outcome, 1.0)
    toy = {"test_accuracy": 0.9, "train_accuracy": 0.95, "fit_seconds": 1.0, "size": 7}
    for kind in ("windmill", "checkerboard"):
        records.append({"kind": kind, "method": "a model", "seed": 0}, toy, 1.0)
    peer = {
        "test_accuracy": 0.8,
        "fit_seconds": 1.0,
        "predict_microseconds": 2.0,
        "bytes": 1000,
        "chosen": 100,
    }
    for size in (SMALLEST, BEST):
        config = {"kind": "peer", "task": "mnist-4-9", "method": "svc", "size": size, "seed": 0}
        records.append(config, peer, 1.0)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("N_TRAIN", 150), ("N_TEST", 300), ("LAST_ROUND", 12)):
            patch.setattr(figure1, name, value)
        patch.setattr(learning, "TRIAL_SIZE", 2)  # any smoothing will do
        for config, perform in zip(
            figure1.figure1_configs(),
            (figure1.perform_evolution, figure1.perform_globe),
            strict=True,
        ):
            records.append(config, perform(config), 1.0)
        path = folder / "report.html"
        assert cli.main(["report", str(folder), "--output", str(path)]) == 0
    return path


class TestPage:
    def test_names_can_say_anything(self, tmp_path):
        name = "</script><script>alert('1 & $2')</script>"
        text = page(name, name, [{"kind": "facts", "title": name, "facts": [[name, name]]}])
        assert "<script>alert" not in text
        path = write_page(tmp_path / "page.html", name, "", [{"title": name}])
        assert sections_of(path) == [{"title": name}]

    def test_it_is_one_file(self, windmill_page):
        text = windmill_page[0].read_text(encoding="utf-8")
        assert not re.search(r'(src|href)="(?!data:)', text)
        assert "default-src 'none'" in text
        for address in re.findall(r"https?://[^\s\"']+", text):
            assert address == "http://www.w3.org/2000/svg"  # a name, not a request

    def test_a_failed_page_leaves_the_old_one(self, tmp_path):
        path = tmp_path / "page.html"
        path.write_text("old")
        with pytest.raises(TypeError, match="not JSON serializable"):
            write_page(path, "new", "", [{"bad": object()}])
        for bad in (tmp_path / "page.png", tmp_path, str(tmp_path / "page")):
            with pytest.raises(ValueError, match=r"name a file that ends in \.html"):
                write_page(bad, "new", "", [])
        with pytest.raises(TypeError, match="path=None is not allowed"):
            write_page(None, "new", "", [])
        with pytest.raises(FileNotFoundError, match="doesn't exist: make it first"):
            write_page(tmp_path / "no" / "page.html", "new", "", [])
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_what_is_not_finite_is_null(self):
        value = {"a": np.array([1.0, np.nan]), "b": (np.float32(0.5), np.inf, 3, "x", None, True)}
        assert plain(value) == {"a": [1.0, None], "b": [0.5, None, 3, "x", None, True]}

    def test_shades(self):
        import base64

        levels = base64.b64decode(shades(np.array([-2.0, -1, 0, 1, 5]), -1, 1))
        assert list(levels) == [0, 0, 128, 255, 255]


class TestModel:
    def test_sections(self, windmill_page):
        path, model, (X_test, y_test) = windmill_page
        sections = {section["title"]: section for section in sections_of(path)}
        facts = dict(sections["The model"]["facts"])
        assert facts["test accuracy"] == f"{model.score(X_test, y_test):.2%}"
        assert facts["features"] == "40"
        game = sections["The game, round by round"]
        assert game["frames"][-1]["count"] == 40
        assert len(game["labels"]) == 300
        np.testing.assert_allclose(game["frequencies"], model.frequencies_, rtol=1e-4)
        history = sections["How the game went"]["charts"]
        np.testing.assert_allclose(
            history[0]["series"][0]["y"], model.history_["potential"], rtol=1e-5
        )
        assert len(history) == 4
        (spectrum,) = sections["What the kernel is made of"]["charts"]
        np.testing.assert_allclose(spectrum["series"][0]["y"], model.kernel_.weights, rtol=1e-4)
        (accuracy,) = sections["Accuracy by number of features"]["charts"]
        assert [series["name"] for series in accuracy["series"]] == ["learned", "random (RBF)"]
        counts = np.array(sections["Confusion on the test samples"]["counts"])
        assert counts.sum() == 400
        assert np.trace(counts) == round(model.score(X_test, y_test) * 400)

    def test_many_classes_of_images(self, digits_page):
        sections = {section["title"]: section for section in sections_of(digits_page)}
        assert "The game, round by round" not in sections
        images = sections["The heaviest frequencies, as images"]
        assert (images["height"], images["width"]) == (8, 8)
        assert len(images["images"]) == 20
        assert len(sections["Confusion on the training samples"]["names"]) == 10

    @pytest.mark.parametrize(
        "settings",
        [
            {"space": "sphere"},
            {"space": Sphere("zonal")},
            {"space": "sphere", "dynamics": "primal_dual", "smoothing": 0},
            {"reweight": True},
            {"phase": "paired", "loss": "squared_hinge"},
        ],
    )
    def test_every_kind_of_model_has_a_page(self, settings, tmp_path):
        X, y = make_checkerboard(80, random_state=0)
        names = np.array(["<no>", "yes"])[y]
        settings = {"smoothing": 0.06, "random_state": 0} | settings
        model = FourierClassifier(12, **settings).fit(X, names)
        model.report(str(tmp_path / "page.html"), X, names)
        titles = [section["title"] for section in sections_of(tmp_path / "page.html")]
        assert "How the game went" in titles

    def test_bad_input_writes_nothing(self, tmp_path):
        X, y = make_windmill(60, random_state=0)
        model = FourierClassifier(8, smoothing=0.06, random_state=0)
        with pytest.raises(ValueError, match="not fitted"):
            model.report(tmp_path / "page.html", X, y)
        model.fit(X, y)
        with pytest.raises(ValueError, match="Give both X_test and y_test"):
            model.report(tmp_path / "page.html", X, y, X_test=X)
        with pytest.raises(ValueError, match=r"image_shape=\(3, 3\) is not allowed"):
            model.report(tmp_path / "page.html", X, y, image_shape=(3, 3))
        with pytest.raises(FileNotFoundError, match="make it first"):
            model.report(tmp_path / "no" / "page.html", X, y)
        with pytest.raises(TypeError, match="title=5 is not allowed"):
            model.report(tmp_path / "page.html", X, y, title=5)
        for X_test, y_test in ((X[:, :1], y), (np.nan * X, y), (X, y[:9])):
            with pytest.raises(ValueError, match=r".+"):
                model.report(tmp_path / "page.html", X, y, X_test=X_test, y_test=y_test)
        with pytest.raises(ValueError, match="X has 30 samples, but the game was played on 60"):
            model.report(tmp_path / "page.html", X[:30], y[:30])
        sphere = FourierClassifier(8, space="sphere", smoothing=0.06)
        sphere.fit(*make_checkerboard(60, random_state=0))
        with pytest.raises(ValueError, match="not allowed on the sphere's harmonics"):
            sphere.report(
                tmp_path / "page.html", *make_checkerboard(60, random_state=0), image_shape=(1, 2)
            )
        assert not list(tmp_path.iterdir())

    def test_columns_with_names(self, tmp_path):
        X, y = make_windmill(60, random_state=0)
        X = pd.DataFrame(X, columns=["east", "north"])
        model = FourierClassifier(8, smoothing=0.06, random_state=0).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.report(tmp_path / "page.html", X, pd.Series(y), X_test=X, y_test=y[:, None])
        facts = dict(sections_of(tmp_path / "page.html")[0]["facts"])
        assert facts["test accuracy"] == f"{model.score(X, y):.2%}"
        with pytest.raises(ValueError, match="feature names"):
            model.report(tmp_path / "other.html", X, y, X_test=X[["north", "east"]], y_test=y)


class TestRun:
    def test_sections(self, run_page):
        sections = sections_of(run_page)
        assert [section["kind"] for section in sections] == [
            "table",
            "charts",
            "game",
            "images",
            "table",
            "table",
            "table",
        ]
        assert ["auto-truck", "ours", "**91.50** (84.80)", "**95.50** (85.90)"] in sections[0][
            "rows"
        ]
        ours = sections[1]["charts"][0]["series"][1]
        np.testing.assert_allclose(ours["y"], [91.5, 95.5])
        np.testing.assert_allclose(ours["spread"], np.std([0, 1], ddof=1), rtol=1e-5)
        assert sections[2]["frames"][-1]["count"] == 12

    def test_a_folder_without_records_is_refused(self, tmp_path, capsys):
        page = tmp_path / "page.html"
        assert cli.main(["report", str(tmp_path), "-o", str(page)]) == 1
        assert "has no records" in capsys.readouterr().err
        Records(tmp_path).append({"kind": "dream"}, {}, 0.0)
        assert cli.main(["report", str(tmp_path), "-o", str(page)]) == 1
        assert "of no kind that is known" in capsys.readouterr().err
        Records(tmp_path).path.write_text("garbage\n")
        assert cli.main(["report", str(tmp_path), "-o", str(page)]) == 1
        assert "is not a record" in capsys.readouterr().err
        assert not page.exists()
        with pytest.raises(SystemExit):
            cli.main(["report", str(tmp_path), "-o", str(tmp_path / "page.txt")])
        assert "ends in .html" in capsys.readouterr().err


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="pages are opened with playwright: pip install playwright"
    )
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("pages are opened in chromium, which is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program,
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
        )
        yield browser
        browser.close()


@pytest.fixture(params=["windmill", "digits", "run"])
def any_page(request):
    found = request.getfixturevalue(f"{request.param}_page")
    return found[0] if request.param == "windmill" else found


def open_page(browser, path, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = context.new_page()
    complaints, requests = [], []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(path.resolve().as_uri())
    return tab, complaints, requests


def pictures(tab):
    return [
        canvas.evaluate("canvas => canvas.toDataURL()") for canvas in tab.locator("canvas").all()
    ]


class TestInABrowser:
    @pytest.mark.parametrize("width", [390, 1200])
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_it_opens_quietly_and_fits(self, browser, any_page, width, scheme):
        tab, complaints, requests = open_page(browser, any_page, width, scheme)
        assert complaints == []
        assert requests == [any_page.resolve().as_uri()]
        assert tab.locator("section").count() == len(sections_of(any_page))
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        levels = [int(level) for level in re.findall(r"\d+", background)]
        assert (np.mean(levels) > 200) == (scheme == "light")
        # Nothing is empty: every chart has a line or stem, every canvas more than one colour.
        for chart in tab.locator("figure svg").all():
            assert chart.locator("polyline, circle").count() > 0
            assert "NaN" not in chart.evaluate("svg => svg.outerHTML")
        for canvas in tab.locator("canvas").all():
            assert canvas.evaluate(LEVELS) > 3
        picture = tab.screenshot(full_page=True)
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 20_000

    def test_the_slider_moves_the_pictures(self, browser, windmill_page):
        tab, complaints, _ = open_page(browser, windmill_page[0], 1200, "light")
        words = tab.locator("output")
        assert words.inner_text() == "round 1: 2 frequencies"
        before = pictures(tab)
        tab.locator("input[type=range]").focus()
        tab.keyboard.press("End")
        assert words.inner_text().endswith(": 40 frequencies")
        after = pictures(tab)
        assert len(before) == 3
        assert all(old != new for old, new in zip(before, after, strict=True))
        tab.keyboard.press("Home")
        assert pictures(tab) == before
        assert complaints == []

    def test_it_plays_and_pauses(self, browser, windmill_page):
        tab, complaints, _ = open_page(browser, windmill_page[0], 1200, "light")
        button, words, slider = map(tab.locator, ("button", "output", "input"))
        first = words.inner_text()
        button.click()
        assert button.inner_text() == "pause"
        deadline = time.monotonic() + 20
        while int(slider.input_value()) < 2 and time.monotonic() < deadline:
            tab.wait_for_timeout(50)  # no waiting for functions: the page forbids eval
        button.click()
        assert button.inner_text() == "play"
        assert words.inner_text() != first
        assert complaints == []


# How many different bytes a canvas holds.
LEVELS = """canvas => new Set(
    canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
).size"""
