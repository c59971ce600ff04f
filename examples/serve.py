"""
Serve the predictions of a model over HTTP
==========================================

::

    python examples/serve.py [model.skops] [--host 127.0.0.1] [--port 8000]
    curl 127.0.0.1:8000/predict -d '{"rows": [[0.3, -0.5], [0.1, 0.9]]}'

The model file is written by ``notsorandom.save`` or by the command line; without one, a model of
the windmill data is fitted. A model with column names also takes rows as objects,
``{"rows": [{"width": 0.3, "height": -0.5}]}``, and a pipeline also text, booleans and nulls in
them. GET /model describes the model, GET /health is for monitoring, and /docs is an interactive
description of the API. With ``"coverage": 0.9`` beside the rows, the answer has intervals that
cover 90 % of the targets, or sets of classes that have the right one for 90 % of the rows. The
memory of all requests is limited, and the time to send one. There is no authentication: put a proxy
with authentication in front of it before you change the host.
"""

import argparse
import asyncio
import copy
import json
import math
import sys
from contextlib import asynccontextmanager
from reprlib import repr as shortened
from typing import Annotated

import joblib
import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

import notsorandom
from notsorandom.datasets import make_windmill

try:
    import uvicorn
    from anyio.to_thread import current_default_thread_limiter
    from fastapi import Depends, FastAPI, HTTPException, Request
    from fastapi.responses import JSONResponse
    from starlette.requests import ClientDisconnect
except ImportError as error:
    sys.exit(f"serve.py: {error}: install what it needs with pip install 'notsorandom[serve]'")

try:
    import pandas
except ImportError:  # only pipelines for tables need it
    pandas = None

# Limits of one request, and of the bodies of all requests, which are held in memory.
MAX_ROWS, MAX_BYTES, MAX_SECONDS = 10_000, 2**24, 30
MAX_BYTES_OF_ALL, MAX_CONNECTIONS = 2**27, 500


def create_app(model):
    """Return the web application for a fitted classifier or regressor, or a pipeline of one."""
    last = model[-1] if isinstance(model, Pipeline) else model
    if not hasattr(last, "predict"):
        raise ValueError(f"{type(last).__name__} can't predict: give a classifier or a regressor.")
    names = model.feature_names_in_.tolist() if hasattr(model, "feature_names_in_") else None
    description = {
        "model": type(last).__name__,
        "n_features": model.n_features_in_,
        "feature_names": names,
        "classes": model.classes_.tolist() if is_classifier(model) else None,
        "version": notsorandom.__version__,
    }
    # A copy, so that a later fit of the model changes nothing while threads read it.
    shared = copy.deepcopy(model)
    if pandas is None:  # arrays have no names; the names in requests are checked before
        vars(shared).pop("feature_names_in_", None)
    zeros = [0] * model.n_features_in_ if names is None else dict.fromkeys(names, 0)
    for_docs = {"requestBody": {"content": {"application/json": {"example": {"rows": [zeros]}}}}}
    app = FastAPI(title="notsorandom", version=notsorandom.__version__, lifespan=limit_threads)
    app.state.n_bytes = 0  # of all bodies

    @app.get("/")
    @app.get("/model")
    async def describe() -> dict:
        """Describe the model."""
        return description

    @app.get("/health")
    async def health() -> dict:
        """Answer even while all threads are busy with predictions."""
        return {"status": "ok"}

    @app.post("/predict", openapi_extra=for_docs)
    def predict(body: Annotated[bytearray, Depends(read_body)]) -> JSONResponse:
        """Return a prediction per row, and decision values and probabilities of a classifier."""
        try:
            rows, coverage = parse_body(body)
            X = as_table(rows, shared, names)
            answer = {"predictions": shared.predict(X)}
            if is_classifier(shared):
                answer["decisions"] = shared.decision_function(X)
            if hasattr(shared, "predict_proba"):
                answer["probabilities"] = shared.predict_proba(X)
            answer = {name: values.tolist() for name, values in answer.items()}
            if coverage is not None:
                answer |= compute_coverage(shared, X, coverage)
        except (TypeError, ValueError) as error:
            message = str(error).encode(errors="backslashreplace").decode()
            raise HTTPException(422, message) from error
        # Serialised in this thread: FastAPI would serialise a dict in the event loop.
        return JSONResponse(answer)

    return app


@asynccontextmanager
async def limit_threads(app):
    """Predict in one thread per core."""
    current_default_thread_limiter().total_tokens = joblib.cpu_count()
    yield


async def read_body(request: Request):
    """Yield the body of a request; one that is too large is read to its end, but not kept."""
    body, size, state = bytearray(), 0, request.app.state
    close = {"Connection": "close"}  # the rest of the body is not read
    try:
        async with asyncio.timeout(MAX_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > MAX_BYTES:
                    continue
                if state.n_bytes + len(part) > MAX_BYTES_OF_ALL:
                    raise HTTPException(503, "The server is busy: try again later.", close)
                state.n_bytes += len(part)
                body += part
        if size > MAX_BYTES:  # clients read no answer before they have sent everything
            raise HTTPException(413, f"The body has {size:,} bytes, but {MAX_BYTES:,} are allowed.")
        yield body
    except TimeoutError as error:
        message = f"The body was not sent within {MAX_SECONDS} seconds."
        raise HTTPException(408, message, close) from error
    except ClientDisconnect as error:  # not an error of the server
        raise HTTPException(400, "The body ended too soon.") from error
    finally:  # after the prediction
        state.n_bytes -= len(body)


def compute_coverage(model, X, coverage):
    """Return intervals of a regressor, or sets of classes, by name."""
    last = model
    if isinstance(model, Pipeline):
        last, X = model[-1], model[:-1].transform(X)
    if hasattr(last, "predict_interval"):
        return {"intervals": last.predict_interval(X, coverage).tolist()}
    if hasattr(last, "predict_set"):
        return {"sets": [last.classes_[row].tolist() for row in last.predict_set(X, coverage)]}
    name = type(last).__name__
    raise ValueError(f"This {name} has neither intervals nor sets of classes: leave coverage out.")


def parse_body(body):
    """Return the rows in a body, and the coverage that it asks for, or None."""
    try:
        content = json.loads(body, parse_int=float)  # an integer may have any number of digits
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The body is not JSON: {error}.") from error
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise ValueError('The body has no list of rows: send {"rows": [[...], ...]}.')
    if not 0 < len(rows) <= MAX_ROWS:
        raise ValueError(f"There are {len(rows):,} rows, but 1 to {MAX_ROWS:,} are allowed.")
    coverage = content.get("coverage")
    if coverage is not None and not (type(coverage) is float and 0 < coverage < 1):
        raise ValueError(f"The coverage is {shortened(coverage)}, not a number between 0 and 1.")
    return rows, coverage


def as_table(rows, model, names):
    """Return the rows as a data frame or an array, with the columns in the order of the fit."""
    is_pipeline, n_features, ordered = isinstance(model, Pipeline), model.n_features_in_, []
    unused = getattr(model[0], "left_out_", {}) if is_pipeline else {}  # columns without use
    for index, row in enumerate(rows):
        if isinstance(row, dict) and names is not None:
            if unknown := set(row) - set(names):
                raise ValueError(f"Row {index} has unknown columns: {shortened(sorted(unknown))}.")
            if missing := set(names) - set(row) - set(unused):
                raise ValueError(f"Row {index} lacks columns: {shortened(sorted(missing))}.")
            row = [row.get(name) for name in names]
        if not isinstance(row, list) or len(row) != n_features:
            got = f"a list of {len(row)}" if isinstance(row, list) else shortened(row)
            allowed = f"a list of {n_features} numbers" + (" or an object" if names else "")
            raise ValueError(f"Row {index} is {got}, but the model takes {allowed}.")
        for value in row:
            is_number = type(value) is float and math.isfinite(value)
            if not is_number and not (is_pipeline and isinstance(value, str | bool | None)):
                allowed = "a finite number" + (", text, true, false or null" if is_pipeline else "")
                raise ValueError(f"Row {index} has {shortened(value)}, not {allowed}.")
        ordered.append(row)
    if names is not None and pandas is not None:
        return pandas.DataFrame(ordered, columns=names)
    return np.array(ordered, dtype=object if is_pipeline else float)


def main():
    """Serve a model until interrupted."""
    parser = argparse.ArgumentParser(description="Serve the predictions of a model over HTTP.")
    parser.add_argument("model", nargs="?", help="model file (default: fit the windmill data)")
    parser.add_argument("--host", default="127.0.0.1", help="address (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="default: %(default)s")
    options = parser.parse_args()
    try:
        if options.model is None:
            X, y = make_windmill(1000, random_state=0)
            model = notsorandom.FourierClassifier(50, random_state=0).fit(X, y)
        else:
            model = notsorandom.load(options.model)
        app = create_app(model)
    except (OSError, ValueError) as error:
        sys.exit(f"serve.py: {error}")
    # There is one thread per core already.
    with threadpool_limits(1):
        uvicorn.run(app, host=options.host, port=options.port, limit_concurrency=MAX_CONNECTIONS)


if __name__ == "__main__":
    main()
