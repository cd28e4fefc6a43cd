# SPDX-License-Identifier: Apache-2.0
"""Lowers a saved `torch.export` program to a .pte file."""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path

import torch
from executorch.exir import to_edge_transform_and_lower
from torch.export import ExportedProgram

from etvk_guard.lowering.partitioner import GuardedVulkanPartitioner
from etvk_guard.lowering.report import LoweringReport
from etvk_guard.lowering.site import Runtime

__all__ = ["lower_file"]


def lower_file(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    runtime: Runtime = "stock",
    fp16: bool = False,
) -> LoweringReport:
    """Lower a program saved by `torch.export.save` for ET-VK, under guard.

    Args:
        src: the .pt2 file.
        dst: the .pte file to write; written beside it first, then renamed.
        runtime: as of `GuardedVulkanPartitioner`.
        fp16: let the delegate keep and compute float32 as half (`force_fp16`).

    Returns:
        What was decided.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: `src` is not what `torch.export.save` writes, or `dst` is `src`.
        LoweringError: the program cannot be guarded with the installed release.
    """
    if os.path.exists(dst) and os.path.samefile(src, dst):
        raise ValueError(f"the output {os.fspath(dst)} is the input: give another name")
    program = _load(src)
    partitioner = GuardedVulkanPartitioner({"force_fp16": True} if fp16 else {}, runtime=runtime)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    _write(Path(os.path.realpath(dst)), edge.to_executorch().buffer)
    return partitioner.report


def _load(src: str | os.PathLike[str]) -> ExportedProgram:
    with open(src, "rb") as stream:  # whose own error says best what is wrong
        archive = zipfile.is_zipfile(stream)
    try:
        if archive:
            return torch.export.load(src)
    except Exception as error:  # whatever torch says
        raise ValueError(f"not a program of `torch.export.save`: {error}") from error
    raise ValueError("not a program of `torch.export.save`: it is no archive")


def _write(path: Path, data: bytes) -> None:
    """Write beside the target, then rename: a reader sees the whole file or none."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
