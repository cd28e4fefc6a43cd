# SPDX-License-Identifier: Apache-2.0
"""`etvk-guard show`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from etvk_guard import pte
from etvk_guard.cli._text import console, count, error_line, fail, print_json, styled

__all__ = ["show"]

# Names of the schemas' numbers; a number without a name is shown as it is.
DTYPES = {0: "bool", 1: "uint8", 2: "int8", 3: "int32", 4: "float16", 5: "float32"}
DTYPES |= {6: "float64", 7: "int64"}
STORAGES = {0: "buffer", 1: "texture3d", 2: "texture2d", 255: "default"}
LAYOUTS = {0: "width-packed", 1: "height-packed", 2: "channels-packed", 255: "default"}


def show(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The program.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a program's methods and delegates, and each Vulkan graph's ops and values.

    Exit code: 0, or 2 if there was an error.
    """
    try:
        program = pte.open_program(file)
        shown = _program_json(program) if as_json else None
        lines = [] if as_json else list(_program_lines(file, program))
    except pte.EtvkGuardError as error:  # also for what only a newer schema has
        if as_json:
            print_json({"file": file, "error": error_line(file, error)})
            raise typer.Exit(2) from None
        fail(error_line(file, error))
    if shown is not None:
        print_json({"file": file, "error": None, **shown})
    out = console()
    for line in lines:
        out.print(line)


def _program_json(program: pte.Program) -> dict[str, Any]:
    return {
        "size": program.size,
        "segments": [list(segment) for segment in program.segments],
        "named_data": dict(program.named_data),
        "methods": [_method_json(method) for method in program.methods],
    }


def _method_json(method: pte.Method) -> dict[str, Any]:
    return {
        "name": method.name,
        "inputs": list(method.inputs),
        "outputs": list(method.outputs),
        "operators": [_operator(method, index) for index in range(len(method.operators))],
        "instructions": [asdict(instruction) for instruction in method.instructions],
        "delegates": [_delegate_json(delegate) for delegate in method.delegates],
    }


def _delegate_json(delegate: pte.Delegate) -> dict[str, Any]:
    specs = {key: value.hex() for key, value in delegate.compile_specs.items()}
    return {
        "index": delegate.index,
        "backend": delegate.backend,
        "offset": delegate.offset,
        "size": delegate.size,
        "compile_specs": specs,
        "graph": None if delegate.graph is None else _graph_json(delegate.graph),
    }


def _graph_json(graph: pte.Graph) -> dict[str, Any]:
    return {
        "version": graph.version,
        "offset": graph.offset,
        "storage_override": graph.storage_override,
        "layout_override": graph.layout_override,
        "input_ids": list(graph.input_ids),
        "output_ids": list(graph.output_ids),
        "ops": [asdict(op) for op in graph.ops],
        "values": [asdict(value) for value in graph.values],
        "constants": [asdict(constant) for constant in graph.constants],
    }


def _program_lines(file: str, program: pte.Program) -> Iterator[Any]:
    parts = [count(len(program.methods), "method"), count(len(program.segments), "segment")]
    yield styled((file, "bold"), f": {', '.join(parts)}, {program.size:,} bytes")
    for method in program.methods:
        calls = [item for item in method.instructions if item.kind == "kernel"]
        delegates = count(len(method.delegates), "delegate")
        cpu_ops = count(len(calls), "CPU op")
        yield styled("method ", (method.name, "bold"), f": {delegates}, {cpu_ops}")
        for call in calls:
            yield styled("  CPU op ", _operator(method, call.index))
        for delegate in method.delegates:
            yield from _delegate_lines(delegate)


def _operator(method: pte.Method, index: int) -> str:
    return ".".join(part for part in method.operators[index] if part)


def _delegate_lines(delegate: pte.Delegate) -> Iterator[Any]:
    place = f": {delegate.size:,} bytes at {delegate.offset}"
    yield styled(f"  delegate {delegate.index} ", (delegate.backend, "bold"), place)
    if (graph := delegate.graph) is None:
        return
    for index, op in enumerate(graph.ops):
        *args, result = [f"%{arg}" for arg in op.args] or [""]
        yield styled(f"    op {index} ", (op.name, "cyan"), f"({', '.join(args)}) -> {result}")
    inputs, outputs = frozenset(graph.input_ids), frozenset(graph.output_ids)
    for index, value in enumerate(graph.values):
        role = " input" if index in inputs else ""
        role += " output" if index in outputs else ""
        yield styled(f"    %{index} ", _value_text(value), (role, "green"))


def _value_text(value: pte.Value) -> str:
    tensor = value.value
    if not isinstance(tensor, pte.VkTensor):
        return value.kind if tensor is None else f"{value.kind} {tensor}"
    dtype = DTYPES.get(tensor.dtype, f"dtype {tensor.dtype}")
    storage = STORAGES.get(tensor.storage, f"storage {tensor.storage}")
    layout = LAYOUTS.get(tensor.layout, f"layout {tensor.layout}")
    constant = f" constant {tensor.constant_id}" if tensor.constant_id >= 0 else ""
    return f"tensor {dtype} {list(tensor.dims)} {storage} {layout}{constant}"
