"""What a stranger looks for: workflows, packages, citation, releases, one account."""

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jinja2 import Template
from packaging.requirements import Requirement
from ruamel.yaml import YAML

Script = Callable[[str], ModuleType]
ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = ["ci", "docs", "nightly", "release"]


def read(name: str, folder: Path = ROOT) -> str:
    return (folder / name).read_text(encoding="utf-8")


def load(name: str, folder: Path = ROOT) -> Any:  # noqa: ANN401 - whatever a file holds
    """What a YAML file, or one in JSON, holds."""
    return YAML(typ="safe").load(read(name, folder))


PROJECT = tomllib.loads(read("pyproject.toml"))["project"]


def commands(name: str) -> Iterator[str]:
    """What a workflow runs, with each choice of its matrices."""
    for job in load(f".github/workflows/{name}.yml")["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        choices = matrix.get("include") or [
            dict(zip(matrix, one, strict=True)) for one in product(*matrix.values())
        ]
        for step, choice in product(job["steps"], choices):
            yield re.sub(
                r"\$\{\{ matrix\.(\w+) \}\}", lambda found, of=choice: of[found[1]], step.get("run", "")
            )


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("vendor.github-workflows", ".github/workflows/*.yml"),
        ("custom.github-workflows-require-timeout", ".github/workflows/*.yml"),
        ("vendor.dependabot", ".github/dependabot.yml"),
        ("vendor.github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("vendor.citation-file-format", "CITATION.cff"),
    ],
)
def test_files_follow_their_schemas(schema: str, pattern: str) -> None:
    files = [str(path) for path in ROOT.glob(pattern)]
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_workflows_have_no_known_holes(tmp_path: Path) -> None:
    """Actions are pinned by commit, no job may write unless it says so, and no text of others is run."""
    folder = shutil.copytree(ROOT / ".github", tmp_path / ".github")
    command = [Path(sys.executable).with_name("zizmor"), "--offline", "--no-progress", folder]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    path = folder / "workflows" / "release.yml"
    path.write_text(path.read_text(encoding="utf-8").replace('TAG="$TAG"', "TAG=${{ github.ref_name }}"))
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode > 10
    assert "template-injection" in found.stdout


# Quick, and without a network. The others take long, and `make test` itself runs most of them.
RUN_HERE = {"make lint", "make notes"}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKFLOWS)
def test_make_can_do_what_workflows_ask_for(name: str) -> None:
    assert sorted(path.stem for path in (ROOT / ".github/workflows").iterdir()) == WORKFLOWS
    asked = {command for command in commands(name) if "make " in command}
    assert asked
    # This environment has everything: nothing is installed into it.
    stamps = (f"--assume-old={sys.prefix}/.installed-{kind}" for kind in ("lab", "test", "browser"))
    options = f"VENV={sys.prefix} {' '.join(stamps)}"
    for command in sorted(asked):
        tried = options if command in RUN_HERE else f"--dry-run {options}"
        done = subprocess.run(
            ["bash", "-ec", f'make() {{ command make {tried} "$@"; }}\n{command}'],  # noqa: S607
            cwd=ROOT,
            env={**os.environ, "TAG": "v0.0.0"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_systems_without_make_run_the_fast_tests() -> None:
    (fast,) = re.findall(r"^fast:.*\n\t.* -m (\".*\")", read("Makefile"), re.MULTILINE)
    assert f"python -m pytest -q -p no:nbval -m {fast}" in set(commands("ci"))


def test_the_supported_versions_are_the_tested_ones() -> None:
    jobs = load(".github/workflows/ci.yml")["jobs"]
    for python in ("3.11", "3.12", "3.13", "3.14"):
        assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
        assert python in {one["python"] for one in jobs["tests"]["strategy"]["matrix"]["include"]}
        assert python in jobs["packages"]["strategy"]["matrix"]["python"]


def test_the_account_has_one_name_everywhere(script: Script) -> None:
    address = script("address")
    names = [str(path.relative_to(ROOT)) for path in address.files(ROOT) if path.suffix != ".py"]
    named = {name: owners for name in names if (owners := address.owners(read(name)))}
    expected = {"README.md", "pyproject.toml", "CITATION.cff", ".github/CODEOWNERS", "recipe/meta.yaml"}
    assert expected <= set(named)
    assert set.union(*named.values()) == {address.owner(read("pyproject.toml"))}, named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://github.com/OWNER/ewens_widgets/issues", "https://github.com/me-too/ewens_widgets/issues"),
        ("https://OWNER.github.io/ewens_widgets/", "https://me-too.github.io/ewens_widgets/"),
        ("mybinder.org/v2/gh/OWNER/ewens_widgets/HEAD", "mybinder.org/v2/gh/me-too/ewens_widgets/HEAD"),
        ("* @OWNER", "* @me-too"),
        ("https://github.com/somebody/else", "https://github.com/somebody/else"),
    ],
)
def test_an_address_is_set_where_it_stands(script: Script, text: str, expected: str) -> None:
    assert script("address").renamed(text, "me-too") == expected


def test_a_release_writes_version_and_date_everywhere(tmp_path: Path, script: Script) -> None:
    release = script("release")
    for name in ("ewens_widgets/_version.py", "CITATION.cff", ".zenodo.json", "recipe/meta.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changes = re.sub(r"(?m)^## .*", "## 9.8.7 (not released yet)", read("CHANGELOG.md"), count=1)
    (tmp_path / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    with pytest.raises(SystemExit, match="the package is"):
        release.check_tag(tmp_path, "v9.8.7")
    for _ in range(2):  # the same release, prepared again
        release.prepare(tmp_path, "9.8.7", "2031-02-03")
    release.check_tag(tmp_path, "v9.8.7")
    citation = load("CITATION.cff", tmp_path)
    assert (citation["version"], str(citation["date-released"])) == ("9.8.7", "2031-02-03")
    assert load(".zenodo.json", tmp_path)["version"] == "9.8.7"
    assert release.notes(tmp_path).startswith("###")
    with pytest.raises(SystemExit, match="what is new"):
        release.prepare(tmp_path, "9.8.8", "2031-02-04")


def test_citations_agree(script: Script) -> None:
    citation, zenodo = load("CITATION.cff"), load(".zenodo.json")
    assert citation["version"] == zenodo["version"] == script("release").current(ROOT)
    assert citation["title"] in zenodo["title"]
    assert citation["license"] == zenodo["license"] == "BSD-3-Clause"
    assert citation["references"][0]["doi"] in {one["identifier"] for one in zenodo["related_identifiers"]}


def test_the_recipe_asks_for_what_the_package_needs(script: Script) -> None:
    needed = {text.partition(";")[0].strip().replace(">=", " >=", 1) for text in PROJECT["dependencies"]}
    recipe = YAML(typ="safe").load(Template(read("recipe/meta.yaml")).render(PYTHON="python"))
    asked = {text.replace("matplotlib-base", "matplotlib") for text in recipe["requirements"]["run"]}
    assert asked == needed | {f"python {PROJECT['requires-python']}"}
    assert recipe["package"]["version"] == script("release").current(ROOT)


def test_the_image_copies_what_exists_and_compiles() -> None:
    """Building it is not possible everywhere; names of files and commands are checked."""
    image = read("binder/Dockerfile")
    names = re.findall(r"/opt/ewens_widgets/([\w./-]+)", image)
    assert names
    assert all((ROOT / name).exists() for name in names), names
    assert "ewens-widgets compile" in image
    assert image.index("USER ${NB_UID}") > image.index("USER root")


def test_the_paper_has_its_sections_and_references() -> None:
    paper = read("joss/paper.md")
    known = re.findall(r"^@\w+\{(\w+),", read("joss/paper.bib"), re.MULTILINE)
    assert set(re.findall(r"@([a-z_0-9]+)", paper)) == set(known)
    wanted = ["Summary", "Statement of need", "State of the field", "Software design"]
    wanted += ["Research impact statement", "AI usage disclosure"]
    assert re.findall(r"^# (.*)", paper, re.MULTILINE)[:6] == wanted
    assert 750 <= len(paper.split()) <= 1750


PACKAGED = {
    "ewens_widgets/py.typed",
    "ewens_widgets/partition.py",
    "ewens_widgets/data/leukemia.npz",
    "ewens_widgets/notebooks/01_quickstart.ipynb",
    "ewens_widgets/app/page/index.html.j2",
    "ewens_widgets/app/page/503.html",
}


def build(kind: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(folder)]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (path,) = folder.iterdir()
    return path


@pytest.mark.slow
def test_the_wheel_is_complete_and_that_of_the_source_archive_is_the_same(tmp_path: Path) -> None:
    wheel = build("wheel", ROOT, tmp_path / "wheel")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        needs = email.message_from_bytes(archive.read(metadata)).get_all("Requires-Dist", [])
    assert set(names) >= PACKAGED
    assert not [name for name in names if re.search(r"^tests|__pycache__|\.ipynb_checkpoints", name)]
    # In a browser numba is not asked for.
    (marker,) = (need.marker for need in map(Requirement, needs) if need.name == "numba")
    assert marker is not None
    assert not marker.evaluate({"sys_platform": "emscripten"})
    assert marker.evaluate({"sys_platform": "linux"})
    with tarfile.open(build("sdist", ROOT, tmp_path / "sdist")) as file:
        file.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert (unpacked / "Makefile").is_file()
    assert (unpacked / "LICENSE").is_file()
    assert zipfile.ZipFile(build("wheel", unpacked, tmp_path / "again")).namelist() == names
