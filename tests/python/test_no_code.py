# SPDX-License-Identifier: Apache-2.0
"""Nothing in the package turns bytes of a file into code, or reads a format that can hold some."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import etvk_guard

MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "code", "codeop"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
# Attributes, by the names that their modules have in this package.
CALLS = {"torch.load", "torch.jit.load", "joblib.load", "yaml.load", "os.system", "os.popen"}
SOURCES = sorted(Path(etvk_guard.__file__).parent.rglob("*.py"))


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def keywords(call: ast.Call) -> dict[str | None, object]:
    return {word.arg: getattr(word.value, "value", None) for word in call.keywords}


def dangers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            if name in BUILTINS or name in CALLS:
                yield name
            if name.endswith("np.load") and keywords(node).get("allow_pickle") is not False:
                yield "np.load without allow_pickle=False"
            if name.startswith("subprocess.") and keywords(node).get("shell"):
                yield "shell=True"
            continue
        else:
            continue
        yield from (name for name in names if name.partition(".")[0] in MODULES)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from marshal import loads",
        "eval(text)",
        "torch.load(path)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "subprocess.run(text, shell=True)",
    ],
)
def test_dangers_are_seen(source: str) -> None:
    assert list(dangers(ast.parse(source)))


def test_there_are_none() -> None:
    assert len(SOURCES) > 50
    found = {
        f"{path.name}: {danger}"
        for path in SOURCES
        for danger in dangers(ast.parse(path.read_text("utf-8")))
    }
    assert found == set()
