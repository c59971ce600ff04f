"""The estimators on Dask collections, whose blocks stay on the cluster.

client = distributed.Client("tcp://scheduler:8786")
model = notsorandom.dask.FourierClassifier(random_state=0).fit(X, y)  # Dask arrays or data frames
labels = model.predict(X)  # lazy
local_model = model.to_local()  # of notsorandom itself, without a cluster
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "notsorandom.dask needs dask and distributed: pip install 'notsorandom[dask]'."
    ) from error

from notsorandom.dask.cluster import ClusterError
from notsorandom.dask.estimators import FourierClassifier, FourierFeatures, FourierRegressor

__all__ = ["ClusterError", "FourierClassifier", "FourierFeatures", "FourierRegressor"]
