"""Properties that are computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class cached_property(Generic[Result]):  # noqa: N801
    """Property that is computed once, as of ``functools`` from Python 3.12 on.

    Before, that has a lock for all instances, which a forked process may wait for in vain.
    """

    def __init__(self, compute: Callable[[Any], Result]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Result:
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance.__dict__[self.compute.__name__] = self.compute(instance)
        return value
