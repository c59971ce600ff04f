#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2024.4.15"]
# ///
"""A command for each thing that CONTRIBUTING.md names; `nox -l` lists them."""

import nox

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format."""
    session.install("ruff>=0.9")
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Check types."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the default suite; arguments go to pytest."""
    session.install("-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session(default=False)
def slow(session: nox.Session) -> None:
    """Run all tests with all extras, the slow ones too."""
    session.install("-e", ".[dev]")
    env = {"OMP_NUM_THREADS": "1", "SCIPY_ARRAY_API": "1"}
    session.run("pytest", "-m", "slow or not slow", "--fail-on-skip", *session.posargs, env=env)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site into docs/_build/html."""
    session.install("-e", ".[docs]")
    session.run(*"python -m sphinx -W --keep-going -b html docs docs/_build/html".split())


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """Build the distributions into dist and check them."""
    session.install("build", "twine")
    session.run("python", ".ci/check_package.py", "dist")


@nox.session(default=False, venv_backend="none")
def ci(session: nox.Session) -> None:
    """Run what CI runs."""
    session.run("bash", ".ci/run", external=True)


if __name__ == "__main__":
    nox.main()
