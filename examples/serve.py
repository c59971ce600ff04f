"""Serve the predictions of a model over HTTP.

    python examples/serve.py [model.safetensors] [--host 127.0.0.1] [--port 8000]
    curl 127.0.0.1:8000/predict -d '{"rows": [[0.3, -0.5], [0.1, 0.9]]}'

The model file is written by ``notsorandom.save``; without one, a model of the windmill data is
fitted. A model with column names also takes rows as objects,
``{"rows": [{"width": 0.3, "height": -0.5}]}``. GET /model describes the model, GET /health is for
monitoring, and /docs is an interactive description of the API. There is no authentication: put a
proxy with authentication in front of it before you change the host.
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

# Limits of one request, which is held in memory.
MAX_ROWS, MAX_BYTES = 10_000, 2**24


def create_app(model):
    """Return the web application for a fitted classifier or regressor."""
    if not hasattr(model, "predict"):
        raise ValueError(f"{type(model).__name__} can't predict: give a classifier or a regressor.")
    names = model.feature_names_in_.tolist() if hasattr(model, "feature_names_in_") else None
    description = {
        "model": type(model).__name__,
        "n_features": model.n_features_in_,
        "feature_names": names,
        "classes": model.classes_.tolist() if is_classifier(model) else None,
        "version": notsorandom.__version__,
    }
    # A copy, so that a later fit of the model changes nothing while threads read it. Without names:
    # the arrays have none, and the names in requests are checked before.
    shared = copy.copy(model)
    vars(shared).pop("feature_names_in_", None)
    zeros = [0] * model.n_features_in_ if names is None else dict.fromkeys(names, 0)
    for_docs = {"requestBody": {"content": {"application/json": {"example": {"rows": [zeros]}}}}}
    app = FastAPI(title="notsorandom", version=notsorandom.__version__, lifespan=limit_threads)

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
            X = as_array(parse_rows(body), model.n_features_in_, names)
            answer = {"predictions": shared.predict(X)}
            if is_classifier(shared):
                answer["decisions"] = shared.decision_function(X)
            if hasattr(shared, "predict_proba"):
                answer["probabilities"] = shared.predict_proba(X)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        # Serialised in this thread: FastAPI would serialise a dict in the event loop.
        return JSONResponse({name: values.tolist() for name, values in answer.items()})

    return app


@asynccontextmanager
async def limit_threads(app):
    """Predict in one thread per core."""
    current_default_thread_limiter().total_tokens = joblib.cpu_count()
    yield


async def read_body(request: Request) -> bytearray:
    """Return the body of a request; one that is too large is read to its end, but not kept."""
    body, size = bytearray(), 0
    try:
        async for part in request.stream():
            size += len(part)
            if size <= MAX_BYTES:
                body += part
    except ClientDisconnect as error:  # not an error of the server
        raise HTTPException(400, "The body ended too soon.") from error
    if size > MAX_BYTES:  # clients read no answer before they have sent everything
        raise HTTPException(413, f"The body has {size:,} bytes, but {MAX_BYTES:,} are allowed.")
    return body


def parse_rows(body):
    """Return the rows in a body."""
    try:
        content = json.loads(body, parse_int=float)  # an integer may have any number of digits
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The body is not JSON: {error}.") from error
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise ValueError('The body has no list of rows: send {"rows": [[...], ...]}.')
    if not 0 < len(rows) <= MAX_ROWS:
        raise ValueError(f"There are {len(rows):,} rows, but 1 to {MAX_ROWS:,} are allowed.")
    return rows


def as_array(rows, n_features, names):
    """Return the rows as an array, with the columns in the order of the fit."""
    ordered = []
    for index, row in enumerate(rows):
        if isinstance(row, dict) and names is not None:
            if unknown := set(row) - set(names):
                raise ValueError(f"Row {index} has unknown columns: {shortened(sorted(unknown))}.")
            if missing := set(names) - set(row):
                raise ValueError(f"Row {index} lacks columns: {shortened(sorted(missing))}.")
            row = [row[name] for name in names]
        if not isinstance(row, list) or len(row) != n_features:
            got = f"a list of {len(row)}" if isinstance(row, list) else shortened(row)
            allowed = f"a list of {n_features} numbers" + (" or an object" if names else "")
            raise ValueError(f"Row {index} is {got}, but the model takes {allowed}.")
        for value in row:
            if type(value) is not float or not math.isfinite(value):
                raise ValueError(f"Row {index} has {shortened(value)}, not a finite number.")
        ordered.append(row)
    return np.array(ordered)


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
        uvicorn.run(app, host=options.host, port=options.port)


if __name__ == "__main__":
    main()
