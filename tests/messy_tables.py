"""Tables as people send them, a few lines each, with what the reader makes of them or says about them.

Shared by the tests of the reader and by those that upload a file in a browser.
"""

from dataclasses import dataclass, field
from typing import Any

FEATURE, NAMES, CLASSES, OUT = "feature", "names", "classes", "left out"


@dataclass(frozen=True)
class Messy:
    """A table and what is expected of it: data and roles, or the whole message."""

    title: str
    content: bytes
    X: list[list[float]] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    row_names: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    message: str = ""
    options: dict[str, Any] = field(default_factory=dict)


def lines(*rows: str, end: str = "\n") -> bytes:
    return (end.join(rows) + end).encode()


SIX = ("1.5,2", "2.5,7", "3.5,4")
THREE = [[1.5, 2.0], [2.5, 7.0], [3.5, 4.0]]
XY = {"x": FEATURE, "y": FEATURE}
KEEP = 'classes="{0}", or names="{0}", or drop="{0}".'

UNDERSTOOD = [
    Messy("plain", lines("x,y", *SIX), THREE, XY),
    Messy("byte order mark", "x,y\n1.5,2\n2.5,7\n3.5,4\n".encode("utf-8-sig"), THREE, XY),
    Messy(
        "Latin-1",
        "größe;y\n1,5;2\n2,5;7\n3,5;4\n".encode("latin-1"),
        THREE,
        {"größe": FEATURE, "y": FEATURE},
        reasons={"größe": "decimal commas: '1,5' is 1.5"},
        notes=("The text is not UTF-8 and is read as Windows-1252 (Latin-1).",),
    ),
    Messy("UTF-16", "x\ty\n1.5\t2\n2.5\t7\n3.5\t4\n".encode("utf-16"), THREE, XY),
    Messy(
        "UTF-16 without a mark",
        "x\ty\n1.5\t2\n2.5\t7\n3.5\t4\n".encode("utf-16-le"),
        THREE,
        XY,
        notes=("The file has no mark of its encoding and is read as UTF-16.",),
    ),
    Messy(
        "two title lines and a row of totals",
        lines("A study of flowers", "measured by two people", "x,y", *SIX, "Total,13"),
        THREE,
        XY,
        notes=(
            "Line 1 is left out as a title or comment: 'A study of flowers'.",
            "Line 2 is left out as a title or comment: 'measured by two people'.",
            "The last row, 'Total', is left out: it sums up the others.",
        ),
    ),
    Messy("bars", lines("x|y", "1.5|2", "2.5|7", "3.5|4"), THREE, XY),
    Messy("runs of spaces", lines("x   y", "1.5   2", "2.5  7", "3.5   4"), THREE, XY),
    Messy(
        "a unit after a space",
        lines("my dose", "5 mg", "7 mg", "8.5 mg"),
        [[5], [7], [8.5]],
        {"my dose": FEATURE},
        reasons={"my dose": "in mg"},
    ),
    Messy("carriage returns", lines("x,y", *SIX, end="\r"), THREE, XY),
    Messy(
        "semicolons without a header", lines("1,5;2", "2,5;7", "3,5;4"), THREE, {"x1": FEATURE, "x2": FEATURE}
    ),
    Messy(
        "trailing empty lines and cells", lines("x,y", "1.5,2,", "2.5,7", "3.5,4,,", "", ",", " "), THREE, XY
    ),
    Messy("a separator at each end", lines("x,y,", "1.5,2,", "2.5,7,", "3.5,4,"), THREE, {**XY, "x3": OUT}),
    Messy(
        "quoted newlines",
        b'x,y,note\n1.5,2,"one\ntwo"\n2.5,7,"a, b"\n3.5,4,c\n',
        THREE,
        {**XY, "note": NAMES},
        row_names=("one two", "a, b", "c"),
    ),
    Messy(
        "years for names beside names of rows",
        lines("country,2001,2002,2003", "A,1.5,2,1", "B,2.5,7,5", "C,3.5,4,4"),
        [[1.5, 2, 1], [2.5, 7, 5], [3.5, 4, 4]],
        {"country": NAMES, "2001": FEATURE, "2002": FEATURE, "2003": FEATURE},
        row_names=("A", "B", "C"),
    ),
    Messy(
        "doses for names",
        lines("sample,10,20", "A,1.5,2", "B,2.5,7", "C,3.5,4"),
        THREE,
        {"sample": NAMES, "10": FEATURE, "20": FEATURE},
        row_names=("A", "B", "C"),
    ),
    Messy(
        "doses with units for names",
        lines("5 mg,10 mg", "1.5,2", "2.5,7", "3.5,4"),
        THREE,
        {"5 mg": FEATURE, "10 mg": FEATURE},
    ),
    Messy(
        "a title",
        lines("Measurements of 2024", "", "x,y", *SIX),
        THREE,
        XY,
        notes=("Line 1 is left out as a title or comment: 'Measurements of 2024'.",),
    ),
    Messy(
        "comments",
        lines("# made by a machine", "# x,y", *SIX),
        THREE,
        XY,
        notes=("Line 1 is left out as a title or comment: '# made by a machine'.",),
    ),
    Messy(
        "a row of units",
        lines("x,y", "cm,[kg]", *SIX),
        THREE,
        {"x [cm]": FEATURE, "y [kg]": FEATURE},
        notes=("The second row has the units; they are put beside the names.",),
    ),
    Messy(
        "two rows of names",
        lines("leaf,,stem,", "mean,sd,mean,sd", "1,2,3,4", "3,5,5,9", "7,4,4,2"),
        [[1, 2, 3, 4], [3, 5, 5, 9], [7, 4, 4, 2]],
        dict.fromkeys(("leaf mean", "leaf sd", "stem mean", "stem sd"), FEATURE),
        notes=("Two rows of names are joined.",),
    ),
    Messy(
        "thousands beside decimals",
        lines("weight,y", '"1,007",2.5', '"2,150",7.25', "980,4.5"),
        [[1007, 2.5], [2150, 7.25], [980, 4.5]],
        {"weight": FEATURE, "y": FEATURE},
        reasons={"weight": "thousands separated: '1,007' is 1007"},
    ),
    Messy(
        "millions",
        lines("people;y", "1,007,300;2", "9,150;7", "980;4"),
        [[1007300, 2], [9150, 7], [980, 4]],
        {"people": FEATURE, "y": FEATURE},
    ),
    Messy(
        "thousands, as said",
        lines("weight,y", '"1,007",2', '"2,150",7', "980,4"),
        [[1007, 2], [2150, 7], [980, 4]],
        {"weight": FEATURE, "y": FEATURE},
        options={"read_as": {"weight": "thousands"}},
    ),
    Messy(
        "decimals, as said",
        lines("weight,y", '"1,007",2', '"2,150",7', "980,4"),
        [[1.007, 2], [2.15, 7], [980, 4]],
        {"weight": FEATURE, "y": FEATURE},
        options={"read_as": {"weight": "decimals"}},
    ),
    Messy(
        "German",
        lines("Preis;y", "1.234,50 €;2,5", "17,00 €;7,5", "3,20 €;4"),
        [[1234.5, 2.5], [17, 7.5], [3.2, 4]],
        {"Preis": FEATURE, "y": FEATURE},
        reasons={"Preis": "in €, decimal commas: '1.234,50' is 1234.5"},
    ),
    Messy(
        "points between thousands",
        lines("Einwohner;y", "12.345;2,5", "9.150;7,5", "980;4"),
        [[12345, 2.5], [9150, 7.5], [980, 4]],
        {"Einwohner": FEATURE, "y": FEATURE},
        reasons={"Einwohner": "thousands separated: '12.345' is 12345"},
    ),
    Messy(
        "Swiss and French thousands",
        "x;y\n1'007;2 150\n2’450;1\u00a0007\n980;12\u202f345\n".encode(),
        [[1007, 2150], [2450, 1007], [980, 12345]],
        XY,
    ),
    Messy(
        "units and per cent",
        lines("dose,share", "5 mg,4.5%", "7 mg,3.5%", "8.5mg,1 %"),
        [[5, 4.5], [7, 3.5], [8.5, 1]],
        {"dose": FEATURE, "share": FEATURE},
        reasons={"dose": "in mg", "share": "in per cent"},
    ),
    Messy(
        "currency",
        lines("price,y", '"$1,200.50",2', "-$3,7", "$7.25,4"),
        [[1200.5, 2], [-3, 7], [7.25, 4]],
        {"price": FEATURE, "y": FEATURE},
    ),
    Messy(
        "a real minus and exponents",
        lines("x,y", "−1.5,2e3", "2.5,7E-1", "+3.5,4"),
        [[-1.5, 2000], [2.5, 0.7], [3.5, 4]],
        XY,
    ),
    Messy(
        "unknown units, as said",
        lines("dose,y", "5 puffs,2", "7 puffs,7", "8 puffs,4"),
        [[5, 2], [7, 7], [8, 4]],
        {"dose": FEATURE, "y": FEATURE},
        options={"read_as": {"dose": "numbers"}},
    ),
    Messy(
        "dates",
        lines("when,x,y", "2024-01-31,1.5,2", "2024-02-01,2.5,7", "2024-03-01,3.5,4"),
        THREE,
        {"when": OUT, **XY},
        reasons={"when": "dates or times (as a feature: days since the first date)"},
    ),
    Messy(
        "times",
        lines("at,x,y", "9:30,1.5,2", "12:15:00,2.5,7", "23:00,3.5,4"),
        THREE,
        {"at": OUT, **XY},
        reasons={"at": "dates or times (as a feature: hours since midnight)"},
    ),
    Messy(
        "times as a feature",
        lines("at,x", "9:30,1.5", "12:15:00,2.5", "23:00,3.5"),
        [[9.5, 1.5], [12.25, 2.5], [23, 3.5]],
        {"at": FEATURE, "x": FEATURE},
        options={"features": ["at", "x"]},
    ),
    Messy(
        "dates as a feature",
        lines("when,x", "31.01.2024,1.5", "01.02.2024,2.5", "01.03.2024,3.5"),
        [[0, 1.5], [1, 2.5], [30, 3.5]],
        {"when": FEATURE, "x": FEATURE},
        options={"features": ["when", "x"]},
    ),
    Messy(
        "yes and no as classes",
        lines("smoker,x,y", "yes,1.5,2", "no,2.5,7", "yes,3.5,4"),
        THREE,
        {"smoker": CLASSES, **XY},
        classes=("yes", "no", "yes"),
    ),
    Messy(
        "yes and no as a feature",
        lines("smoker,x", "Yes,1.5", "No,2.5", "yes,3.5"),
        [[1, 1.5], [0, 2.5], [1, 3.5]],
        {"smoker": FEATURE, "x": FEATURE},
        reasons={"smoker": "1 for yes, 0 for no"},
        options={"features": ["smoker", "x"]},
    ),
    Messy(
        "the index that pandas writes",
        lines(",x,y", "0,1.5,2", "1,2.5,7", "2,3.5,4"),
        THREE,
        {"x1": OUT, **XY},
        reasons={"x1": "only numbers the rows"},
    ),
    Messy(
        "numbered columns that pandas writes",
        lines(",0,1,2", "0,1.5,2,1", "1,2.5,7,5", "2,3.5,4,4"),
        [[1.5, 2, 1], [2.5, 7, 5], [3.5, 4, 4]],
        {"x1": OUT, "0": FEATURE, "1": FEATURE, "2": FEATURE},
    ),
    Messy(
        "a table that R wrote",
        lines('"x","y"', '"first",1.5,2', '"second",2.5,7', '"third",3.5,4'),
        THREE,
        {"x1": NAMES, **XY},
        row_names=("first", "second", "third"),
    ),
    Messy(
        "numeric identifiers",
        lines("patient_id,x,y", "1007,1.5,2", "1003,2.5,7", "1020,3.5,4"),
        THREE,
        {"patient_id": NAMES, **XY},
        row_names=("1007", "1003", "1020"),
        reasons={"patient_id": "identifiers by its name"},
    ),
    Messy(
        "names at the end",
        lines("x,y,code", "1.5,2,CR0000", "2.5,7,CR0001", "3.5,4,CR0002"),
        THREE,
        {**XY, "code": NAMES},
        row_names=("CR0000", "CR0001", "CR0002"),
    ),
    Messy(
        "two columns of text, one said",
        lines("x,site,y,kind", "1.5,a,2,u", "2.5,b,7,v", "3.5,a,4,v"),
        THREE,
        {"x": FEATURE, "site": OUT, "y": FEATURE, "kind": CLASSES},
        classes=("u", "v", "v"),
        options={"classes": "kind", "drop": "site"},
    ),
    Messy(
        "features, as said",
        lines("x,site,y,kind", "1.5,a,2,u", "2.5,b,7,v", "3.5,a,4,v"),
        [[2], [7], [4]],
        {"x": OUT, "site": OUT, "y": FEATURE, "kind": OUT},
        options={"features": ["y"]},
    ),
    Messy(
        "a constant column",
        lines("x,year,y", "1.5,2024,2", "2.5,2024,7", "3.5,2024,4"),
        THREE,
        {"x": FEATURE, "year": OUT, "y": FEATURE},
        reasons={"year": "constant: always '2024'"},
        warnings=("column 'year' is constant and is left out.",),
    ),
    Messy(
        "an empty column",
        lines("x,comment,y", "1.5,,2", "2.5,NA,7", "3.5,,4"),
        THREE,
        {"x": FEATURE, "comment": OUT, "y": FEATURE},
        reasons={"comment": "empty"},
    ),
    Messy(
        "missing values left out, in many spellings",
        lines("x,y,z", "1.5,2,1", "NA,1,1", "2.5,7,2", "1,n/a,1", "3.5,4,5", "#N/A,1,1", "1,<NA>,1", "1,-,?"),
        [[1.5, 2, 1], [2.5, 7, 2], [3.5, 4, 5]],
        {**XY, "z": FEATURE},
        notes=("5 rows with missing values are left out.",),
        options={"missing": "drop rows"},
    ),
    Messy(
        "missing values filled in",
        lines("x,y", "1.5,2", ",7", "3.5,4"),
        [[1.5, 2], [2.5, 7], [3.5, 4]],
        XY,
        notes=("1 missing value is the column's median.",),
        options={"missing": "median"},
    ),
    Messy(
        "numbered columns, as said",
        lines("2001,2002,2003", "1,2,4", "3,7,5"),
        [[1, 2, 4], [3, 7, 5]],
        dict.fromkeys(("2001", "2002", "2003"), FEATURE),
        options={"header": True},
    ),
    Messy(
        "a script in every place",
        lines("<script>alert(1)</script>,y,class", "1.5,2,<b>u</b>", "2.5,7,=1+1", "3.5,4,<b>u</b>"),
        THREE,
        {"<script>alert(1)</script>": FEATURE, "y": FEATURE, "class": CLASSES},
        classes=("<b>u</b>", "=1+1", "<b>u</b>"),
    ),
]

ROWS = range(30)
WAVE = [f"{(k * 7) % 30 + 0.25 * (k % 4):g}" for k in ROWS]
OTHER = [f"{(k * 11) % 30 + 0.5 * (k % 3):g}" for k in ROWS]

WARNED = [
    Messy(
        "a number of the row",
        lines("nr,x,y", *(f"{k + 101},{WAVE[k]},{OTHER[k]}" for k in ROWS)),
        warnings=("column 'nr' looks like a number of the row or an identifier",),
    ),
    Messy(
        "a copy in another unit",
        lines("cm,y,inch", *(f"{WAVE[k]},{OTHER[k]},{float(WAVE[k]) / 2.54:.2f}" for k in ROWS)),
        warnings=("column 'inch' is a copy of 'cm' (nearly)",),
    ),
    Messy(
        "a sum of others",
        lines("x,y,total", *(f"{WAVE[k]},{OTHER[k]},{float(WAVE[k]) + float(OTHER[k])}" for k in ROWS)),
        warnings=("column 'total' is a linear combination of 'x', 'y' (nearly)",),
    ),
    Messy(
        "batches",
        lines("x,batch", *(f"{WAVE[k]},{k // 10 + 1}" for k in ROWS)),
        warnings=("column 'batch' has only 3 different whole numbers (1, 2, 3)",),
        options={"kinds": "numeric"},
    ),
    Messy(
        "a long tail",
        lines("x,income", *(f"{WAVE[k]},{2.0 ** ((k * 13) % 30 / 2):.3f}" for k in ROWS)),
        warnings=("column 'income' is positive and strongly skewed",),
    ),
    Messy(
        "steps among measurements",
        lines("x,y,step", *(f"{k * 0.37 % 5:.4f},{k * 0.73 % 7:.4f},{k % 3 / 2}" for k in range(60))),
        warnings=("column(s) 'step' take few values while the others hardly repeat one",),
        options={"kinds": "numeric"},
    ),
    Messy(
        "numbers for what is missing",
        lines("x,y", *(f"{WAVE[k]},{-999 if k in (4, 20) else OTHER[k]}" for k in ROWS)),
        warnings=("column 'y' has 2 times -999, far from its other values",),
    ),
]

REFUSED = [
    Messy(
        "thousands or decimals",
        lines("weight,y", '"1,007",2', '"2,150",7', "980,4"),
        message=(
            "column 'weight' ('1,007', '2,150', '980'): thousands or decimals? Say "
            'read_as={"weight": "thousands"} (\'1,007\' is 1007), or read_as={"weight": "decimals"} '
            "('1,007' is 1.007), or " + KEEP.format("weight")
        ),
    ),
    Messy(
        "several units",
        lines("dose,y", "5 mg,2", "2 g,7", "8.5 mg,4"),
        message=(
            "column 'dose' ('5 mg', '2 g', '8.5 mg'): not all cells have the same unit; see '2 g'. Say "
            'read_as={"dose": "numbers"} (the numbers as they stand), or ' + KEEP.format("dose")
        ),
    ),
    Messy(
        "an unknown unit",
        lines("dose,y", "5 puffs,2", "7 puffs,7", "8 puffs,4"),
        message=(
            "column 'dose' ('5 puffs', '7 puffs', '8 puffs'): is 'puffs' a unit, or part of a name? Say "
            'read_as={"dose": "numbers"} (the numbers as they stand), or ' + KEEP.format("dose")
        ),
    ),
    Messy(
        "codes with zeros",
        lines("zip,y", "01234,2", "56789,7", "00321,4"),
        message=(
            "column 'zip' ('01234', '56789', '00321'): numbers, or codes with zeros? Say "
            'read_as={"zip": "numbers"} (\'01234\' is 1234), or ' + KEEP.format("zip")
        ),
    ),
    Messy(
        "points for thousands or decimals",
        lines("x|y|z", "1.007|2,5|1.5", "2.150|7,5|2.5", "3.400|4,25|7.5"),
        message=(
            "column 'x' ('1.007', '2.150', '3.400'): thousands or decimals? Say "
            'read_as={"x": "thousands"} (\'1.007\' is 1007), or read_as={"x": "decimals"} '
            "('1.007' is 1.007), or " + KEEP.format("x")
        ),
    ),
    Messy(
        "two columns of text",
        lines("x,site,y,kind", "1.5,a,2,u", "2.5,b,7,v", "3.5,a,4,v"),
        message=(
            "columns 'site', 'kind' hold text ('site': 'a', 'b'; 'kind': 'u', 'v'), which may be classes, "
            "names or "
            'neither. Say which: ew.read_table(content, classes="site"), names=…, or drop=[…] for what is '
            "to be left "
            "out."
        ),
    ),
    Messy(
        "text that is neither names nor classes",
        lines("x,remark", *(f"{WAVE[k]},remark {min(k, 28)}" for k in ROWS)),
        message=(
            "column 'remark' ('remark 0', 'remark 1', 'remark 2'): text with 29 different values in 30 "
            "rows: names, "
            "classes or neither? Say " + KEEP.format("remark")
        ),
    ),
    Messy(
        "a class for each row",
        lines("x,class", *(f"{WAVE[k]},{k / 7:.4f}" for k in ROWS)),
        message=(
            "column 'class' ('0.0000', '0.1429', '0.2857'): classes, with 30 different values in 30 rows? "
            "Say " + KEEP.format("class")
        ),
    ),
    Messy(
        "days or months",
        lines("when,x", "01/02/2024,1.5", "03/04/2024,2.5", "05/06/2024,4"),
        message=(
            "column 'when' ('01/02/2024', '03/04/2024', '05/06/2024'): day or month first? Say "
            'read_as={"when": "day first"} (day first), or read_as={"when": "month first"} (month first), or '
            + KEEP.format("when")
        ),
        options={"features": ["when", "x"]},
    ),
    Messy(
        "missing values",
        lines("x,y", "1.5,NA", ",7", "3.5,4"),
        message=(
            "2 missing values: row 2, column 'x'; row 1, column 'y'. By column: 'x' 1, 'y' 1. Leave the 2 "
            "rows out: "
            'ew.read_table(content, missing="drop rows"); or the columns: ew.read_table(content, drop=["x", '
            '"y"]); or '
            'put the column\'s median there: ew.read_table(content, missing="median").'
        ),
    ),
    Messy(
        "a class that is missing",
        lines("x,class", "1.5,u", "2.5,", "3.5,v"),
        message=(
            "column 'class', read as the known classes, is empty in row 2. Fill these cells, leave the rows "
            "out, "
            'ew.read_table(content, missing="drop rows"), or drop the column, ew.read_table(content, '
            'drop=["class"]).'
        ),
    ),
    Messy(
        "values below a limit of detection",
        lines("x,y", "1.5,2", "<0.05,7", "3.5,4"),
        message=(
            "1 value that cannot be read as a number: row 2, column 'x' ('<0.05'). Correct these cells or "
            "empty them, "
            "drop the column with drop=…, or keep it with classes=…."
        ),
    ),
    Messy(
        "points and commas",
        lines("x;y", "1.5;2", "2.5;7", "3,5;4"),
        message=(
            "1 value that cannot be read as a number: row 3, column 'x' ('3,5'). Correct these cells or "
            "empty them, "
            "drop the column with drop=…, or keep it with classes=…."
        ),
    ),
    Messy(
        "years for names, or data",
        lines("2001,2002,2003", "1,2,4", "3,7,5"),
        message=(
            "the first row, 2001, 2002, 2003, …, counts on: are these names of columns, or data? Say "
            "header=True or "
            "header=False."
        ),
    ),
    Messy(
        "a short row",
        lines("x,y", "1.5,2", "2.5", "3.5,4"),
        message=(
            "1 missing value: row 2, column 'y'. By column: 'y' 1. Leave the 1 row out: "
            'ew.read_table(content, missing="drop rows"); or the columns: '
            'ew.read_table(content, drop=["y"]); or put the column\'s median there: '
            'ew.read_table(content, missing="median").'
        ),
    ),
    Messy(
        "a long row",
        lines("x,y", "1.5,2", "2.5,7,5", "3.5,4"),
        message="row 2 has 3 cells, but the first row has 2; check separators and quotes there.",
    ),
    Messy(
        "a long row far down",
        lines("x,y", *(f"{value},2" for value in WAVE * 2), "2.5,7,5"),
        message=(
            "the table cannot be read (Expected 2 fields in line 62, saw 3); check separators and quotes "
            "there."
        ),
    ),
    Messy(
        "an open quote",
        b'x,y\n1.5,2\n2.5,"7\n',
        message=(
            "the table cannot be read (a quote in line 3 is not closed); check separators and quotes there."
        ),
    ),
    Messy(
        "a workbook",
        b"PK\x03\x04\x14\x00\x06\x00",
        message="this is not a text file; save the table as CSV (UTF-8) and try again.",
    ),
    Messy(
        "text only",
        lines("name,site", "a,u", "b,v", "c,u"),
        message="there is no column of numbers; clustering needs at least one.",
    ),
    Messy(
        "an unknown column",
        lines("x,y", *SIX),
        message="drop: there is no column 'z'; there are 'x', 'y'.",
        options={"drop": "z"},
    ),
    Messy(
        "text as a feature",
        lines("x,kind", "1.5,a", "2.5,b", "3.5,a"),
        message=(
            "column 'kind' holds text ('a', 'b') and cannot be a feature. Encode it as numbers, or say "
            "classes='kind', drop='kind' or kinds={\"kind\": \"category\"}."
        ),
        options={"features": ["x", "kind"]},
    ),
]
