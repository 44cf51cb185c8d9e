"""The command line, without starting a server (tests/browser does that)."""

import stat
import sys
from pathlib import Path

import pytest

from ewens_widgets import Sampler, __version__, app
from ewens_widgets.app import command_line


@pytest.fixture
def lab_calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Arguments that JupyterLab would have been started with."""
    calls: list[list[str]] = []
    monkeypatch.setattr("jupyterlab.labapp.main", calls.append)
    monkeypatch.setattr(command_line, "start_compiling", lambda: None)
    return calls


def test_lab_compiles_in_the_background(
    tmp_path: Path, lab_calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    monkeypatch.setattr(command_line, "start_compiling", lambda: order.append("compiler"))
    monkeypatch.setattr("jupyterlab.labapp.main", lambda _: order.append("lab"))
    assert app.main(["lab", "--directory", str(tmp_path)]) == 0
    assert order == ["compiler", "lab"]
    assert lab_calls == []


def test_what_runs_in_the_background_is_all_kinds_of_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr("ewens_widgets.sampling.cold_start.run_aside", commands.append)
    command_line.start_compiling()
    ((interpreter, option, code),) = commands
    assert (interpreter, option) == (sys.executable, "-c")
    compiled: list[tuple[bool, str, str]] = []

    def record(sampler: Sampler, **_: object) -> None:
        posterior = sampler.posterior
        compiled.append((posterior.columns.has_categories, sampler.move_names[-1], posterior.shapes))

    monkeypatch.setattr(Sampler, "compile", record)
    assert code == "from ewens_widgets.app.command_line import compile_chains; compile_chains()"
    command_line.compile_chains()
    assert compiled[0] == (False, "gibbs", "common")
    assert len(set(compiled)) == len(compiled) == 8


def test_lab_opens_the_quickstart_on_copies(
    tmp_path: Path, lab_calls: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "course"
    assert app.main(["lab", "--directory", str(directory), "--port", "8899", "--no-browser"]) == 0
    (arguments,) = lab_calls
    assert "--LabApp.default_url=/lab/tree/01_quickstart.ipynb" in arguments
    assert f"--ServerApp.root_dir={directory}" in arguments
    assert "--ServerApp.port=8899" in arguments
    assert "--no-browser" in arguments
    shipped = sorted(path.name for path in app.shipped_tutorials().glob("*.ipynb"))
    assert sorted(path.name for path in directory.iterdir()) == shipped
    assert f"Copied {len(shipped)} tutorial" in capsys.readouterr().out


def test_copies_go_to_a_folder_of_this_version_in_the_home_directory(
    tmp_path: Path, lab_calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert app.main(["lab"]) == 0
    assert (tmp_path / f"ewens-widgets-tutorials-{__version__}" / "01_quickstart.ipynb").is_file()
    assert "--no-browser" not in lab_calls[0]


def test_a_changed_tutorial_is_kept(tmp_path: Path, lab_calls: list[list[str]]) -> None:
    mine = tmp_path / "01_quickstart.ipynb"
    mine.write_text("my notes")
    assert app.main(["lab", "--directory", str(tmp_path)]) == 0
    assert mine.read_text() == "my notes"


def test_copies_of_read_only_tutorials_can_be_changed(tmp_path: Path) -> None:
    source, target = tmp_path / "shipped", tmp_path / "mine"
    source.mkdir()
    original = source / "01_quickstart.ipynb"
    original.write_text("{}")
    original.chmod(stat.S_IRUSR)
    assert app.copy_tutorials(source, target) == 1
    assert (target / original.name).stat().st_mode & stat.S_IWUSR


def test_the_checkout_is_opened_in_place(
    lab_calls: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = app.shipped_tutorials()
    assert app.main(["lab", "--directory", str(folder)]) == 0
    assert f"--ServerApp.root_dir={folder}" in lab_calls[0]
    assert "Copied" not in capsys.readouterr().out


@pytest.mark.parametrize(("command", "title"), [("lab", "JupyterLab"), ("app", "Voilà")])
def test_what_to_install_is_said(
    command: str, title: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "find_spec", lambda _: None)
    assert app.main([command]) == 1
    assert f'{title} is not installed. Install it:  python -m pip install "ewens-widgets[lab]"' in (
        capsys.readouterr().err
    )


def test_a_folder_that_cannot_be_made_is_named(
    tmp_path: Path, lab_calls: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert app.main(["lab", "--directory", str(file / "course")]) == 1
    message = capsys.readouterr().err
    assert str(file / "course") in message
    assert "--directory DIR" in message
    assert lab_calls == []


def test_a_damaged_installation_is_named(
    tmp_path: Path,
    lab_calls: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command_line, "__file__", str(tmp_path / "package" / "app" / "command_line.py"))
    assert app.main(["lab", "--directory", str(tmp_path / "course")]) == 1
    assert "--force-reinstall" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option", "values", "what"),
    [
        ("lab", "port", ["http", "-1", "65536", "8888.0", ""], "a port"),
        ("app", "visitors", ["0", "-1", "few", "2.5", ""], "a whole number above 0"),
        ("app", "idle", ["0", "-3", "soon", "nan", "inf"], "a number above 0"),
    ],
)
def test_wrong_values_of_options_are_refused(
    command: str, option: str, values: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in values:
        with pytest.raises(SystemExit) as stop:
            app.main([command, f"--{option}={value}"])
        assert stop.value.code == 2
        assert f"{value!r} is not {what}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--help"], ["commands:", "lab", "examples:", "--no-browser"]),
        (
            ["lab", "--help"],
            ["--directory DIR", "--port", "--no-browser", "Ctrl-C", "copied to a folder of yours"],
        ),
        (
            ["app", "--help"],
            [
                "--visitors N",
                "--idle MINUTES",
                "--port",
                "--data NAME",
                "localhost only",
                "Visitors see no code and cannot run any",
            ],
        ),
        (["--version"], [__version__]),
    ],
)
def test_help_and_version(
    arguments: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        app.main(arguments)
    assert stop.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in expected:
        assert words in shown


def test_without_a_command_it_shows_how_to_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        app.main([])
    assert stop.value.code == 2
    assert "usage: ewens-widgets" in capsys.readouterr().err
