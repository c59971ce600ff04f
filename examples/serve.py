"""A model behind HTTP: rows in, predictions out.

    python examples/serve.py [model.safetensors] [--host 127.0.0.1] [--port 8000]
    curl 127.0.0.1:8000/predict -d '{"rows": [[0.3, -0.5], [0.1, 0.9]]}'

The file is one that ``model.save`` wrote; without one, the windmill is learned and served. A model
with column names takes rows by name too, ``{"rows": [{"width": 0.3, "height": -0.5}]}``. GET /model
says what is served, GET /health that it is, and /docs has all of it to try. It asks nobody who they
are, so leave the host as it is unless something in front of it does.
"""

import argparse
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

# Of one request. It is held in memory, and others wait for it.
MOST_ROWS, MOST_BYTES = 10_000, 2**24


def application(model):
    """The web application of a fitted classifier or regressor."""
    if not hasattr(model, "predict"):
        raise ValueError(f"{type(model).__name__} predicts nothing: give a classifier or regressor")
    names = model.feature_names_in_.tolist() if hasattr(model, "feature_names_in_") else None
    description = {
        "model": type(model).__name__,
        "n_features": model.n_features_in_,
        "feature_names": names,
        "classes": model.classes_.tolist() if is_classifier(model) else None,
        "version": notsorandom.__version__,
    }
    # All threads read it and none writes: a copy, so that no fit reaches it, and without names,
    # which arrays don't have; they are checked before.
    shared = copy.copy(model)
    vars(shared).pop("feature_names_in_", None)
    zeros = [0] * model.n_features_in_ if names is None else dict.fromkeys(names, 0)
    for_docs = {"requestBody": {"content": {"application/json": {"example": {"rows": [zeros]}}}}}
    app = FastAPI(title="notsorandom", version=notsorandom.__version__, lifespan=a_thread_a_core)

    @app.get("/")
    @app.get("/model")
    async def describe() -> dict:
        """Say what is served."""
        return description

    @app.get("/health")
    async def health() -> dict:
        """Answer, however many predictions wait for a thread."""
        return {"status": "ok"}

    @app.post("/predict", openapi_extra=for_docs)
    def predict(body: Annotated[bytearray, Depends(body_of)]) -> JSONResponse:
        """Predict a target for each row; of classes, give the decision values as well."""
        try:
            X = array_of(rows_of(body), model.n_features_in_, names)
            with np.errstate(over="ignore", invalid="ignore"):  # an error below, not in the log
                answer = {"predictions": shared.predict(X)}
                if is_classifier(shared):
                    answer["decisions"] = shared.decision_function(X)
            if not np.isfinite(list(answer.values())[-1]).all():  # classes may be words
                raise ValueError("Some rows are too large to compute with: check their units.")
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        # Written in this thread. A dict would be written in the one that listens.
        return JSONResponse({name: values.tolist() for name, values in answer.items()})

    return app


@asynccontextmanager
async def a_thread_a_core(app):
    """Predict in no more threads than there are cores: more would only take turns."""
    current_default_thread_limiter().total_tokens = joblib.cpu_count()
    yield


async def body_of(request: Request) -> bytearray:
    """The body of a request. One that is too large is read to its end, but not kept."""
    body, size = bytearray(), 0
    try:
        async for part in request.stream():
            size += len(part)
            if size <= MOST_BYTES:
                body += part
    except ClientDisconnect as error:  # no fault of this side, and nobody reads the answer
        raise HTTPException(400, "The body ended too soon.") from error
    if size > MOST_BYTES:  # said only now: who is cut off while sending doesn't listen
        raise HTTPException(413, f"The body has {size:,} bytes, but {MOST_BYTES:,} are allowed.")
    return body


def rows_of(body):
    """The rows that a body lists."""
    try:
        content = json.loads(body, parse_int=float)  # an integer may have any number of digits
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The body is not JSON: {error}.") from error
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise ValueError('The body has no list of rows: send {"rows": [[...], ...]}.')
    if not 0 < len(rows) <= MOST_ROWS:
        raise ValueError(f"There are {len(rows):,} rows, but 1 to {MOST_ROWS:,} are allowed.")
    return rows


def array_of(rows, n_features, names):
    """The rows as an array, with the columns in the order of the fit."""
    ordered = []
    for place, row in enumerate(rows):
        if isinstance(row, dict) and names is not None:
            if unknown := set(row) - set(names):
                raise ValueError(f"Row {place} has unknown columns: {shortened(sorted(unknown))}.")
            if missing := set(names) - set(row):
                raise ValueError(f"Row {place} lacks columns: {shortened(sorted(missing))}.")
            row = [row[name] for name in names]
        if not isinstance(row, list) or len(row) != n_features:
            got = f"a list of {len(row)}" if isinstance(row, list) else shortened(row)
            allowed = f"a list of {n_features} numbers" + (" or an object" if names else "")
            raise ValueError(f"Row {place} is {got}, but the model takes {allowed}.")
        for value in row:
            if type(value) is not float or not math.isfinite(value):
                raise ValueError(f"Row {place} has {shortened(value)}, not a finite number.")
        ordered.append(row)
    return np.array(ordered)


def main():
    """Serve a model until interrupted."""
    parser = argparse.ArgumentParser(description="Serve the predictions of a model over HTTP.")
    parser.add_argument("model", nargs="?", help="file of a model (default: learn the windmill)")
    parser.add_argument("--host", default="127.0.0.1", help="address (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="default: %(default)s")
    options = parser.parse_args()
    try:
        if options.model is None:
            X, y = make_windmill(1000, random_state=0)
            model = notsorandom.FourierClassifier(50, random_state=0).fit(X, y)
        else:
            model = notsorandom.load(options.model)
        app = application(model)
    except (OSError, ValueError) as error:  # the message says it all
        sys.exit(f"serve.py: {error}")
    # Once, for all threads. There is one a core, and BLAS would start as many again for each.
    with threadpool_limits(1):
        uvicorn.run(app, host=options.host, port=options.port)


if __name__ == "__main__":
    main()
