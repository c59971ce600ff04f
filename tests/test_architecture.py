"""Layout of the package: import order, number of modules, contracts, parameters."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import notsorandom.baselines
import notsorandom.display
from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor
from notsorandom.search import SEARCHES
from notsorandom.search.base import Search
from notsorandom.spaces import SPACES
from notsorandom.spaces.base import Space

# A subpackage may import itself and those of earlier rows. Those of one row are independent.
ORDER = [
    ["_utils"],
    ["data"],
    ["spaces"],
    ["search", "kernel"],
    ["game"],
    ["linear"],
    ["tuning"],
    ["estimators"],
    ["tabular"],
    ["io", "dask", "baselines", "datasets"],
    ["display"],
    ["cli"],
]
# A game is given its search; only the solver of equilibria has one of its own.
NEVER, EXCEPT = ("game", "search"), "notsorandom.game.solvers"
ROOT = Path(notsorandom.__file__).parent


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported_modules(nodes):
    """Names of the package's own modules that import statements name."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("notsorandom"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                module = full if full in MODULES else node.module
                if module == "notsorandom":  # a public name: the module that defines it
                    module = getattr(getattr(notsorandom, alias.name), "__module__", module)
                yield module
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "notsorandom")


def subpackage(module):
    """The first part of the name; the package itself re-exports the estimators."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "estimators"


def executed_at_import(tree):
    """Statements that run on import: not those of functions, nor of type checking blocks."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        yield from executed_at_import(node)


def test_imports_follow_the_order():
    """Also inside functions and for type checking."""
    level = {name: row for row, subpackages in enumerate(ORDER) for name in subpackages}
    pairs = {
        (subpackage(module), subpackage(other), module)
        for module, path in MODULES.items()
        for other in imported_modules(ast.walk(ast.parse(path.read_text())))
        if module != "notsorandom" and subpackage(module) != subpackage(other)
    }
    assert len(pairs) > 50
    for here, there, module in sorted(pairs):
        assert level[there] < level[here], f"{module} imports {there}"
        assert (here, there) != NEVER or module == EXCEPT, f"{module} imports {there}"


def test_every_subpackage_is_in_the_order():
    subpackages = {subpackage(module) for module in MODULES}
    assert subpackages == {name for row in ORDER for name in row}


def test_number_of_entries_at_the_top():
    no_room = {"__init__.py", "__pycache__", "py.typed"}
    entries = [path.name for path in ROOT.iterdir() if path.name not in no_room]
    assert len(entries) <= 16, sorted(entries)


def test_no_import_cycles():
    """Importing any module first works, because no two need each other."""
    graph = {
        module: set(imported_modules(executed_at_import(ast.parse(path.read_text()))))
        for module, path in MODULES.items()
    }
    done, active = set(), []

    def visit(module):
        assert module not in active, " -> ".join([*active[active.index(module) :], module])
        if module not in done and module in graph:
            active.append(module)
            for other in sorted(graph[module]):
                visit(other)
            done.add(active.pop())

    for module in graph:
        visit(module)


def subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


@pytest.mark.parametrize(("registry", "contract"), [(SPACES, Space), (SEARCHES, Search)])
def test_named_spaces_and_searches_fulfil_the_contract(registry, contract):
    for make in registry.values():
        assert isinstance(make(), contract)  # an abstract method left out raises here


@pytest.mark.parametrize(
    ("folder", "method", "contract"), [("spaces", "resolve", Space), ("search", "find", Search)]
)
def test_every_space_and_search_derives_from_its_contract(folder, method, contract):
    """Every public class that has the contract's main method."""
    derived = {kind.__name__ for kind in subclasses(contract)} | {contract.__name__}
    for path in sorted((ROOT / folder).glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not any(
                "Protocol" in ast.dump(b) for b in node.bases
            ):
                methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
                assert method not in methods or node.name in derived, f"{path.name}: {node.name}"


@pytest.mark.parametrize("estimator", [FourierFeatures, FourierClassifier, FourierRegressor])
def test_number_of_parameters(estimator):
    # A regressor has two more: which quantile to predict, and how many samples tell how sure it is,
    # are choices of the user, not settings.
    limit = 19 if estimator is FourierRegressor else 17
    assert len(estimator().get_params(deep=False)) <= limit


def public_classes():
    for package in (notsorandom, notsorandom.baselines, notsorandom.display):
        for name in package.__all__:
            public = getattr(package, name)
            if isinstance(public, type) and not issubclass(public, Exception):
                yield public


@pytest.mark.parametrize("public", list(public_classes()), ids=lambda public: public.__name__)
def test_every_parameter_is_explained(public):
    """The docstring names all parameters in order, with their defaults and a text."""
    document = inspect.getdoc(public) + "\n"
    _, _, section = document.partition("Parameters\n----------\n")
    section = re.split(r"\n\n", section)[0] + "\n"
    explained = dict(re.findall(r"^([\w, ]+) : (.*\n(?: {4}.*\n)*)", section, re.M))
    explained = {name: text for names, text in explained.items() for name in names.split(", ")}
    parameters = inspect.signature(public).parameters
    assert list(explained) == [name for name in parameters if name not in {"args", "kwargs"}]
    for name, parameter in parameters.items():
        default = parameter.default
        if default not in (parameter.empty, None):
            shown = f'"{default}"' if isinstance(default, str) else str(default)
            assert f"default={shown}" in explained[name], name


def loaded_modules(code):
    """Names of all modules that are loaded after running some code in a fresh interpreter."""
    # Where pandas is installed, scikit-learn imports it, and pandas imports pyarrow.
    code = f"import sys; sys.modules['pandas'] = None; {code}; print(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return set(output.stdout.split())


@pytest.mark.slow
def test_import_is_small():
    loaded = loaded_modules("from notsorandom import FourierClassifier")
    own = {name for name in loaded if name.startswith("notsorandom")}
    assert 30 <= len(own) <= 45, sorted(own)
    for part in ("io", "tabular", "data.files", "data.spool", "data.lazy", "display", "cli"):
        assert f"notsorandom.{part}" not in own


@pytest.mark.slow
def test_the_command_line_starts_at_once():
    """What takes long to import comes later, where an interrupt is handled."""
    assert "numpy" not in loaded_modules("import notsorandom.cli")


@pytest.mark.slow
def test_import_loads_no_optional_packages():
    modules = "datasets cli.arguments tabular io".split()
    loaded = loaded_modules("import " + ", ".join(f"notsorandom.{name}" for name in modules))
    assert not loaded & {"matplotlib", "skimage", "onnx", "pyarrow", "zarr", "dask", "torch"}
