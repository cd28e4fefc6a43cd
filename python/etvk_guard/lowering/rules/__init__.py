# SPDX-License-Identifier: Apache-2.0
"""The rule families, one a file, in the order in which they are tried.

A call belongs to the first site that claims it: the number in a fused norm's `add.Scalar`, say, is
the norm's eps, and no site of its own.
"""

from __future__ import annotations

from etvk_guard.lowering.rules.booleans import LogicalNot, MaskedRows
from etvk_guard.lowering.rules.channel_norm import ChannelNorm
from etvk_guard.lowering.rules.constant_scalar import ConstantScalar
from etvk_guard.lowering.rules.constant_value import ConstantValue
from etvk_guard.lowering.rules.depthwise import DepthwiseEdge
from etvk_guard.lowering.rules.embedding import RuntimeEmbedding
from etvk_guard.lowering.rules.evaluate import EvaluateWeight
from etvk_guard.lowering.rules.gather import GatherDim
from etvk_guard.lowering.rules.half_mean import HalfMean
from etvk_guard.lowering.rules.image_lists import ImageLists
from etvk_guard.lowering.rules.integers import IntegerEquality
from etvk_guard.lowering.rules.layer_norm import LayerNorm
from etvk_guard.lowering.rules.linear import RuntimeLinear
from etvk_guard.lowering.rules.rms_norm import RmsNorm
from etvk_guard.lowering.rules.scalar import ScalarOperand
from etvk_guard.lowering.site import Rule

__all__ = ["RULES"]

RULES: tuple[Rule, ...] = (
    RmsNorm(),
    LayerNorm(),
    ChannelNorm(),
    RuntimeEmbedding(),
    RuntimeLinear(),
    EvaluateWeight(),
    MaskedRows(),
    LogicalNot(),
    IntegerEquality(),
    DepthwiseEdge(),
    ImageLists(),
    GatherDim(),
    ScalarOperand(),
    HalfMean(),
    ConstantScalar(),
    ConstantValue(),
)
