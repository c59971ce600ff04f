"""How a peak of the potential is found in a space."""

from typing import Any

from notsorandom.search.ascent import Ascent
from notsorandom.search.langevin import Langevin

SEARCHES: dict[str, Any] = {"ascent": Ascent, "langevin": Langevin}

__all__ = ["SEARCHES", "Ascent", "Langevin"]
