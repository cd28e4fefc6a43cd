# SPDX-License-Identifier: Apache-2.0
"""What a rule is, what it finds, and what it decides.

A rule has three parts, as in onnxscript's rewriter: `pattern` says what it looks for, `check` says
what is to be done about a match and why not more, and `rewrite` does it. Pattern and check run
twice: while partitioning, on fake weights, to decide what goes to the delegate; and while
preprocessing, on the delegate's own graph with real weights, right before the rewrite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Protocol

from torch.fx import Node
from torch.utils._sympy.value_ranges import bound_sympy

from etvk_guard.lowering.constants import Constants
from etvk_guard.lowering.graph import GraphEditor, numel

__all__ = ["Decision", "Match", "Rule", "Runtime", "Verdict", "View"]

TEXTURE_LIMITS = (16384, 16384, 2048)  # stock's own

Runtime = Literal["stock", "guarded"]
"""For which runtime a program is lowered: any ET-VK, or one with this project's op builders."""


class Decision(str, Enum):
    """What was decided about a site."""

    FOLDED = "folded"
    """The multiplier, a constant, became the norm's weight."""
    EVALUATED = "evaluated"
    """The multiplier, computed from constants, was evaluated and became the norm's weight."""
    UNIT = "unit weight"
    """The norm is fused with a unit weight; what follows it stays a plain op."""
    KEPT = "kept folded"
    """A run-time multiplier is the norm's weight: only a guarded runtime runs it."""
    REWRITTEN = "rewritten"
    """The op was written in another way, which takes run-time values."""
    UNFUSED = "left unfused"
    """No fused op computes this function: plain ops in the delegate."""
    CPU = "left to the CPU"
    """The delegate would abort, and no rewrite is known: the op runs on the portable kernels."""


@dataclass
class Match:
    """A place in the graph that a rule's pattern found.

    Attributes:
        anchor: the node that stands for the site; a rule finds the same match from it again.
        nodes: the calls of the pattern.
        form: the pattern in words.
        data: whatever the rule wants to keep from `pattern` for `check` and `rewrite`.
    """

    anchor: Node
    nodes: list[Node]
    form: str
    data: Any = None


@dataclass
class Verdict:
    """What `check` decided.

    Attributes:
        decision: what is to be done.
        reason: why not more; names the culprit. Empty where nothing better is possible.
        claims: calls that the rewrite removes, beside the match's own: the delegate gets them even
            if it could not run them.
        before: how many ops the site is as exported; 0 stands for the match's calls and `claims`.
        after: how many ops the site is after the rewrite.
        data: whatever the rule wants to keep from `check` for `rewrite`.
    """

    decision: Decision
    reason: str = ""
    claims: list[Node] = field(default_factory=list)
    before: int = 0
    after: int = 0
    data: Any = None

    @property
    def rewrites(self) -> bool:
        """Whether the graph changes."""
        return self.decision not in (Decision.UNFUSED, Decision.CPU)


@dataclass
class View:
    """A program as a rule sees it.

    Attributes:
        constants: what is known of its values.
        runtime: for which runtime it is lowered.
        supported: the ops that the delegate runs, in the registry's own keys.
        runs: whether stock gives one call to the delegate; None when the graph is rewritten, where
            it was asked already.
        texture_limits: texels in width, height and depth that a 3-D texture may have.
    """

    constants: Constants
    runtime: Runtime = "stock"
    supported: Iterable[Any] = ()
    runs: Callable[[Node], bool] | None = None
    texture_limits: tuple[int, int, int] = TEXTURE_LIMITS

    def fits_texture(self, image: Sequence[Any]) -> bool:
        """Whether [N, C, H, W] fits a texture that is packed along its channels.

        A dynamic size is taken at its largest, where that is known.
        """
        n, c, height, width = (_largest(size) for size in image)
        extents = (width, height, n * -(-c // 4))
        return all(e <= limit for e, limit in zip(extents, self.texture_limits, strict=True))

    def evaluable(self, node: Node, inside: Iterable[Node]) -> bool:
        """Whether a known value can be evaluated in place, its chain then being of no use.

        A call of the chain that others use too stays in the graph, so the delegate must know it.
        """
        chain = set(self.constants.chain(node))
        own = chain.union(inside)
        return all(
            step.target in self.supported or all(user in own for user in step.users)
            for step in chain
        )

    def no_larger(self, node: Node, room: int = 0) -> bool:
        """Whether a known value has no more elements than its constants, or than `room`."""
        chain = self.constants.chain(node)
        leaves = {n for step in chain for n in step.all_input_nodes if self.constants.leaf(n)}
        return numel(node) <= max(sum(numel(leaf) for leaf in leaves), room)


def _largest(size: Any) -> int:
    """The upper bound of a size; of one that is unknown, 1."""
    if isinstance(size, int):
        return max(size, 1)
    upper = bound_sympy(size.node.expr, size.node.shape_env.var_to_range).upper
    return int(upper) if upper.is_finite and upper < 1 << 31 else 1


class Rule(Protocol):
    """One family of rewrites."""

    name: str

    def pattern(self, node: Node, view: View) -> Match | None:
        """The match whose anchor is `node`, or None."""

    def check(self, match: Match, view: View) -> Verdict:
        """What to do about a match."""

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Do it, in place. Returns the verdict, changed where the values forbid the plan."""
