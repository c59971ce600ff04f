"""Kinds of columns of a data frame: numbers, booleans, categories or dates; and their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from notsorandom.data.array_api import Array
from notsorandom.data.checks import import_pandas, shorten
from notsorandom.data.text import MISSING

# Text that means that a value is missing, in any case and with any spaces around it.
MISSING_TEXT = {text.lower() for text in MISSING}
# The category of missing values.
MISSING_CATEGORY = "missing"
BOOLEANS = dict.fromkeys(["true", "yes", "t", "y"], 1.0) | dict.fromkeys(
    ["false", "no", "f", "n"], 0.0
)
# Formats of dates in text, in the order in which they are tried.
DATES = ["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y"]
DATES += ["%d-%b-%Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y"]
TIMES = ["", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p"]
ISO = "ISO8601"
DATE_FORMATS = [ISO, *(date + time for date in DATES for time in TIMES)]
# Formats of numbers in text: what they match besides plain numbers, and the mark of thousands.
THOUSANDS, DECIMAL_COMMA = "1,234.5", "1.234,5"
NUMBER_FORMATS = {
    THOUSANDS: (r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", ","),
    DECIMAL_COMMA: (r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d*)?", "."),
}
# Numbers in text that are read cell by cell.
PLAIN_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*", re.ASCII)
DIGIT = re.compile(r"\d")
# Signs around numbers that are not part of them.
SIGNS = r"^([+-]?)[$€£¥]\s?|\s?[$€£¥%]$"
# What text must look like to be tried as a date: plain numbers and words are not.
DATE_PATTERN = re.compile(r"\d{1,4}[-/.]\w{1,9}[-/.]\d{1,4}|\d{1,2} \w+ \d{4}|\w+ \d{1,2}, \d{4}")
# Types of columns that are empty, by the kind of type that they should have.
EMPTY_TYPES = {"f": "float64", "M": "datetime64[ns]"}
# Rows of a category that gets a column of its own, and rows from which on that is required.
FREQUENT, MANY = 5, 20
DATE_PARTS = ("days", "month", "day", "weekday", "hour")
# Names of columns that number the rows.
IDENTIFIER = re.compile(
    r"(?i:id|uuid|guid|key|index|row|rownames|nr|no|number|unnamed: 0)|.*(_id|\bid|Id|ID)"
)


def infer_kind(column: Any) -> tuple[str, str]:
    """Return the kind of a column, and the format of dates or numbers that are text."""
    pandas = import_pandas()
    if pandas.api.types.is_bool_dtype(column.dtype):
        return "boolean", ""
    if isinstance(column.dtype, pandas.CategoricalDtype):
        return "category", ""
    values = simplify(column)
    if values.dtype.kind != "O":
        return ("number", "") if values.dtype.kind == "f" else ("date", ISO)
    text = values.dropna().drop_duplicates()
    if parse_booleans(text).notna().all() and text.str.isalpha().any():
        return "boolean", ""
    few = text.head(100)
    if not has_digit(few).all():  # which all numbers and dates have
        return "category", ""
    for number_format in ("", *NUMBER_FORMATS):
        if all(parse_numbers(part, number_format).notna().all() for part in (few, text)):
            return "number", number_format
    if looks_like_dates(few).all():
        for date_format in DATE_FORMATS:
            if all(parse_dates(part, date_format).notna().all() for part in (few, text)):
                return "date", date_format
    return "category", ""


def convert(column: Any, name: str, kind: str, text_format: str) -> Any:
    """Return a column converted to its kind at fit; raise ValueError if a value has another."""
    if kind == "category":
        return to_text(column, MISSING_CATEGORY)
    values = given = simplify(column)
    expected = "M" if kind == "date" else "f"
    if not given.notna().any():  # an empty column has no type of its own
        return given.astype(object).mask(given.isna(), np.nan).astype(EMPTY_TYPES[expected])
    if given.dtype.kind == expected:
        return values
    if given.dtype.kind == "O":
        if kind == "boolean":
            values = parse_booleans(given)
        else:
            values = (parse_dates if kind == "date" else parse_numbers)(given, text_format)
    is_right = values.notna() & (values.dtype.kind == expected)
    wrong = np.flatnonzero(given.notna() & ~is_right)
    if len(wrong):
        plural = {"number": "numbers", "boolean": "booleans", "date": "dates"}[kind]
        written = f" At fit they were like {text_format.replace(ISO, '2020-01-31')}."
        raise ValueError(
            f"Column {name!r} had {plural} at fit, but row {wrong[0]} has "
            f"{shorten(column.iloc[wrong[0]])}: correct it, or leave it empty."
            f"{written if text_format else ''}"
        )
    return values


def simplify(column: Any) -> Any:
    """Return a column as float64, as dates in UTC without a time zone, or as text.

    Missing are NaN, NaT and None; infinite numbers are missing.
    """
    pandas = import_pandas()
    types = pandas.api.types
    if types.is_datetime64_any_dtype(column.dtype):
        return pandas.to_datetime(column, utc=True).dt.tz_localize(None)
    if column.dtype.kind == "m":
        return column.dt.total_seconds()
    if types.is_numeric_dtype(column.dtype) and column.dtype.kind != "c":
        numbers = column.to_numpy(np.float64, na_value=np.nan)
        finite = np.isfinite(numbers)
        values = numbers if finite.all() else np.where(finite, numbers, np.nan)
        return pandas.Series(values, index=column.index)
    return to_text(column)


def to_text(column: Any, missing: str | None = None) -> Any:
    """Return a column as text without spaces around it; `missing` where a value is missing."""
    if isinstance(column.dtype, import_pandas().CategoricalDtype):
        column = column.astype(object).infer_objects()
    if column.dtype.kind == "f" and (column.dropna() % 1 == 0).all():  # 3, not 3.0
        column = column.astype("Float64").astype("Int64")
    known = column.notna().to_numpy()
    cells = column.to_numpy(object)[known]
    if not all(isinstance(cell, str) for cell in cells):
        cells = column[known].astype(object).astype(str).to_numpy(object)
    # In lists, which is faster than the methods of a series, above all for a single row.
    stripped = [cell.strip() for cell in cells]
    text = np.full(len(known), missing, dtype=object)
    text[known] = [missing if cell.lower() in MISSING_TEXT else cell for cell in stripped]
    return import_pandas().Series(text, index=column.index, dtype=object)


def parse_booleans(text: Any) -> Any:
    """Return text as 0 and 1; NaN where it isn't a boolean."""
    values = BOOLEANS | {"0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0}
    return text.str.lower().map(values).astype(np.float64)


def parse_numbers(text: Any, number_format: str = "") -> Any:
    """Return text as float64, without signs of currencies and percent; NaN if it isn't a number."""
    if text.str.contains("[$€£¥%]", regex=True, na=False).any():
        text = text.str.replace(SIGNS, r"\1", regex=True)
    if number_format:
        pattern, thousands = NUMBER_FORMATS[number_format]
        is_written = text.str.fullmatch(pattern, na=False)
        numbers = text.str.replace(thousands, "", regex=False).str.replace(",", ".", regex=False)
        # A plain number is one in both formats, but for the dot of 1.5 where the comma is decimal.
        plain = text.where(text.str.isdigit() | (number_format == THOUSANDS))
        text = numbers.where(is_written, plain)
    numbers = import_pandas().to_numeric(text, errors="coerce")
    return numbers.astype(np.float64).replace([np.inf, -np.inf], np.nan)


def parse_plain_numbers(cells: Array) -> Array | None:
    """Return objects as float64, if all are numbers, plain numbers in text, or missing; else None.

    For these it is what `convert` returns, without the costs of a series, which matter for a row.
    """
    numbers = np.full(len(cells), np.nan)
    for row in np.flatnonzero(import_pandas().notna(cells)):
        cell = cells[row]
        is_number = isinstance(cell, int | float | np.integer | np.floating)
        is_plain = PLAIN_NUMBER.fullmatch(cell) if isinstance(cell, str) else is_number
        if not is_plain or isinstance(cell, bool):
            return None
        try:
            numbers[row] = float(cell)
        except OverflowError:  # of an integer
            return None
    return None if np.isinf(numbers).any() else numbers


def parse_dates(text: Any, date_format: str) -> Any:
    """Return text as dates in UTC without a time zone; NaT where it isn't a date."""
    text = text.str.replace(r" (UTC|GMT)$", "", regex=True)
    to_datetime = import_pandas().to_datetime
    dates = to_datetime(text, format=date_format, errors="coerce", utc=True)
    return dates.dt.tz_localize(None)


def date_part(dates: Any, part: str) -> Any:
    """Return a part of dates as float64."""
    if part == "days":
        return (dates - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    if part == "hour":
        return dates.dt.hour + dates.dt.minute / 60
    return getattr(dates.dt, "day_of_week" if part == "weekday" else part).astype(np.float64)


def why_useless(values: Any) -> str:
    """Return why nothing can be learned from a column of categories or dates; else nothing."""
    is_category = values.dtype.kind == "O"
    known = values[values != MISSING_CATEGORY] if is_category else values.dropna()
    if not len(known):
        return "empty"
    if len(known) == len(values) and (known == known.iloc[0]).all():
        return "constant"
    if is_category:
        if known.is_unique:
            return "all values differ"
        is_rare = len(values) >= MANY and known.value_counts().iloc[0] < FREQUENT
        return "no value is frequent" if is_rare else ""
    return ""


@np.errstate(over="ignore")
def useless_numbers(names: Sequence[str], numbers: Array) -> dict[str, str]:
    """Return the columns of numbers from which nothing can be learned, and why.

    They are judged as a block, of shape (n_rows, n_columns), since a table may have many. NaN is
    missing.
    """
    n_rows = len(numbers)
    is_empty = np.isnan(numbers).all(axis=0)
    is_constant = (numbers == numbers[0]).all(axis=0)
    reasons = {names[j]: "empty" for j in np.flatnonzero(is_empty).tolist()}
    reasons |= {names[j]: "constant" for j in np.flatnonzero(is_constant).tolist()}
    integers = np.flatnonzero((numbers == np.rint(numbers)).all(axis=0) & ~is_constant)
    values = numbers[:, integers]
    ranked = np.sort(values, axis=0)
    is_unique = (ranked[1:] > ranked[:-1]).all(axis=0)
    least, most = ranked[0], ranked[-1]
    if n_rows < MANY:  # too few to tell, unless they count the rows
        counts = (values[1:] - values[:-1] == 1).all(axis=0) & (n_rows > 2)
        is_row_number = counts & np.isin(least, (0, 1))
    else:  # they fill most of a range from about 1
        is_row_number = (least >= 0) & (least <= 0.1 * most + 1) & (most - least < 2 * n_rows)
    for j in np.flatnonzero(is_unique):
        name = names[integers[j]]
        if is_row_number[j]:
            reasons[name] = "row numbers"
        elif IDENTIFIER.fullmatch(name):
            reasons[name] = "unique integers, named like an ID"
    return reasons


def has_digit(text: Any) -> Any:
    """Return which texts have a digit."""
    return text.map(lambda cell: DIGIT.search(cell) is not None).astype(bool)


def looks_like_dates(text: Any) -> Any:
    """Return which texts look like dates."""
    return text.map(lambda cell: bool(DATE_PATTERN.match(cell)))


def describe_mixture(categories: Any, share: float) -> str:
    """Return what most of a column's categories are besides text, and which is not; or nothing."""
    text = categories[categories != MISSING_CATEGORY]
    few = text.head(100)
    if not has_digit(few).mean() > share:
        return ""
    candidates: list[tuple[str, Any, str]]
    candidates = [("numbers", parse_numbers, each) for each in ("", *NUMBER_FORMATS)]
    if looks_like_dates(few).mean() > share:
        candidates += [("dates", parse_dates, each) for each in DATE_FORMATS]
    for plural, parse, text_format in candidates:
        if parse(few, text_format).notna().mean() > share:
            is_one = parse(text, text_format).notna()
            if share * len(text) < is_one.sum() < len(text):
                other = str(text[~is_one].iloc[0])
                return f"{is_one.sum():,} of {len(text):,} values are {plural}, but not {other!r}"
    return ""


def is_ambiguous(dates: Any, date_format: str) -> bool:
    """Return whether dates in text may also have the day where the format has the month."""
    other = date_format.replace("%m/%d", "%d/%m")
    if other == date_format or dates.dtype.kind != "O":
        return False
    return bool(parse_dates(simplify(dates).dropna(), other).notna().all())
