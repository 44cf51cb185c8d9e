r"""Which column is what: features, names of the rows, known classes, or left out, and why.

A column of numbers is a feature. One with a usual name such as ``class``, or else the only column of text
with values that repeat, holds known classes; text that differs in every row, or whole numbers called ``id``,
name the rows. Constant columns, dates, and what merely numbers the rows are left out. The model never sees
classes and names, so these are safe to recognise. What could be read in two ways that give different
*numbers*, or text that fits none of these, is not guessed: `TableError` names the column, shows three values,
and lists the choices. What the caller says comes before all of it.
"""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.datasets import ColumnAccount, Dataset, TableAccount
from ewens_widgets.datasets._frames import distinct_names, short_name
from ewens_widgets.tables.cells import Meaning, decimal_evidence, is_missing, meaning_of
from ewens_widgets.tables.sources import RawTable, TableError

if TYPE_CHECKING:
    from ewens_widgets.tables import Wishes

__all__ = ["Reading", "listed"]

FloatArray = NDArray[np.float64]

_MOST_REPORTED = 5
_FEW_ROWS = 10  # In fewer rows, values that all differ say little.
_LABEL_NAMES = {"class", "classes", "cluster", "group", "label", "labels", "species", "target", "type"}
_IDENTIFIER = re.compile(r"(?i)(.*[ _.-])?(id|ids|idx|index|uuid|key)|.*[a-z]I[Dd]|unnamed: 0|row_?names?")


class Reading:
    """The columns of one table on their way to their roles."""

    def __init__(self, table: RawTable, wishes: "Wishes") -> None:
        self.table = table
        self.wishes = wishes
        texts = [column.cells for column in table.columns if column.typed is None]
        evidence = decimal_evidence(texts, table.separator)
        self.meanings = [
            column.typed or meaning_of(column.cells, evidence, wishes.read_as.get(place))
            for place, column in enumerate(table.columns)
        ]
        self.roles: dict[int, tuple[str, str]] = {}  # by place: role and reason
        self.warnings: list[str] = []

    def settle_roles(self) -> None:
        """Give every column a role, first as the caller said, then by what is certain."""
        self._settle_wishes()
        for settle in (self._settle_by_name, self._settle_names, self._settle_others, self._settle_texts):
            for place in range(len(self.meanings)):
                if place not in self.roles:
                    settle(place)
        undecided = [place for place, (role, _) in self.roles.items() if role == "undecided"]
        if undecided:
            raise TableError(
                self._questions(sorted(undecided)), self.account(), problem=self._asked(undecided)
            )
        if not self._having("feature"):
            raise TableError(self._nothing_text(), self.account())

    def _nothing_text(self) -> str:
        constant = [self._name(place) for place, (_, why) in self.roles.items() if why.startswith("constant")]
        if constant:
            return (
                f"all rows are equal in {listed(list(map(repr, constant)), ', ')}, and there are no other "
                "columns of numbers, so there is nothing to cluster."
            )
        return "there is no column of numbers; clustering needs at least one."

    def _settle_wishes(self) -> None:
        wishes = self.wishes
        for place in wishes.drop:
            self.roles[place] = ("left out", "as you said")
        if wishes.names is not None:
            self.roles[wishes.names] = ("names", "names the rows, as you said")
        if wishes.classes is not None:
            self.roles[wishes.classes] = ("classes", f"{self._classes_text(wishes.classes)} (as you said)")
        for place in wishes.features or ():
            meaning = self.meanings[place]
            if meaning.kind in {"text", "empty"}:
                held = "is empty" if meaning.kind == "empty" else f"holds text ({self._shown(place)})"
                raise TableError(
                    f"column {self._name(place)!r} {held} and cannot be a feature. Encode it as numbers, or "
                    f"say classes={self._name(place)!r} or drop={self._name(place)!r}.",
                    self.account(),
                )
            is_open = meaning.kind == "undecided" or meaning.numbers is None
            self.roles[place] = ("undecided", meaning.question) if is_open else ("feature", meaning.note)

    def _settle_by_name(self, place: int) -> None:
        """Classes by their usual name; columns that merely number the rows; identifiers."""
        column, meaning = self.table.columns[place], self.meanings[place]
        if meaning.kind == "empty":
            self.roles[place] = ("left out", "empty")
        elif column.name.strip().lower() in _LABEL_NAMES and not self._having("classes"):
            distinct = len(set(column.cells.texts))
            is_certain = distinct <= self.table.n_rows // 2 or self.table.n_rows < _FEW_ROWS
            question = f"classes, with {distinct} different values in {self.table.n_rows} rows?"
            reason = f"{self._classes_text(place)} (by its name)"
            self.roles[place] = ("classes", reason) if is_certain else ("undecided", question)
        elif _is_whole(meaning) and (not column.has_name or _IDENTIFIER.fullmatch(column.name)):
            self._settle_identifier(place)

    def _settle_identifier(self, place: int) -> None:
        numbers = self.meanings[place].numbers
        assert numbers is not None  # noqa: S101 - whole numbers
        if np.all(np.diff(numbers) == 1.0) and (
            numbers[0] in {0.0, 1.0} or self.table.columns[place].has_name
        ):
            self.roles[place] = ("left out", "only numbers the rows")
        elif self.table.columns[place].has_name and len(np.unique(numbers)) == len(numbers):
            is_first = not self._having("names") and self.table.row_names is None
            self.roles[place] = (
                ("names", "identifiers by its name") if is_first else ("left out", "identifiers")
            )

    def _settle_names(self, place: int) -> None:
        """Text that differs in every row."""
        texts = self.table.columns[place].cells.texts
        if self.meanings[place].kind == "text" and len(set(texts)) == len(texts):
            if self._having("names") or self.table.row_names is not None:
                self.roles[place] = ("left out", "text, another in every row")
            else:
                self.roles[place] = ("names", "text, another in every row: names the rows")

    def _settle_others(self, place: int) -> None:
        meaning = self.meanings[place]
        if meaning.kind == "undecided" and self.wishes.features is None:
            self.roles[place] = ("undecided", meaning.question)
        elif meaning.kind == "date":
            what = meaning.note or meaning.question
            self.roles[place] = (
                "left out",
                f"dates or times (as a feature: {what})",
            )
        elif meaning.kind in {"number", "undecided"}:
            numbers = meaning.numbers
            if self.wishes.features is not None:
                self.roles[place] = ("left out", "not among the features")
            elif (
                numbers is not None
                and np.nanmin(numbers) == np.nanmax(numbers)
                and not np.isnan(numbers).any()
            ):
                self.roles[place] = ("left out", f"constant: always {self._shown(place)}")
                self.warnings.append(f"column {self._name(place)!r} is constant and is left out.")
            else:
                self.roles[place] = ("feature", meaning.note)

    def _settle_texts(self, place: int) -> None:
        """What is left is text that repeats: classes, if it is the only one and they are few."""
        n_rows = self.table.n_rows
        others = [other for other in range(len(self.meanings)) if other not in self.roles and other != place]
        distinct = len(set(self.table.columns[place].cells.texts))
        is_few = distinct <= n_rows // 2 or n_rows < _FEW_ROWS
        asked = [other for other, (role, _) in self.roles.items() if role == "undecided"]
        if self.wishes.features is not None:
            self.roles[place] = ("left out", "not among the features")
        elif others or asked or self._having("classes"):
            is_text = self.meanings[place].kind == "text"
            self.roles[place] = ("undecided", "text" if is_text else "numbers, classes or neither?")
        elif is_few:
            self.roles[place] = ("classes", f"{self._classes_text(place)} (the only column of text)")
        else:
            self.roles[place] = (
                "undecided",
                f"text with {distinct} different values in {n_rows} rows: names, classes or neither?",
            )

    def dataset(self) -> tuple[Dataset, TableAccount]:
        """The features as numbers, with all names, and the account of them."""
        features = self._having("feature")
        X = self._matrix(features)
        kept, note = self._kept_rows(X, features)
        if self.wishes.missing == "median" and np.isnan(X).any():
            X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
        X = X[kept]
        names = [self._name(place) for place in features]
        labels, label_names = self._labels(kept)
        dataset = Dataset(
            X=X,
            labels=labels,
            name=self.table.title,
            feature_names=tuple(names),
            description=self._description(len(X), len(names)),
            label_names=label_names,
            row_names=self._row_names(kept),
            index=None if self.table.index is None else self.table.index[kept],
        )
        return dataset, self.account(note)

    def account(self, *notes: str) -> TableAccount:
        """What was done so far."""
        columns = [
            ColumnAccount(
                column.name,
                *self.roles.get(place, ("undecided", "")),
                values=tuple(_cut(value) for value in column.cells.first_three),
                choices=tuple(self.meanings[place].choices),
            )
            for place, column in enumerate(self.table.columns)
        ]
        said = [*self.table.notes, *filter(None, notes)]
        if self.table.row_names is not None:
            said.append("The index of the frame names the rows.")
        return TableAccount(self.table.origin, tuple(columns), tuple(said), tuple(self.warnings))

    def _matrix(self, features: list[int]) -> FloatArray:
        """Features as floats, NaN where a value is missing; refuse what is there but no number."""
        wrong, columns = [], []
        for place in features:
            numbers, cells = self.meanings[place].numbers, self.table.columns[place].cells
            assert numbers is not None  # noqa: S101 - features have numbers
            columns.append(numbers)
            wrong += [
                f"{self.table.row(row)}, column {self._name(place)!r} ({_cut(cells.texts[row])!r})"
                for row in np.flatnonzero(~np.isfinite(numbers)).tolist()
                if not is_missing(cells.texts[row])
            ]
        if wrong:
            raise TableError(
                f"{_count(len(wrong), 'value')} that cannot be read as a number: {listed(wrong)}. Correct "
                "these cells or empty them, drop the column with drop=…, or keep it with classes=….",
                self.account(),
            )
        return np.column_stack(columns)

    def _kept_rows(self, X: FloatArray, features: list[int]) -> tuple[NDArray[np.bool_], str]:
        """Rows to keep, and what to note; refuse gaps if nobody said what to do."""
        gaps = np.isnan(X)
        classes = self._having("classes")
        unknown = np.zeros(len(X), dtype=bool)
        if classes:
            unknown |= [is_missing(text) for text in self.table.columns[classes[0]].cells.texts]
        if self.wishes.missing == "drop rows":
            lost = gaps.any(axis=1) | unknown
            if len(X) - lost.sum() < 2:
                raise TableError(
                    f"only {len(X) - lost.sum()} row(s) have no missing value; clustering needs at least 2."
                )
            verb = "is" if lost.sum() == 1 else "are"
            note = f"{_count(int(lost.sum()), 'row')} with missing values {verb} left out."
            return ~lost, note if lost.any() else ""
        if gaps.any() and self.wishes.missing == "refuse":
            raise self._gaps_error(gaps, features, gaps.any(axis=1) | unknown)
        if unknown.any():
            empty = [self.table.row(row) for row in np.flatnonzero(unknown).tolist()]
            raise TableError(
                f"column {self._name(classes[0])!r}, read as the known classes, is empty in "
                f"{listed(empty)}. Fill these cells, leave the rows out, {self._code(missing='drop rows')}, "
                f"or drop the column, {self._code(drop=[self._name(classes[0])])}.",
                self.account(),
                int(unknown.sum()),
            )
        verb = "is" if gaps.sum() == 1 else "are"
        note = f"{_count(int(gaps.sum()), 'missing value')} {verb} the column's median." if gaps.any() else ""
        return np.ones(len(X), dtype=bool), note

    def _gaps_error(
        self, gaps: NDArray[np.bool_], features: list[int], lost: NDArray[np.bool_]
    ) -> TableError:
        places = [(features[column], row) for column, row in np.argwhere(gaps.T).tolist()]
        told = [f"{self.table.row(row)}, column {self._name(place)!r}" for place, row in places]
        counts = gaps.sum(axis=0)
        by_column = [
            f"{self._name(place)!r} {count}" for place, count in zip(features, counts, strict=True) if count
        ]
        gappy = [self._name(place) for place, count in zip(features, counts, strict=True) if count]
        problem = f"{_count(len(told), 'missing value')}: {listed(told)}"
        return TableError(
            f"{problem}. By column: {listed(by_column, ', ')}. Leave the {_count(int(lost.sum()), 'row')} "
            f"out: {self._code(missing='drop rows')}; or the columns: "
            f"{self._code(drop=gappy[:_MOST_REPORTED])}; or put the column's median there: "
            f"{self._code(missing='median')}.",
            self.account(),
            int(lost.sum()),
            problem,
        )

    def _labels(self, kept: NDArray[np.bool_]) -> tuple[NDArray[np.intp] | None, tuple[str, ...] | None]:
        chosen = self._having("classes")
        if not chosen:
            return None, None
        texts = self.table.columns[chosen[0]].cells.texts
        texts = [texts[row] for row in np.flatnonzero(kept).tolist()]
        # Not as an array of text, where one long cell would make every one as long.
        names = sorted(set(texts))
        places = {name: place for place, name in enumerate(names)}
        values = np.array([places[text] for text in texts], dtype=np.intp)
        return values, tuple(distinct_names([short_name(name) for name in names]))

    def _row_names(self, kept: NDArray[np.bool_]) -> tuple[str, ...] | None:
        chosen = self._having("names")
        names: Sequence[str] | None = self.table.row_names
        if chosen:
            texts = self.table.columns[chosen[0]].cells.texts
            names = [short_name(text) or str(row + 1) for row, text in enumerate(texts)]
        return None if names is None else tuple(names[row] for row in np.flatnonzero(kept).tolist())

    def _description(self, n_rows: int, n_features: int) -> str:
        parts = [f"{n_rows} rows, {n_features} numeric columns"]
        parts += [f"column {self._name(place)} names the objects" for place in self._having("names")]
        parts += [f"known classes from column {self._name(place)}" for place in self._having("classes")]
        gone = [self._name(place) for place in self._having("left out")]
        if gone:
            parts.append(f"left out: {listed(gone, ', ')}")
        return f"Read from {self.table.origin}: {'; '.join(parts)}."

    def _questions(self, places: list[int]) -> str:
        """What only the user can know, with three values of each column and the choices as code."""
        texts = [place for place in places if self.roles[place][1] == "text"]
        told = []
        if texts:
            names = ", ".join(repr(self._name(place)) for place in texts[:_MOST_REPORTED])
            shown = listed([f"{self._name(place)!r}: {self._shown(place)}" for place in texts])
            verb = "columns {} hold text" if len(texts) > 1 else "column {} holds text"
            told.append(
                f"{verb.format(names)} ({shown}), which may be classes, names or neither. Say which: "
                f"{self._code(classes=self._name(texts[0]))}, names=…, or drop=[…] for what is to be left out"
            )
        for place in [place for place in places if place not in texts][:2]:
            name, meaning = self._name(place), self.meanings[place]
            ways = [
                f'read_as={{"{name}": "{way}"}} ({gives or way})' for way, gives in meaning.choices.items()
            ]
            ways += [f'classes="{name}"', f'names="{name}"', f'drop="{name}"']
            told.append(
                f"column {name!r} ({self._shown(place)}): {self.roles[place][1]} Say {', or '.join(ways)}"
            )
        return ". ".join(told) + "."

    def _asked(self, places: list[int]) -> str:
        """The same in short, for where controls offer the choices."""
        told = [f"{self._name(place)!r} ({self._shown(place)})" for place in sorted(places)]
        return f"it is not certain what to make of {listed(told)}"

    def _having(self, role: str) -> list[int]:
        return sorted(place for place, (given, _) in self.roles.items() if given == role)

    def _name(self, place: int) -> str:
        return self.table.columns[place].name

    def _shown(self, place: int) -> str:
        return ", ".join(repr(_cut(value)) for value in self.table.columns[place].cells.first_three)

    def _classes_text(self, place: int) -> str:
        values = sorted({text for text in self.table.columns[place].cells.texts if not is_missing(text)})
        return f"{_count(len(values), 'class', 'classes')}: {listed([_cut(value) for value in values], ', ')}"

    def _code(self, **arguments: object) -> str:
        """A line of code that reads the table with a further argument."""
        spelled = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()]
        return f"ew.read_table({self.table.spelled}, {', '.join(spelled)})"


def _is_whole(meaning: Meaning) -> bool:
    numbers = meaning.numbers
    return meaning.kind == "number" and numbers is not None and bool(np.all(numbers == np.round(numbers)))


def _cut(text: str, most: int = 24) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def listed(parts: list[str], between: str = "; ") -> str:
    """The first few of many parts, and how many there are besides."""
    more = len(parts) - _MOST_REPORTED
    return between.join(parts[:_MOST_REPORTED]) + (f"{between}and {more} more" if more > 0 else "")


def _count(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"
