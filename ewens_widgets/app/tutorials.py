"""Where the tutorials are, and copies of them that a user may change."""

import shutil
from pathlib import Path

from ewens_widgets.app.arguments import StartError

__all__ = ["FIRST_TUTORIAL", "copy_tutorials", "shipped_tutorials"]

FIRST_TUTORIAL = "01_quickstart.ipynb"


def shipped_tutorials() -> Path:
    """Folder of the tutorials that came with this installation (or checkout).

    Returns
    -------
    The folder; never write into it.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "notebooks", package.parent / "notebooks"):
        if (folder / FIRST_TUTORIAL).is_file():
            return folder
    raise StartError(
        f"The tutorials are missing beside {package}: this installation is damaged.\n"
        "Reinstall it:  python -m pip install --force-reinstall --no-deps ewens-widgets"
    )


def copy_tutorials(source: Path, directory: Path) -> int:
    """Copy the tutorials into a folder of the user's, keeping every file that is there already.

    Parameters
    ----------
    source
        Folder with the shipped notebooks.
    directory
        Where to put the copies; made if need be. Nothing is copied if it is the source itself.

    Returns
    -------
    How many notebooks were copied.
    """
    directory.mkdir(parents=True, exist_ok=True)
    missing = [path for path in sorted(source.glob("*.ipynb")) if not (directory / path.name).exists()]
    for path in missing:
        # Not shutil.copy: a read-only installation must not make read-only copies.
        shutil.copyfile(path, directory / path.name)
    return len(missing)
