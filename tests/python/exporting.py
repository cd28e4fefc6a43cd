# SPDX-License-Identifier: Apache-2.0
"""Lowering the table's models with the stock partitioner of the installed executorch."""

from __future__ import annotations

import fcntl
import logging
import os
import warnings
from pathlib import Path

import torch

from models import MODELS, Model
from patterns import patterns_made_once


def lower_stock(model: Model) -> bytes:
    """The `.pte` that stock makes of a row of the table."""
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.exir import to_edge_transform_and_lower

    with warnings.catch_warnings(), torch.no_grad(), patterns_made_once():
        warnings.simplefilter("ignore")  # of torch's and executorch's own making
        programs = {
            name: torch.export.export(make().eval(), model.inputs(), dynamic_shapes=model.dynamic)
            for name, make in {"forward": model.make, **model.methods}.items()
        }
        level = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            partitioner = VulkanPartitioner(_options(model))
            lowered = to_edge_transform_and_lower(programs, partitioner=[partitioner])
            return bytes(lowered.to_executorch().buffer)
        finally:
            logging.disable(level)


def _options(model: Model) -> dict[str, object]:
    """The compile options, with the names of storage types and layouts turned to their enums."""
    from executorch.backends.vulkan.serialization import vulkan_graph_schema as schema

    enums = {
        "storage_type_override": schema.VkStorageType,
        "memory_layout_override": schema.VkMemoryLayout,
    }
    return {
        key: enums[key][value] if key in enums else value for key, value in model.options.items()
    }


def stock_file(name: str, folder: Path) -> Path:
    """The row's `.pte`, made once in `folder`, whichever process asks first."""
    path = folder / f"{name}.pte"
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            made = path.with_suffix(".tmp")
            made.write_bytes(lower_stock(MODELS[name]))
            os.replace(made, path)
    return path
