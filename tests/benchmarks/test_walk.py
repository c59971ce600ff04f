"""The table "One `fit` on a dense array, in order" of CONTRIBUTING.md against a trace of a fit."""

import re
from pathlib import Path

import pytest

from benchmarks.walk import trace_fit

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


def read_steps():
    """Return the functions of each row as (file, name): `file.py: name`, or `name` of that file."""
    text = CONTRIBUTING.read_text(encoding="utf-8").split("One `fit` on a dense array, in order")[1]
    table = re.search(r"^\|.*?\n\n", text, flags=re.DOTALL | re.MULTILINE).group()
    steps = []
    for row in table.splitlines()[2:-1]:
        functions, file = [], None
        for reference in re.findall("`(.+?)`", row.split("|")[2]):
            given, _, name = reference.rpartition(": ")
            file = given or file
            functions.append((file, name))
        steps.append(functions)
    return steps


def test_functions_of_the_table_are_called_in_its_order():
    calls, steps = trace_fit(), read_steps()
    assert len(steps) > 4

    def find(file, name, start, end):
        for number in range(start, end):
            call = calls[number]
            # `method` stands for `Class.method`, and `Class` for any of its methods.
            if call.file == file and f".{name}." in f".{call.function}.":
                return number
        pytest.fail(f"`{file}: {name}` is not called where CONTRIBUTING.md says so.")

    # A step begins when its first function is first called, and ends where the next one begins. The
    # first step runs all the others.
    begins = [find(*functions[0], 0, len(calls)) for functions in steps]
    assert begins == sorted(set(begins))
    ends = [len(calls), *begins[2:], len(calls)]
    for functions, begin, end in zip(steps, begins, ends, strict=True):
        last = begin
        for function in functions[1:]:
            last = find(*function, last + 1, end)
