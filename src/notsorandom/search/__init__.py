"""Searches for peaks of the potential."""

from notsorandom.search.ascent import Ascent
from notsorandom.search.base import Search
from notsorandom.search.finite import Chain, Enumerate
from notsorandom.search.langevin import Langevin
from notsorandom.search.thorough import Thorough

# Searches by the name that users give.
SEARCHES: dict[str, type[Search]] = {
    "ascent": Ascent,
    "langevin": Langevin,
    "enumerate": Enumerate,
    "chain": Chain,
    "thorough": Thorough,
}

__all__ = ["SEARCHES", "Ascent", "Chain", "Enumerate", "Langevin", "Search", "Thorough"]
