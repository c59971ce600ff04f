import pytest

from notsorandom.cli import main


@pytest.fixture
def run(folder, capsys):
    """Run a command on files of the folder; return what it printed."""

    def command(*arguments, code=0):
        arguments = [str(folder / part) if (folder / part).exists() else part for part in arguments]
        try:
            found = main(arguments)
        except SystemExit as ended:
            found = ended.code
        printed = capsys.readouterr()
        assert found == code, printed.err
        return printed.out if code == 0 else printed.err

    return command
