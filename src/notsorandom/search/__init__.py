"""How a peak of the potential is found in a space."""

from typing import Any

from notsorandom.search.ascent import Ascent
from notsorandom.search.auto import Auto
from notsorandom.search.chain import Chain
from notsorandom.search.enumerate import Enumerate
from notsorandom.search.langevin import Langevin

SEARCHES: dict[str, Any] = {
    "auto": Auto,
    "ascent": Ascent,
    "langevin": Langevin,
    "enumerate": Enumerate,
    "chain": Chain,
}

__all__ = ["SEARCHES", "Ascent", "Auto", "Chain", "Enumerate", "Langevin"]
