"""The form of the notebooks, and that nbval would notice a wrong output (`make notebooks` runs them all)."""

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SANITIZE = REPOSITORY / "tests" / "nbval_sanitize.cfg"
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))

MANY_BYTES = 60_000
MANY_CODE_CELLS = 15
MANY_CODE_LINES = 120


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def without_pictures(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    for cell in code_cells(notebook):
        for output in cell.outputs:
            output.get("data", {}).pop("image/png", None)
    return notebook


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> nbformat.NotebookNode:
    notebook = nbformat.read(request.param, as_version=4)
    nbformat.validate(notebook)
    return notebook


def test_there_is_a_quickstart() -> None:
    assert "01_quickstart.ipynb" in {path.name for path in NOTEBOOKS}


def test_outputs_are_those_of_one_run_from_top_to_bottom(notebook: nbformat.NotebookNode) -> None:
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert all(output.output_type != "error" for output in outputs)
    assert all(output.get("name") != "stderr" for output in outputs)


def test_the_last_cell_asserts_what_the_text_claims(notebook: nbformat.NotebookNode) -> None:
    last = notebook.cells[-1]
    assert last.cell_type == "code"
    assert "assert " in last.source


def test_notebooks_stay_short(notebook: nbformat.NotebookNode) -> None:
    cells = code_cells(notebook)
    assert len(cells) <= MANY_CODE_CELLS
    assert sum(len(cell.source.splitlines()) for cell in cells) <= MANY_CODE_LINES
    assert sum(cell.cell_type == "markdown" for cell in notebook.cells) >= len(cells)
    assert len(json.dumps(without_pictures(notebook))) < MANY_BYTES


def nbval(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(path.parent)]
    command += ["--nbval", "--nbval-sanitize-with", str(SANITIZE), str(path)]
    return subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)


def small_notebook(tmp_path: Path, output: str) -> Path:
    """A notebook that prints a mean and an address, with the given text stored as its output."""
    code = "import numpy as np\nprint(np.mean([1, 2, 4]).round(3), hex(id(np)))"
    cell = nbformat.v4.new_code_cell(code, execution_count=1)
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=output)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    path = tmp_path / "small.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel}), path)
    return path


def test_nbval_accepts_the_right_output_at_another_address(tmp_path: Path) -> None:
    result = nbval(small_notebook(tmp_path, "2.333 0x7f0000000000\n"))
    assert result.returncode == 0, result.stdout + result.stderr


def test_nbval_rejects_a_corrupted_output(tmp_path: Path) -> None:
    result = nbval(small_notebook(tmp_path, "2.334 0x7f0000000000\n"))
    assert result.returncode == 1
    assert "2.334" in result.stdout
