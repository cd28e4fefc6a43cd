# SPDX-License-Identifier: Apache-2.0
"""A drop-in for stock's `VulkanPartitioner`, whose programs every stock delegate runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Node

from etvk_guard.lowering import _compat, hook
from etvk_guard.lowering.graph import op_name
from etvk_guard.lowering.limits import resampling
from etvk_guard.lowering.plan import TAG_KEY, Plan, Support
from etvk_guard.lowering.preprocess import preprocess
from etvk_guard.lowering.report import LoweringReport
from etvk_guard.lowering.site import Decision, Runtime
from etvk_guard.lowering.stamps import MARK, SITE_KEY

__all__ = ["GuardedVulkanPartitioner", "guarded_ops_to_not_decompose", "guarded_partition"]

_MAX_ROUNDS = 8
_PLAIN = ("aten.", "dim_order_ops.")


class GuardedVulkanPartitioner(_compat.VulkanPartitioner):  # type: ignore[misc]
    """Partitions for ET-VK like `VulkanPartitioner`, and keeps the prepack contract.

    Takes the arguments of `VulkanPartitioner`, and works wherever it does: in
    `to_edge(...).to_backend`, in `to_edge_transform_and_lower`, and in a list of partitioners. What
    it lowers has the backend id "VulkanBackend".

    Args:
        runtime: "stock" for a program that any ET-VK runs; "guarded" keeps run-time multipliers
            folded, in one dispatch, which only a runtime with this project's op builders runs.

    Attributes:
        report: every decision, of all programs lowered with this partitioner.
    """

    def __init__(self, *args: Any, runtime: Runtime = "stock", **kwargs: Any) -> None:
        """See the class."""
        if runtime not in ("stock", "guarded"):
            raise ValueError(f'runtime is "stock" or "guarded", not {runtime!r}')
        super().__init__(*args, **kwargs)
        self.runtime: Runtime = runtime
        self.report = LoweringReport()

    def ops_to_not_decompose(self, ep: ExportedProgram) -> Any:
        """The ops that go to ET-VK whole, and for which of their calls that is so."""
        return guarded_ops_to_not_decompose(super().ops_to_not_decompose(ep))

    def partition(self, exported_program: ExportedProgram) -> _compat.PartitionResult:
        """Tag the nodes that go to ET-VK."""
        return guarded_partition(self, exported_program, self.runtime, self.report)


def guarded_ops_to_not_decompose(
    stock: tuple[list[Any], Callable[[Node], bool] | None],
) -> tuple[list[Any], Callable[[Node], bool]]:
    """What stock keeps whole, without the calls that its op builders do not run."""
    ops, keep = stock
    return ops, lambda node: (keep is None or keep(node)) and not resampling(node)


def guarded_partition(
    partitioner: Any, program: ExportedProgram, runtime: Runtime, report: LoweringReport
) -> _compat.PartitionResult:
    """Partition `program` as `partitioner`, a stock one, would, and under guard.

    Raises:
        LoweringError: the installed release cannot be guarded.
    """
    plan = Plan(program, runtime)

    def support(*args: Any, **kwargs: Any) -> Support:
        return Support(_compat.VulkanSupportedOperators(*args, **kwargs), plan)

    partition = _compat.rebind(
        _compat.VulkanPartitioner.partition,
        {
            "VulkanSupportedOperators": support,
            "vk_patterns": _compat.patterns_without_norms(program),
        },
    )
    for _ in range(_MAX_ROUNDS):
        result = partition(partitioner, program)
        if plan.settle():
            break
        _clear(program)
    else:
        raise _compat.LoweringError("no partition keeps every norm in one piece")
    if not partitioner.options.get("alias_buffer_mutations", False):
        _release_buffers(program)
    _stamp(plan, result, report, runtime)
    return result


def _clear(program: ExportedProgram) -> None:
    for node in program.graph_module.graph.nodes:
        node.meta.pop(TAG_KEY, None)


def _release_buffers(program: ExportedProgram) -> None:
    """Keep buffers that plain ops write outside of the delegate, as its inputs and outputs.

    Stock gives such a buffer to the delegate, and its new value still comes out of the graph, where
    nothing takes it: the method aborts on its first run. Buffers of ops that write in place, such
    as a key-value cache, are stock's own business.
    """
    signature = program.graph_signature
    written = set(signature.buffers_to_mutate.values())
    for node in program.graph_module.graph.nodes:
        if node.op == "placeholder" and signature.inputs_to_buffers.get(node.name) in written:
            calls = [user for user in node.users if user.op == "call_function"]
            if all(op_name(user).startswith(_PLAIN) for user in calls):
                node.meta.pop(TAG_KEY, None)
                # Else ExecuTorch starts it from zeros, not from the model's values.
                node.meta["et_init_buffer"] = True


def _stamp(
    plan: Plan, result: _compat.PartitionResult, report: LoweringReport, runtime: Runtime
) -> None:
    """Leave on the nodes what preprocessing needs to know."""
    first = len(report.entries)
    stamps = plan.record(report)
    graph_module = plan.program.graph_module
    pending = hook.Pending(report, runtime, len(result.partition_tags))
    if pending.remaining:
        token = hook.arm(pending, graph_module, preprocess)
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and TAG_KEY in node.meta:
                node.meta[hook.TOKEN_KEY] = token
    for node, entry in stamps.items():
        node.meta[SITE_KEY] = entry
        if report.entries[entry].decision is Decision.KEPT:
            _mark(result, node.meta[TAG_KEY])
    for made in report.entries[first:]:
        report.log(made)


def _mark(result: _compat.PartitionResult, tag: str) -> None:
    """Say in the delegate's compile specs that only a guarded runtime runs it."""
    spec = result.partition_tags[tag]
    if all(item.key != MARK for item in spec.compile_specs):
        specs = [*spec.compile_specs, _compat.CompileSpec(MARK, b"1")]
        result.partition_tags[tag] = _compat.DelegationSpec(spec.backend_id, specs)
