"""The example server: its answers are the model's predictions."""

import importlib.util
import json
import re
import runpy
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from notsorandom import (
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    __version__,
    save,
    tabular_pipeline,
)
from notsorandom.datasets import make_windmill

fastapi, uvicorn, httpx = (
    pytest.importorskip(name, reason=f"needs {name}: pip install 'notsorandom[all]'")
    for name in ("fastapi", "uvicorn", "httpx")
)
pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "serve.py"
QUICK = {"smoothing": 0.06, "random_state": 0}
COLUMNS = ["width", "height", "depth"]
SECONDS = 60  # timeout, long enough for a busy machine
CLIENTS, REQUESTS = 8, 50


@pytest.fixture(scope="module")
def serve():
    spec = importlib.util.spec_from_file_location("serve", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(np.random.default_rng(0).normal(size=(150, 3)), columns=COLUMNS)


@pytest.fixture(scope="module")
def model(frame):
    """A classifier with three string classes and feature names."""
    y = np.array(["low", "middle", "high"])[np.digitize(frame["width"], [-0.5, 0.5])]
    return FourierClassifier(20, loss="logistic", **QUICK).fit(frame, y)


@pytest.fixture(scope="module")
def client(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve")
    with start_process(folder, save(model, folder / "model.skops")) as client:
        yield client


@contextmanager
def start_process(folder, *arguments):
    """Return a client of a server in another process, which ends with the context."""
    # Port 0 lets the operating system choose a free one, which the server logs.
    command, log = [sys.executable, EXAMPLE, *arguments, "--port", "0"], folder / "log.txt"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)

    def find_url():
        assert process.poll() is None, log.read_text()
        return re.search(r"running on (http://[\d.]+:\d+)", log.read_text())

    try:
        wait_for(find_url)
        with httpx.Client(base_url=find_url()[1], timeout=SECONDS, trust_env=False) as client:
            yield client
    finally:
        process.terminate()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    text = log.read_text()
    assert "Traceback" not in text, text
    assert "Warning" not in text, text


@contextmanager
def start_thread(app):
    """Return a client of a server in this process, with one BLAS thread as in its own."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    with socket.socket() as listening, threadpool_limits(1):
        listening.bind(("127.0.0.1", 0))
        url = "http://{}:{}".format(*listening.getsockname())
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            wait_for(lambda: server.started)
            with httpx.Client(base_url=url, timeout=SECONDS, trust_env=False) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(SECONDS)


def wait_for(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.05)


def request_predictions(client, rows):
    """Return the answer to a request that must succeed."""
    response = client.post("/predict", json={"rows": rows})
    assert response.status_code == 200, response.text
    return response.json()


def expected(model, X):
    """Return the model's own answer, with one BLAS thread, as the server has."""
    X = pd.DataFrame(X, columns=COLUMNS) if hasattr(model, "feature_names_in_") else X
    with threadpool_limits(1):
        answer = {"predictions": model.predict(X).tolist()}
        if is_classifier(model):
            answer["decisions"] = model.decision_function(X).tolist()
        if hasattr(model, "predict_proba"):
            answer["probabilities"] = model.predict_proba(X).tolist()
    return answer


def test_many_clients_get_the_predictions(client, model):
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 200, size=(CLIENTS, REQUESTS))
    batches = [[rng.normal(size=(n, 3)) for n in row] for row in sizes]

    def send_all(batches):
        with httpx.Client(base_url=client.base_url, timeout=SECONDS, trust_env=False) as own:
            return [request_predictions(own, X.tolist()) for X in batches]

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(send_all, batches))
    for got, sent in zip(answers, batches, strict=True):
        assert got == [expected(model, X) for X in sent]


def test_columns_are_matched_by_name(client, serve, model, frame, monkeypatch):
    X = frame.to_numpy()[:20]
    shuffled = frame[COLUMNS[::-1]][:20].to_dict("records")
    assert request_predictions(client, shuffled) == expected(model, X)
    assert request_predictions(client, [X[0].tolist(), *shuffled[1:]]) == expected(model, X)
    monkeypatch.setattr(serve, "pandas", None)  # it is not needed for that
    with start_thread(serve.create_app(model)) as own:
        assert request_predictions(own, shuffled) == expected(model, X)


@pytest.mark.parametrize("path", ["/", "/model"])
def test_description(client, path):
    assert client.get(path).json() == {
        "model": "FourierClassifier",
        "n_features": 3,
        "feature_names": COLUMNS,
        "classes": ["high", "low", "middle"],
        "version": __version__,
    }


def body(*rows):
    return json.dumps({"rows": rows}).encode()


INVALID = {
    "too few columns": (body([1, 2, 3], [1, 2]), "Row 1 is a list of 2, but", "3 numbers"),
    "missing name": (body({"width": 1, "depth": 2}), "Row 0 lacks columns: ['height']."),
    "unknown name": (body(dict.fromkeys([*COLUMNS, "w"], 1)), "has unknown columns: ['w']."),
    "surrogate name": (b'{"rows": [{"\\ud800": 1}]}', r"unknown columns: ['\ud800']."),
    "long name": (body({"x" * 10**6: 1}), "unknown columns", "xxx...xxx"),
    "nan": (body([1, 2, float("nan")]), "Row 0 has nan, not a finite number."),
    "beyond float": (b'{"rows": [[1, 2, 1e999]]}', "Row 0 has inf, not"),
    "beyond integers": (b'{"rows": [[1, 2, ' + b"9" * 5000 + b"]]}", "Row 0 has inf, not"),
    "digits as text": (body([1, "2", 3]), "Row 0 has '2', not"),
    "truth": (body([1, True, 3]), "Row 0 has True, not"),
    "nested": (body([[1], [2], [3]]), "Row 0 has [1.0], not"),
    "too large to compute with": (body([1e308, 1e308, 1e308]), "too far", "Check its units"),
    "row is a number": (body(1), "Row 0 is 1.0, but", "a list of 3 numbers or an object"),
    "no rows": (body(), "There are 0 rows, but 1 to 10,000 are allowed."),
    "too many rows": (body(*[[1, 2, 3]] * 10_001), "There are 10,001 rows, but 1 to 10,000"),
    "rows not a list": (b'{"rows": 3}', "no list of rows", '{"rows": [[...], ...]}'),
    "coverage of one": (b'{"rows": [[1, 2, 3]], "coverage": 1}', "coverage is 1.0, not a number"),
    "coverage in text": (b'{"rows": [[1, 2, 3]], "coverage": "0.9"}', "is '0.9', not a number"),
    "long coverage": (json.dumps({"rows": [[1, 2, 3]], "coverage": [0.9] * 999}).encode(), "[0.9,"),
    "nothing": (b"", "The body is not JSON"),
    "not text": (b"\xff\xfe\xff", "The body is not JSON"),
    "too deep": (b"[" * 10**6, "The body is not JSON"),
}


def assert_invalid(client, content, *parts):
    response = client.post("/predict", content=content)
    assert response.status_code == 422
    message = response.json()["detail"]
    assert all(part in message for part in parts), message
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 200


def test_the_server_survives_bad_requests(client, model):
    for content, *parts in INVALID.values():
        assert_invalid(client, content, *parts)
    address = (client.base_url.host, client.base_url.port)
    for sent in (
        b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
        b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{",
        b"\x00" * 100,
    ):
        with socket.create_connection(address, timeout=SECONDS) as connection:
            connection.sendall(sent)
    X = np.random.default_rng(3).normal(size=(10, 3))
    assert request_predictions(client, X.tolist()) == expected(model, X)


def test_requests_at_the_limits(client, model, serve):
    X = np.random.default_rng(2).normal(size=(serve.MAX_ROWS, 3))
    assert request_predictions(client, X.tolist()) == expected(model, X)
    content = body([1, 2, 3]).ljust(serve.MAX_BYTES)
    assert client.post("/predict", content=content).status_code == 200
    response = client.post("/predict", content=content + b" ")
    assert response.status_code == 413
    assert response.json()["detail"] == (
        "The body has 16,777,217 bytes, but 16,777,216 are allowed."
    )
    parts = (b" " * 2**20 for _ in range(serve.MAX_BYTES // 2**20 + 1))  # of unknown length
    assert client.post("/predict", content=parts).status_code == 413


def send_half(client, size):
    """Return a connection that has sent the first bytes of a body, until it was refused."""
    connection = socket.create_connection((client.base_url.host, client.base_url.port), SECONDS)
    header = f"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: {size + 1}\r\n\r\n"
    with suppress(ConnectionError):  # refused
        connection.sendall(header.encode() + b" " * size)
    return connection


def test_busy_servers_and_slow_clients(serve, model, frame, monkeypatch):
    """The bodies of all requests take limited memory, and limited time to be sent."""
    monkeypatch.setattr(serve, "MAX_SECONDS", 1)
    monkeypatch.setattr(serve, "MAX_BYTES_OF_ALL", 2**20)
    app, X = serve.create_app(model), frame.to_numpy()[:5]
    with start_thread(app) as client:
        content = body(*X.tolist()).ljust(2**20 + 1)
        response = client.post("/predict", content=content)
        assert response.status_code == 503
        assert response.json()["detail"] == "The server is busy: try again later."
        halves = [send_half(client, 1000) for _ in range(40)]
        assert client.get("/health").json() == {"status": "ok"}
        for connection in halves:
            answer = b""
            while part := connection.recv(4096):  # until the server closes the connection
                answer += part
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b"The body was not sent within 1 seconds." in answer
            connection.close()
        assert request_predictions(client, X.tolist()) == expected(model, X)
    assert app.state.n_bytes == 0


def test_intervals_and_sets(client, serve, model, frame):
    X = frame.to_numpy()[:20]
    request = {"rows": X.tolist(), "coverage": 0.8}
    answer = client.post("/predict", json=request).json()
    with threadpool_limits(1):
        sets = model.predict_set(frame[:20], 0.8)
    assert answer.pop("sets") == [model.classes_[row].tolist() for row in sets]
    assert answer == expected(model, X)
    y = frame.to_numpy()[:, :2] + np.random.default_rng(1).normal(size=(150, 2))
    regressors = [
        FourierRegressor(10, **QUICK).fit(frame, y[:, 0]),
        make_pipeline(StandardScaler(), FourierRegressor(10, **QUICK)).fit(frame, y),
    ]
    for regressor in regressors:
        with start_thread(serve.create_app(regressor)) as own:
            answer = own.post("/predict", json=request).json()
        with threadpool_limits(1):
            last, samples = regressor, frame[:20]
            if regressor is not regressors[0]:
                last, samples = regressor[-1], regressor[0].transform(samples)
            assert answer["intervals"] == last.predict_interval(samples, 0.8).tolist()
    without = FourierRegressor(10, calibration_size=0, **QUICK).fit(frame, y)
    hinge = FourierClassifier(10, loss="hinge", **QUICK).fit(frame, y[:, 0] > 0)
    for other, message in ((without, "no samples were held out"), (hinge, "leave coverage out")):
        with start_thread(serve.create_app(other)) as own:
            response = own.post("/predict", json=request)
            assert response.status_code == 422
            assert message in response.json()["detail"]
            assert request_predictions(own, X.tolist()) == expected(other, X)


def test_without_a_model_file(tmp_path):
    X, y = make_windmill(1000, random_state=1)
    with start_process(tmp_path) as client:
        assert client.get("/model").json()["classes"] == [0, 1]
        assert np.mean(request_predictions(client, X.tolist())["predictions"] == y) > 0.9


def test_pipelines_take_tables(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 200).astype(float),
            "city": rng.choice(["Ulm", "Köln", "Bonn"], 200).astype(object),
            "member": rng.random(200) < 0.5,
            "id": [f"customer {k}" for k in range(200)],  # is left out
        }
    )
    table.loc[3, "city"], table.loc[4, "age"] = None, np.nan
    y = np.where((table["age"] > 50) & table["member"], "yes", "no")
    pipeline = tabular_pipeline("classifier", n_components=10, **QUICK).fit(table, y)
    given = [
        {"age": 61, "city": "Ulm", "member": True},
        {"member": False, "city": None, "age": None},
        [30, "elsewhere", True, "customer 7"],
    ]
    frame = pd.DataFrame(
        {"age": [61, np.nan, 30], "city": ["Ulm", None, "elsewhere"], "member": [True, False, True]}
    ).assign(id=None)
    with start_process(tmp_path, save(pipeline, tmp_path / "model.skops")) as client:
        answer = request_predictions(client, given)
        assert client.get("/model").json()["feature_names"] == [*table.columns]
        for changed, message in (
            ({"age": "old"}, "'old'"),
            ({"city": ["Ulm"]}, "Row 0 has ['Ulm'], not a finite number, text, true, false or"),
            ({"age": float("inf")}, "inf"),
            ({"age": "\ud800"}, "surrogates not allowed"),
        ):
            content = json.dumps({"rows": [given[0] | changed]}).encode()
            response = client.post("/predict", content=content)
            assert response.status_code == 422
            assert message in response.json()["detail"]
    assert answer["predictions"] == pipeline.predict(frame).tolist()
    np.testing.assert_allclose(answer["probabilities"], pipeline.predict_proba(frame))


MODELS = {
    "number": (FourierRegressor(10, **QUICK), 0),
    "column": (FourierRegressor(10, **QUICK), [0]),
    "columns": (FourierRegressor(10, **QUICK), [0, 1]),
    "no probabilities": (FourierClassifier(10, loss="hinge", **QUICK), None),
    "pipeline": (make_pipeline(StandardScaler(), FourierRegressor(10, **QUICK)), 0),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_without_names(name, serve, frame):
    model, columns = MODELS[name]
    X = frame.to_numpy()
    y = X[:, 0] > 0 if columns is None else np.sin(X)[:, columns]
    before = expected(model.fit(X, y), X)
    with start_thread(serve.create_app(model)) as client:
        model.fit(2 * X + 1, y[::-1])  # changes nothing
        assert request_predictions(client, X.tolist()) == before
        assert_invalid(client, body(dict.fromkeys(COLUMNS, 1)), "takes a list of 3 numbers.")


def test_errors_of_the_model_are_passed_on(serve, frame):
    X = frame.to_numpy() / np.linalg.norm(frame, axis=1, keepdims=True)
    model = FourierClassifier(10, space="sphere", **QUICK).fit(X, X[:, 0] > 0)
    with start_thread(serve.create_app(model)) as client:
        assert client.post("/predict", json={"rows": X.tolist()}).status_code == 200
        assert_invalid(client, body([1, 2, 3]), "samples on the sphere have norm 1")


class BlockingModel(BaseEstimator):
    """Waits in `predict` until released, and records the calls."""

    n_features_in_ = 1

    def __init__(self):
        self.release, self.calls = threading.Event(), []

    def __deepcopy__(self, memo):
        return self

    def predict(self, X):
        self.calls.append(threading.get_ident())
        assert self.release.wait(SECONDS)
        return X[:, 0]


def test_the_server_answers_while_all_threads_predict(serve):
    model, n_cores = BlockingModel(), joblib.cpu_count()
    n_requests = n_cores + 3
    with start_thread(serve.create_app(model)) as client, ThreadPoolExecutor(n_requests) as pool:
        try:
            futures = [pool.submit(request_predictions, client, [[k]]) for k in range(n_requests)]
            wait_for(lambda: len(model.calls) >= n_cores)
            assert client.get("/health").json() == {"status": "ok"}
            assert len(model.calls) == n_cores  # one thread per core
        finally:
            model.release.set()
        answers = [future.result(SECONDS)["predictions"] for future in futures]
    assert answers == [[k] for k in range(n_requests)]


def test_blas_uses_one_thread(serve, monkeypatch):
    calls = {}

    def run(app, **options):
        calls.update(options, threads={library["num_threads"] for library in threadpool_info()})

    monkeypatch.setattr(serve.uvicorn, "run", run)
    monkeypatch.setattr(sys, "argv", ["serve.py"])
    with threadpool_limits(2):
        serve.main()
    limit = {"limit_concurrency": serve.MAX_CONNECTIONS}
    assert calls == {"host": "127.0.0.1", "port": 8000, "threads": {1}} | limit


def test_a_server_that_cannot_start(tmp_path, serve, monkeypatch, frame):
    damaged, missing = tmp_path / "damaged.skops", tmp_path / "missing.skops"
    features = FourierFeatures(10, **QUICK).fit(frame, frame["width"] > 0)
    path = save(features, tmp_path / "features.skops")
    damaged.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setattr(serve.uvicorn, "run", lambda app, **options: None)
    for bad, message in (
        (damaged, rf"^serve.py: {damaged} can't be read: [^\n]*$"),
        (missing, "No such file"),
        (path, "FourierFeatures can't predict"),
    ):
        monkeypatch.setattr(sys, "argv", ["serve.py", str(bad)])
        with pytest.raises(SystemExit, match=message):
            serve.main()
    for package in ("fastapi", "uvicorn"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(SystemExit, match=rf"{package}.*pip install 'notsorandom\[serve\]'"):
                runpy.run_path(str(EXAMPLE))
