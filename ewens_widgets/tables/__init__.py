r"""Tables as people have them: from a file, an upload or a DataFrame to a `Dataset`, with an account of it.

Three steps, a file each:

* `sources` takes a file or a frame apart into columns;
* `cells` says what a column's cells mean: numbers, in the many ways people write them, dates, text;
* `roles` gives each column a role, and writes everything that was done into ``dataset.account``.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import DataWarning
from ewens_widgets.tables.roles import Reading, Wishes
from ewens_widgets.tables.sources import LARGEST_FILE, TableError, read_source

__all__ = ["LARGEST_FILE", "DataWarning", "TableError", "read_table"]


def read_table(
    source: Any,  # noqa: ANN401 - a file or a frame of any library
    name: str | None = None,
    *,
    features: Sequence[str] | None = None,
    names: str | None = None,
    classes: str | None = None,
    drop: str | Sequence[str] = (),
    read_as: Mapping[str, str] | None = None,
    missing: str = "refuse",
    header: int | bool | None = None,
) -> Dataset:
    """Read a table of numbers, with names and known classes, from a file or a DataFrame.

    Parameters
    ----------
    source
        Path of a CSV file, its bytes, or an open file, of at most 5 MB; or a DataFrame of pandas, polars, or
        any library with the dataframe interchange protocol or Arrow's.
    name
        Name of the table, for titles and messages; by default that of the file.
    features
        Columns to cluster by; all others are left out, but for names and classes. By default all that hold
        numbers. Dates become days since the first, and yes and no become 1 and 0.
    names
        Column with the names of the rows.
    classes
        Column with the known classes; the model never sees them.
    drop
        Columns to leave out.
    read_as
        How to read a column that could be read in more than one way: ``{"weight": "thousands"}``, or
        "decimals", "numbers" (whatever stands behind them), "day first", "month first", "text".
    missing
        What to do with missing values: "refuse", "drop rows" leaves out the rows that have any, "median" puts
        the median of the column there.
    header
        Whether the first row has the names of the columns, or how many rows do; by default found out.

    Returns
    -------
    data set with the features, and with the classes and the names of the rows if there are any; its `account`
    says what was done with each column

    Raises
    ------
    TableError
        For anything that cannot be read without guessing; it says what the choices are.

    Warns
    -----
    DataWarning
        For columns that may mislead: identifiers, constants, copies and combinations of other columns, codes,
        numbers that stand for missing values, long tails.
    """
    table = read_source(source, name, header)
    wishes = Wishes.checked(table, features, names, classes, drop, read_as, missing)
    reading = Reading(table, wishes)
    reading.settle_roles()
    dataset = reading.dataset()
    for text in dataset.account.warnings if dataset.account else ():
        warnings.warn(text, DataWarning, stacklevel=2)
    return dataset
