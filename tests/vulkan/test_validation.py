# SPDX-License-Identifier: Apache-2.0
"""The Khronos validation layer has nothing to say of what the builder does.

The delegate itself is not silent: what stock says of the repaired program is taken off.
"""

from __future__ import annotations

import re

import pytest

RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from models import MODELS
from etvk_guard import runtime
guard = sys.argv[2]
for name, path in zip(sys.argv[3::2], sys.argv[4::2]):
    program = runtime.load(path, guard)
    program.forward(*MODELS[name].inputs())
print("ran")
"""
NAMES = [
    "leaf",
    "scale",
    "runtime_b1d",
    "gated",
    "constant_1",
    "constant_up",
    "odd",
    "half_scale",
    "buffer",
    "layer_norm",
    "layer_norm_bare",
    "layer_norm_runtime",
]


def messages(text: str) -> list[str]:
    """Message ids of the layer, sorted and without repeats."""
    return sorted(set(re.findall(r"(?:VUID|UNASSIGNED|SYNC|BestPractices)-[\w.-]+", text)))


@pytest.fixture(scope="module")
def validated(stock, in_child, pytestconfig):
    def run(guard: str) -> tuple[list[str], str]:
        arguments = [part for name in NAMES for part in (name, stock(name))]
        done = in_child(
            RUN,
            str(pytestconfig.rootpath / "tests" / "python"),
            guard,
            *arguments,
            VK_INSTANCE_LAYERS="VK_LAYER_KHRONOS_validation",
            VK_LOADER_DEBUG="layer",
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert "ran" in done.stdout
        text = done.stdout + done.stderr
        assert "VK_LAYER_KHRONOS_validation" in text  # the loader found the layer
        return messages(text), text

    return run


def test_builder_adds_no_message(validated):
    by_stock, _ = validated("repair")
    by_builder, text = validated("builder")
    new = [message for message in by_builder if message not in by_stock]
    assert new == [], text[-4000:]
    assert "etvk_guard_" not in "\n".join(line for line in text.splitlines() if "VUID" in line)
