"""The form of the notebooks, and that nbval would notice a wrong output (`make notebooks` runs them all)."""

import ast
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import numpy as np
import pytest
from sklearn.cluster import KMeans

import ewens_widgets as ew
from ewens_widgets import course

REPOSITORY = Path(__file__).resolve().parent.parent
SANITIZE = REPOSITORY / "tests" / "nbval_sanitize.cfg"
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))

INDEX = REPOSITORY / "notebooks" / "00_index.ipynb"
CLASSROOM = REPOSITORY / "notebooks" / "18_classroom.ipynb"
TEACHERS = REPOSITORY / "docs" / "classroom.md"
SOLUTIONS = REPOSITORY / "docs" / "solutions.md"
# What scripts/check_lessons.py defines: the form of a lesson.
LESSONS = SimpleNamespace(**runpy.run_path(str(REPOSITORY / "scripts" / "check_lessons.py")))

MANY_BYTES = 60_000
MANY_BYTES_WITH_PICTURES = 900_000
MANY_CODE_CELLS = 15
MANY_CODE_LINES = 150
MANY_LINES_OF_A_FUNCTION = 10


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def without_pictures(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    for cell in code_cells(notebook):
        for output in cell.outputs:
            shown = output.get("data", {})
            shown.pop("image/png", None)
            # An animation is stored as HTML.
            if "data:image/gif" in shown.get("text/html", ""):
                del shown["text/html"]
    return notebook


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> nbformat.NotebookNode:
    notebook = nbformat.read(request.param, as_version=4)
    nbformat.validate(notebook)
    return notebook


def markdown(notebook: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def links(notebook: nbformat.NotebookNode) -> set[str]:
    """Links to files, without those to the web and within the page."""
    return set(re.findall(r"\]\((?!https?://|#)([^)#\s]+)", markdown(notebook)))


def test_notebooks_are_numbered_and_the_index_has_them_with_their_minutes() -> None:
    names = [path.name for path in NOTEBOOKS]
    assert "01_quickstart.ipynb" in names
    numbers = [int(name[:2]) for name in names]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0
    index = nbformat.read(INDEX, as_version=4)
    assert set(names) - {INDEX.name} <= links(index)
    for path in NOTEBOOKS:
        (first, *_) = nbformat.read(path, as_version=4).cells
        (said,) = re.findall(r"^\*About (\d+) minutes", first.source, re.MULTILINE)
        if path != INDEX:
            row = rf"\({path.name}\) \|.*\| (\d+) \|$"
            assert re.findall(row, markdown(index), re.MULTILINE) == [said]


def test_a_preview_without_a_kernel_shows_results_of_one_run(notebook: nbformat.NotebookNode) -> None:
    # Notebooks are copied to the user's folder, so nothing outside of theirs can be linked to.
    assert links(notebook) <= {path.name for path in NOTEBOOKS}
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    # The first cell may only import, the others have something to show.
    assert sum(bool(cell.outputs) for cell in cells) >= len(cells) - 1
    outputs = [output for cell in cells for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert all(output.output_type != "error" for output in outputs)
    assert all(output.get("name") != "stderr" for output in outputs)
    # The state of widgets is large, changes with every run, and a kernel makes it again. A widget without its
    # kernel is an error message; its still picture is shown instead.
    assert set(notebook.metadata) <= {"kernelspec", "language_info"}
    assert all(set(cell.metadata) <= {"jupyter", "slideshow", "tags"} for cell in notebook.cells)
    assert not any("widget" in kind for output in outputs for kind in output.get("data", {}))


def test_notebooks_stay_short_and_their_last_cell_asserts_what_they_claim(
    notebook: nbformat.NotebookNode,
) -> None:
    cells = code_cells(notebook)
    assert len(cells) <= MANY_CODE_CELLS
    assert sum(len(cell.source.splitlines()) for cell in cells) <= MANY_CODE_LINES
    assert sum(cell.cell_type == "markdown" for cell in notebook.cells) >= len(cells)
    for cell in cells:
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < MANY_LINES_OF_A_FUNCTION, node.name
    last = notebook.cells[-1]
    assert last.cell_type == "code"
    assert "assert " in last.source
    assert len(json.dumps(notebook)) < MANY_BYTES_WITH_PICTURES
    assert len(json.dumps(without_pictures(notebook))) < MANY_BYTES


def test_every_lesson_has_the_form_of_a_lesson() -> None:
    assert LESSONS.faults(NOTEBOOKS) == []


def broken(name: str, old: str, new: str, tmp_path: Path) -> list[str]:
    """Faults of a lesson in which a text was replaced."""
    source = (REPOSITORY / "notebooks" / name).read_text(encoding="utf-8")
    assert old in source
    path = tmp_path / name
    path.write_text(source.replace(old, new), encoding="utf-8")
    return [fault.removeprefix(f"{name}: ") for fault in LESSONS.faults([path])]


NO_EXERCISE = "no exercise by hand with a solution that folds out, or none with code"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("After this lesson you can", "You learn", "no list of 3 objectives"),
        ("predict(my_guess)", "print(my_guess)", "no prediction before a result"),
        ("**Predict first.**", "**Now.**", "no prediction before a result"),
        ("reveal(my_guess", "print(my_guess", "no prediction before a result"),
        ("(by hand).**", "(easy).**", NO_EXERCISE),
        ("(with code).**", "(easy).**", NO_EXERCISE),
        ('"source_hidden": true', '"source_hidden": false', "the first cell of code is not collapsed"),
        ('"source_hidden": true', '"source_hidden": false', "the last cell of code is not collapsed"),
        ('"alt": "Figure 4.1.', '"alt": "Picture.', "the alternative text of figure 4.1 is not its caption"),
        ("<details>", "", NO_EXERCISE),
        ("## Summary", "## End", "no summary of 3 lines"),
        ("## Further reading", "## More", "no further reading with a citation"),
        ("*Figure 4.1.", "*Figure 4.7.", "no caption of figure 4.1"),
        (r"check(\"04.E2\"", r"check(\"04.E3\"", "exercises ['E1', 'E2'], of which ['E1', 'E3'] are checked"),
        ("[**nat**]", "[nat]", "does not define nat in bold, with a link to the glossary"),
        ("of two objects", "of a Markov chain", "'Markov chain' is defined in lesson 07: "),
    ],
)
def test_a_lesson_without_a_part_is_reported(old: str, new: str, fault: str, tmp_path: Path) -> None:
    assert any(found.startswith(fault) for found in broken("04_likelihood_by_hand.ipynb", old, new, tmp_path))


def test_the_index_ends_with_the_glossary() -> None:
    rows = LESSONS.ROW.findall(LESSONS.GLOSSARY.read_text(encoding="utf-8"))
    assert len(rows) > 35
    assert LESSONS.ROW.findall(markdown(nbformat.read(INDEX, as_version=4))) == rows


@pytest.mark.slow
def test_nbval_rejects_a_corrupted_output_and_accepts_another_address(tmp_path: Path) -> None:
    code = "import numpy as np\nprint(np.mean([1, 2, 4]).round(3), hex(id(np)))"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for name, output in (("right", "2.333 0x7f0000000000\n"), ("wrong", "2.334 0x7f0000000000\n")):
        cell = nbformat.v4.new_code_cell(code, execution_count=1)
        cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=output)]
        notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    command += ["--nbval", "--nbval-sanitize-with", str(SANITIZE), str(tmp_path)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in result.stdout, result.stdout + result.stderr
    assert "wrong.ipynb" in result.stdout
    assert "2.334" in result.stdout


def classroom_questions(kind: str) -> list[str]:
    """Names of the questions (Q) or exercises (E) of the lesson."""
    text = markdown(nbformat.read(CLASSROOM, as_version=4))
    return re.findall(rf"^\*\*({kind}\d+)\.\*\*", text, re.MULTILINE)


def for_teachers() -> dict[str, str]:
    """What the teachers' page says about each question and exercise, by its name."""
    page = TEACHERS.read_text(encoding="utf-8")
    _, *parts = re.split(r"^\*\*([QE]\d+)\.\*\*|^## ", page, flags=re.MULTILINE)
    return {name: text for name, text in zip(parts[::2], parts[1::2], strict=True) if name}


def solutions() -> list[tuple[str, float, str]]:
    """Name, number and code of each solution on the two pages for teachers."""
    pattern = re.compile(r"\bSolution: (-?[\d.]*\d).*?```python\n(.*?)```", re.DOTALL)
    texts = {f"18.{name}": text for name, text in for_teachers().items() if name.startswith("E")}
    _, *parts = re.split(
        r"^\*\*(\d\d\.E\d+)\.\*\*", SOLUTIONS.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    texts.update(zip(parts[::2], parts[1::2], strict=True))
    found = []
    for name, text in texts.items():
        (number, code) = pattern.findall(text)[0]
        found.append((name, float(number), code))
    return found


def test_the_teachers_page_answers_every_question_and_exercise() -> None:
    questions, exercises = classroom_questions("Q"), classroom_questions("E")
    assert len(questions) >= 6
    assert len(exercises) >= 4
    answers = for_teachers()
    assert sorted(answers) == sorted(questions + exercises)
    for name in questions:
        shown, _, hidden = answers[name].partition("\n> ")
        assert shown.strip().endswith("?")
        assert hidden.strip()


def test_students_do_not_see_the_answers() -> None:
    notebook = nbformat.read(CLASSROOM, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "<details>" not in text
    assert "solution" not in text.lower()
    for name, right, _ in solutions():
        # Zero is everywhere, and says nothing.
        if name.startswith("18"):
            assert right == 0.0 or str(right) not in json.dumps(without_pictures(notebook)), name
    for name in classroom_questions("Q"):
        words = for_teachers()[name].partition("\n> ")[2].replace("\n> ", " ").split()
        assert " ".join(words[:6]) not in text


def test_every_exercise_has_a_solution_and_every_solution_an_exercise() -> None:
    set_in_lessons = {
        name
        for path in NOTEBOOKS
        for name in re.findall(r'check\("(\d\d\.E\d+)"', LESSONS.code(LESSONS.cells_of(path)))
    }
    assert set(course.DIGESTS) == {name for name, _, _ in solutions()} == set_in_lessons


@pytest.mark.slow
@pytest.mark.parametrize("solution", solutions(), ids=lambda solution: solution[0])
def test_solutions_are_right(solution: tuple[str, float, str], capsys: pytest.CaptureFixture[str]) -> None:
    name, number, code = solution
    names = {"np": np, "ew": ew, "KMeans": KMeans, "check": course.check}
    exec(compile(code, name, "exec"), names)  # noqa: S102 - our own text, to be tried
    course.check(name, number)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) >= 2
    assert set(printed) == {f"{name}: right"}


def test_wrong_answers_are_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    for name, right, _ in solutions():
        step, _ = course.DIGESTS[name]
        for shift in (-4, 4):
            course.check(name, right + shift * step)
            assert capsys.readouterr().out == f"{name}: not yet, try again\n"
        course.check(name, None)
        assert capsys.readouterr().out == f"{name}: no answer yet\n"
    with pytest.raises(ValueError, match="there is no exercise"):
        course.check("99.E1", 1.0)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        *((right, "right") for right in (966, "966", " 1932/2", 966.0, np.array([966]), np.int64(966))),
        *((bad, "write one number") for bad in ("many", (966,), [9, 6], np.zeros(2), float("nan"), "1/0")),
        ("1/3", "not yet"),
    ],
)
def test_an_answer_may_be_written_in_several_ways(
    answer: Any,  # noqa: ANN401 - whatever a student may write
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    course.check("02.E2", answer)
    assert capsys.readouterr().out.startswith(f"02.E2: {said}")


def test_guesses_are_shown_beside_results_and_new_digests_recognise_answers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    course.predict(None)
    course.reveal(None, 3.776)
    course.predict("B")
    course.reveal("B", "A")
    line = course.digest("99.E1", 0.25, 0.01)
    monkeypatch.setattr(course, "DIGESTS", ast.literal_eval("{" + line + "}"))
    course.check("99.E1", 0.26)
    printed = capsys.readouterr().out
    for said in ("No guess yet", "is 3.78.\n", "is A; your guess was B.\n", "99.E1: right\n"):
        assert said in printed


@pytest.mark.slow
def test_the_planted_faults_are_found_by_the_exact_posterior_and_the_right_kernel_passes() -> None:
    lesson: dict[str, Any] = {"np": np, "ew": ew}
    kernels: dict[str, Any] = {"np": np}
    page = (REPOSITORY / "docs" / "teaching.md").read_text(encoding="utf-8")
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, kernels)  # noqa: S102 - our own text, to be tried
    for cell in code_cells(nbformat.read(REPOSITORY / "notebooks" / "07_markov_chains.ipynb", as_version=4)):
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef) and node.name in ("options", "algorithm_1"):
                exec(ast.unparse(node), lesson)  # noqa: S102 - our own text, to be tried
    options = lesson["options"]
    exact = ew.exact_posterior(ew.datasets.unit_square(seed=0).X[[0, 1, 2, 60, 61, 62]], model="I")
    places = {tuple(map(int, labels)): row for row, labels in enumerate(exact.labels)}
    table = {labels: np.log(exact.probabilities[row]) for labels, row in places.items()}
    rng, off = np.random.default_rng(0), {}
    for name, draws in {
        "right": lesson["algorithm_1"](table, 6, 40_000, rng),
        "A": kernels["kernel_a"](table, options, 6, 40_000, rng),
        "B": kernels["kernel_b"](table, options, 6, 40_000, rng),
    }.items():
        shares = np.bincount([places[labels] for labels in draws], minlength=203) / len(draws)
        off[name] = np.abs(shares - exact.probabilities).sum() / 2
    assert off["right"] < 0.05
    assert min(off["A"], off["B"]) > 0.1


@pytest.mark.slow
def test_the_handout_is_one_page(tmp_path: Path) -> None:
    command = [sys.executable, REPOSITORY / "scripts" / "handout.py", tmp_path / "handout.pdf"]
    subprocess.run(command, check=True, capture_output=True)
    assert len(re.findall(rb"/Type /Page\b", (tmp_path / "handout.pdf").read_bytes())) == 1


def test_the_classroom_notebook_is_a_deck() -> None:
    cells = nbformat.read(CLASSROOM, 4).cells
    starts = [cell.metadata.get("slideshow", {}).get("slide_type") for cell in cells]
    assert starts.count("slide") >= 8
    assert starts[-1] == "skip"
