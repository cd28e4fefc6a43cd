# SPDX-License-Identifier: Apache-2.0
"""RMS norms: one fused op each, folded with its multiplier where that is legal.

`et_vk.rms_norm` reads its weight as a row of D constants, D being the last dim of its input. A
multiplier is folded into it only if it is known when lowering, has D elements of a float dtype with
a last dim of D, and does not broadcast the product up. Every other norm keeps the fused op, with a
weight of ones, and what follows stays a plain op: the fused kernel accumulates in float32, which
six separate ops on half values do not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import cast

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Node

from etvk_guard.lowering.graph import (
    GraphEditor,
    dims,
    dtype_of,
    edge,
    is_cast,
    is_op,
    op_name,
    same_shape,
    shape_of,
    static,
)
from etvk_guard.lowering.rules.rms_match import RmsCore, match_core
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["RmsNorm"]

_FLOATS = (torch.float16, torch.float32)
_MAX_RANK = 4  # The op's own limit in ET-VK's registry.


@dataclass
class _Tail:
    """A multiply after a norm.

    Attributes:
        multiply: the call.
        multiplier: its other operand.
        result: the value that a fold replaces: the product, or the cast right after it.
    """

    multiply: Node
    multiplier: Node | None
    result: Node


@dataclass
class _Norm:
    """What the rule keeps of a match.

    Attributes:
        core: the norm itself.
        value: the normalized value, after the cast that narrows it if there is one.
        tails: the multiplies that use `value`.
        others: its other users.
    """

    core: RmsCore
    value: Node
    tails: list[_Tail] = field(default_factory=list)
    others: list[Node] = field(default_factory=list)


class RmsNorm:
    """The rule."""

    name = "rms_norm"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A norm whose normalized value is `node`."""
        if not is_op(node, edge.mul.Tensor, edge.div.Tensor) or view.constants.known(node):
            return None
        core = match_core(node, view.constants)
        if core is None:
            return None
        value = _narrowed(core.anchor)
        norm = _Norm(core, value)
        for user in value.users:
            tail = _tail(user, value, core)
            if tail is None:
                norm.others.append(user)
            else:
                norm.tails.append(tail)
        nodes = core.nodes if value is core.anchor else [*core.nodes, value]
        return Match(node, list(nodes), _form(norm), norm)

    def check(self, match: Match, view: View) -> Verdict:
        """Fold, or fuse with a unit weight, or leave as it is."""
        norm = cast("_Norm", match.data)
        refusal = _refusal(norm, match, view)
        if refusal:
            return Verdict(Decision.UNFUSED, refusal, after=len(match.nodes))
        reasons = [_why_not(tail, norm, view) for tail in norm.tails]
        kept = [_keeps(t, r, norm, view) for t, r in zip(norm.tails, reasons, strict=True)]
        if (
            norm.tails
            and not norm.others
            and all(reason is None or keep for reason, keep in zip(reasons, kept, strict=True))
        ):
            return _fold(norm, kept, view)
        reason = next((r for r in reasons if r is not None), "")
        if not norm.tails:
            reason = "nothing multiplies the norm"
        elif norm.others and not reason:
            reason = f"the norm has other users too: `{_user_name(norm.others[0])}`"
        before = len(match.nodes) + len(norm.tails)
        after = 1 + len(norm.tails) + 2 * _flattens(norm.core)
        return Verdict(Decision.UNIT, reason, before=before, after=after)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Put the fused op in."""
        norm = cast("_Norm", match.data)
        eps = _eps_value(norm.core, view)
        weights: list[Node] | None = None
        if verdict.decision is not Decision.UNIT:
            weights = _weights(norm, verdict, view, editor)
            if weights is None:
                verdict = Verdict(
                    Decision.UNIT, "the multiplier has values beyond the norm's dtype", after=2
                )
        if weights is None:
            self._put(norm, norm.value, None, eps, editor)
            _evaluate_multipliers(norm, view, editor)
            return verdict
        for tail, weight in zip(norm.tails, weights, strict=True):
            self._put(norm, tail.result, weight, eps, editor)
        return verdict

    def _put(
        self, norm: _Norm, result: Node, weight: Node | None, eps: float, editor: GraphEditor
    ) -> None:
        """Replace `result` by a fused norm of the given weight, or of ones."""
        core = norm.core
        size = _row(core)
        with editor.graph.inserting_before(result):
            x = _input(core, result)
            if weight is None:
                weight = editor.filled(size, 1.0, cast("torch.dtype", dtype_of(x)))
            if _flattens(core):
                x = editor.call(edge.view_copy.default, (x, [_rows(core), size]), result, self.name)
            op = exir_ops.edge.et_vk.rms_norm.default
            out = editor.call(op, (x, weight, eps), result, self.name)
            if _flattens(core):
                shape = [s if static(s) else -1 for s in shape_of(result) or ()]
                out = editor.call(edge.view_copy.default, (out, shape), result, self.name)
            if dtype_of(out) != dtype_of(result):
                dtype = cast("torch.dtype", dtype_of(result))
                out = editor.cast(out, dtype, result, self.name)
        editor.replace(result, out)


def _narrowed(anchor: Node) -> Node:
    """The normalized value as the model goes on with it: after the one cast that narrows it."""
    users = list(anchor.users)
    if len(users) == 1 and is_cast(users[0]) and dtype_of(users[0]) == torch.float16:
        return users[0]
    return anchor


def _tail(user: Node, value: Node, core: RmsCore) -> _Tail | None:
    """Read a user of the norm as a multiply by something else."""
    if not is_op(user, edge.mul.Tensor):
        return None
    first, second = user.args[:2]
    if first is second:
        return None
    other = _unexpanded(second if first is value else first, user, value)
    result = user
    users = list(user.users)
    wanted = dtype_of(core.source)
    if dtype_of(user) != wanted and len(users) == 1 and is_cast(users[0]):
        result = users[0] if dtype_of(users[0]) == wanted else user
    return _Tail(user, other if isinstance(other, Node) else None, result)


def _unexpanded(other: object, product: Node, value: Node) -> object:
    """A multiplier before an expand that the multiply would do itself."""
    if same_shape(product, value):
        while isinstance(other, Node) and is_op(other, edge.expand_copy.default):
            other = other.args[0]
    return other


def _form(norm: _Norm) -> str:
    form = norm.core.form
    if norm.core.ndims > 1:
        form += f", v over {norm.core.ndims} dims"
    return f"({form})*w" if norm.tails else form


def _row(core: RmsCore) -> int:
    """D: the product of the normalized sizes."""
    shape = shape_of(core.operand) or ()
    return prod(cast("tuple[int, ...]", shape[len(shape) - core.ndims :]))


def _rows(core: RmsCore) -> int:
    """The product of the sizes before the normalized ones; -1 if one of them is dynamic."""
    shape = shape_of(core.operand) or ()
    lead = shape[: len(shape) - core.ndims]
    return prod(cast("tuple[int, ...]", lead)) if all(map(static, lead)) else -1


def _flattens(core: RmsCore) -> bool:
    """Whether the norm has to be put into the two dims [rows, D]."""
    return core.ndims > 1 or len(shape_of(core.operand) or ()) > _MAX_RANK


def _input(core: RmsCore, result: Node) -> Node:
    """The tensor to normalize: the one that already has the result's dtype, if there is one."""
    return core.source if dtype_of(core.source) == dtype_of(result) else core.operand


def _refusal(norm: _Norm, match: Match, view: View) -> str:
    """Why a norm cannot be fused at all; "" if it can."""
    core = norm.core
    shape = shape_of(core.operand) or ()
    if dtype_of(core.operand) not in _FLOATS or dtype_of(core.source) not in _FLOATS:
        return f"ET-VK has no norm of {dims(core.operand)}"
    if dtype_of(core.operand) != dtype_of(core.square):
        return "the input is cast up for the mean only, which is another function"
    if not all(map(static, shape[len(shape) - core.ndims :])):
        return f"the normalized size is dynamic: {dims(core.operand)}"
    if _flattens(core) and sum(not static(s) for s in shape) > 1:
        return f"more than one dynamic size in {dims(core.operand)}, which has to be flattened"
    return _eps_refusal(core, view) or _escape(core, match, view)


def _eps_refusal(core: RmsCore, view: View) -> str:
    if not isinstance(core.eps, Node):
        return ""
    if not view.constants.known(core.eps):
        return f"eps `{core.eps.name}` is a run-time value, from {view.constants.culprit(core.eps)}"
    shape = shape_of(core.eps)
    rank = len(shape_of(core.operand) or ())
    if shape is None or len(shape) > rank or any(s != 1 for s in shape):
        return (
            f"eps `{view.constants.target(core.eps)}` is a tensor {dims(core.eps)}, not one number"
        )
    return ""


def _escape(core: RmsCore, match: Match, view: View) -> str:
    """Something else uses a value inside the norm, so that the plain ops would stay anyway."""
    casts = {node for node in match.nodes if is_cast(node)}
    inside = set(match.nodes)
    for node in match.nodes:
        if node is core.anchor or node in casts:
            continue
        for user in node.users:
            if user not in inside and match_core(user, view.constants) is None:
                return f"`{_user_name(user)}` uses `{op_name(node)}` inside the norm"
    return ""


def _user_name(node: Node) -> str:
    return op_name(node) or node.name


def _why_not(tail: _Tail, norm: _Norm, view: View) -> str | None:
    """Why a multiplier cannot be the norm's weight; None if it can."""
    core, multiplier, constants = norm.core, tail.multiplier, view.constants
    if multiplier is None:
        return "the multiplier is a number"
    name = constants.target(multiplier)
    if not constants.known(multiplier):
        return f"multiplier `{name}` {dims(multiplier)} is a run-time value, from " + (
            constants.culprit(multiplier)
        )
    shape, own = shape_of(multiplier) or (), shape_of(norm.value) or ()
    if prod(cast("tuple[int, ...]", shape)) != _row(core) or not _ends_alike(shape, own, core):
        return f"multiplier `{name}` is a constant {dims(multiplier)}, not one row of {_row(core)}"
    if len(shape) > len(own):
        return f"multiplier `{name}` {dims(multiplier)} gives the product more dims than the norm"
    dtype = dtype_of(multiplier)
    if dtype is None or not dtype.is_floating_point:
        return f"multiplier `{name}` is of {dtype}"
    inside = {*core.nodes, norm.value, tail.multiply}
    if not view.evaluable(multiplier, inside):
        return f"multiplier `{name}` is also computed for ops that are not in the delegate"
    return None


def _ends_alike(
    shape: tuple[int | torch.SymInt, ...], own: tuple[int | torch.SymInt, ...], core: RmsCore
) -> bool:
    """Whether the last sizes of a multiplier are the normalized sizes."""
    return len(shape) >= core.ndims and shape[-core.ndims :] == own[-core.ndims :]


def _keeps(tail: _Tail, reason: str | None, norm: _Norm, view: View) -> bool:
    """Whether a guarded runtime takes a multiplier that a stock one does not."""
    if reason is None or view.runtime != "guarded" or tail.multiplier is None:
        return False
    shape = shape_of(tail.multiplier) or ()
    core = norm.core
    return (
        not view.constants.known(tail.multiplier)
        and not _flattens(core)
        and all(map(static, shape))
        and prod(cast("tuple[int, ...]", shape)) == _row(core)
        and shape[-1:] == (_row(core),)
        and len(shape) <= len(shape_of(norm.value) or ())
        and dtype_of(tail.multiplier) == dtype_of(_input(core, tail.result))
    )


def _fold(norm: _Norm, kept: list[bool], view: View) -> Verdict:
    claims: list[Node] = []
    evaluated = False
    for tail, keep in zip(norm.tails, kept, strict=True):
        claims += [tail.multiply, tail.result]
        if not keep:
            chain = view.constants.chain(cast("Node", tail.multiplier))
            evaluated |= bool(chain)
            claims += chain
    decision = Decision.EVALUATED if evaluated else Decision.FOLDED
    reason = ""
    if any(kept):
        decision = Decision.KEPT
        tail = norm.tails[kept.index(True)]
        reason = _why_not(tail, norm, view) or ""
    after = len(norm.tails) * (1 + 2 * _flattens(norm.core))
    return Verdict(decision, reason, list(dict.fromkeys(claims)), after=after, data=kept)


def _eps_value(core: RmsCore, view: View) -> float:
    if core.eps is None:
        return 0.0
    if isinstance(core.eps, Node):
        return float(view.constants.evaluate(core.eps).item()) * core.alpha
    return core.eps * core.alpha


def _evaluate_multipliers(norm: _Norm, view: View, editor: GraphEditor) -> None:
    """What is computed from constants and stays a multiplier is computed once."""
    for tail in norm.tails:
        for place, multiplier in enumerate(tail.multiply.args[:2]):
            if not isinstance(multiplier, Node) or not view.constants.computed(multiplier):
                continue
            if view.no_larger(multiplier) and view.evaluable(multiplier, [tail.multiply]):
                data = view.constants.evaluate(multiplier)
                constant = editor.constant(data, "multiplier", ("value", multiplier))
                tail.multiply.update_arg(place, constant)


def _weights(norm: _Norm, verdict: Verdict, view: View, editor: GraphEditor) -> list[Node] | None:
    """The weight of each fold, or None where a value is beyond the norm's dtype."""
    weights: list[Node] = []
    for tail, keep in zip(norm.tails, cast("list[bool]", verdict.data), strict=True):
        multiplier = cast("Node", tail.multiplier)
        dtype = cast("torch.dtype", dtype_of(_input(norm.core, tail.result)))
        is_row = norm.core.ndims == 1 and dtype_of(multiplier) == dtype
        if keep or (is_row and view.constants.leaf(multiplier)):
            weights.append(multiplier)
            continue
        row = view.constants.evaluate(multiplier).reshape(_row(norm.core))
        narrow = row.to(dtype)
        if not torch.equal(narrow.isfinite(), row.isfinite()):
            return None
        weights.append(editor.constant(narrow, "weight", ("weight", multiplier, dtype)))
    return weights
