"""Tables as people send them, a few lines each, with what the reader makes of them or says about them.

Most are in messy_tables.toml; here are those of many rows. Shared by the tests of the reader and by those
that upload a file in a browser.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

THREE = [[1.5, 2.0], [2.5, 7.0], [3.5, 4.0]]


@dataclass(frozen=True)
class Messy:
    """A table and what is expected of it: data and roles, or the whole message."""

    title: str
    content: bytes
    X: list[list[float]] = field(default_factory=lambda: THREE)
    roles: dict[str, str] = field(default_factory=dict)
    row_names: tuple[str, ...] | None = None
    found: tuple[str, ...] | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    message: str = ""
    options: dict[str, Any] = field(default_factory=dict)


def _of_file(entry: dict[str, Any]) -> Messy:
    fields = {
        name: tuple(value) if name in {"row_names", "found", "notes", "warnings"} else value
        for name, value in entry.items()
    }
    roles = dict.fromkeys(fields.pop("features", ["x", "y"]), "feature")
    for key, role in (("out", "left out"), ("names", "names"), ("classes", "classes")):
        roles |= dict.fromkeys(fields.pop(key, []), role)
    content = fields.pop("text").encode(fields.pop("encoding", "utf-8"))
    return Messy(content=content, roles=roles, **fields)


_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
UNDERSTOOD = [_of_file(entry) for entry in _FILE["understood"]]


def lines(*rows: str) -> bytes:
    return ("\n".join(rows) + "\n").encode()


# Thirty rows of two columns without structure, and what is written beside them.
ROWS = range(30)
WAVE = [f"{(k * 7) % 30 + 0.25 * (k % 4):g}" for k in ROWS]
OTHER = [f"{(k * 11) % 30 + 0.5 * (k % 3):g}" for k in ROWS]
BOTH = [f"{WAVE[k]},{OTHER[k]}" for k in ROWS]
NUMERIC = {"kinds": "numeric"}
KEEP = 'classes="{0}", or names="{0}", or drop="{0}".'
FAULT = "the table cannot be read (Expected 2 fields in line 62, saw 3); check separators and quotes there."

WARNED = [
    Messy(title, lines(*rows), warnings=(warning,), options=options)
    for title, rows, warning, options in [
        (
            "a number of the row",
            ["nr,x,y", *(f"{k + 101},{BOTH[k]}" for k in ROWS)],
            "column 'nr' looks like a number of the row or an identifier",
            {},
        ),
        (
            "a copy in another unit",
            ["cm,y,inch", *(f"{BOTH[k]},{float(WAVE[k]) / 2.54:.2f}" for k in ROWS)],
            "column 'inch' is a copy of 'cm' (nearly)",
            {},
        ),
        (
            "a sum of others",
            ["x,y,total", *(f"{BOTH[k]},{float(WAVE[k]) + float(OTHER[k])}" for k in ROWS)],
            "column 'total' is a linear combination of 'x', 'y' (nearly)",
            {},
        ),
        (
            "batches",
            ["x,batch", *(f"{WAVE[k]},{k // 10 + 1}" for k in ROWS)],
            "column 'batch' has only 3 different values (1, 2, 3)",
            NUMERIC,
        ),
        (
            "a long tail",
            ["x,income", *(f"{WAVE[k]},{2.0 ** ((k * 13) % 30 / 2):.3f}" for k in ROWS)],
            "column 'income' is positive and strongly skewed",
            {},
        ),
        (
            "steps among measurements",
            ["x,y,step", *(f"{k * 0.37 % 5:.4f},{k * 0.73 % 7:.4f},{k % 3 / 2}" for k in range(60))],
            "column 'step' has only 3 different values (0, 0.5, 1)",
            NUMERIC,
        ),
        (
            "numbers for what is missing",
            ["x,y", *(f"{WAVE[k]},{-999 if k in (4, 20) else OTHER[k]}" for k in ROWS)],
            "column 'y' has 2 times -999, far from its other values",
            {},
        ),
    ]
]

REFUSED = [
    *(_of_file(entry) for entry in _FILE["refused"]),
    Messy(
        "text that is neither names nor classes",
        lines("x,remark", *(f"{WAVE[k]},remark {min(k, 28)}" for k in ROWS)),
        message="column 'remark' ('remark 0', 'remark 1', 'remark 2'): text with 29 different values in 30 "
        "rows: names, classes or neither? Say " + KEEP.format("remark"),
    ),
    Messy(
        "a class for each row",
        lines("x,class", *(f"{WAVE[k]},{k / 7:.4f}" for k in ROWS)),
        message="column 'class' ('0.0000', '0.1429', '0.2857'): classes, with 30 different values in 30 "
        "rows? Say " + KEEP.format("class"),
    ),
    Messy("a long row far down", lines("x,y", *(f"{x},2" for x in WAVE * 2), "2.5,7,5"), message=FAULT),
    Messy(
        "a workbook",
        b"PK\x03\x04\x14\x00\x06\x00",
        message="this is not a text file; save the table as CSV (UTF-8) and try again.",
    ),
]
