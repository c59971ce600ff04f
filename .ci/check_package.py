"""Build the package and check it.

python .ci/check_package.py DIST

Builds the source distribution, and from it the wheel, into the folder DIST. Then checks their
metadata and contents, installs the wheel in a fresh environment and runs the demo there, outside of
the checkout. Needs the packages build and twine.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(folder: Path) -> None:
    """Build both distributions into an empty folder and check them."""
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} has files already: give an empty folder, or one that doesn't exist.")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(folder.iterdir()))
    (wheel,) = folder.glob("*.whl")
    check_contents(wheel)
    check_description(wheel)
    with tempfile.TemporaryDirectory() as elsewhere:
        check_installed(wheel, Path(elsewhere))


def run(*command: object, folder: Path | None = None) -> str:
    """Run a command in a folder, without this environment's packages; return its output."""
    settings = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, env=settings, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def check_contents(wheel: Path) -> None:
    """The wheel has the package's own files and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*.*")}
    expected = {path.as_posix() for path in files if path.suffix in {".py", ".typed", ".html"}}
    assert "notsorandom/py.typed" in names
    assert names == expected, f"{wheel} differs from src in {sorted(names ^ expected)}"


def check_description(wheel: Path) -> None:
    """Links of the README lead somewhere from the package page too."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        _, description = archive.read(metadata).decode().split("\n\n", 1)
    relative = re.findall(r"\]\((?!https?:|#)[^)]*\)", description)
    assert not relative, f"the package page has relative links: {relative}"


def check_installed(wheel: Path, folder: Path) -> None:
    """Alone, the wheel's dependencies are enough for the demo; with matplotlib it draws."""
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    for extra in ("", "[plot]"):
        run(programs / "python", "-m", "pip", "install", "-q", f"{wheel.resolve()}{extra}")
        output = run(programs / "notsorandom", "demo", "-o", "picture.png", folder=folder)
        assert "100 features" in output, output
        assert (folder / "picture.png").exists() == bool(extra), output
    version = run(programs / "notsorandom", "--version").split()[1]
    assert f"-{version}-" in wheel.name, f"{wheel} says that it is {version}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
