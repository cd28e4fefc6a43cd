# SPDX-License-Identifier: Apache-2.0
"""Whether a rotary embedding that stock would fuse is the one that its op computes.

Stock's pattern for rotary embeddings in halves is matched by structure alone. Its op takes queries
and keys as [batch, sequence, heads, size], and a table of two dims. Models of transformers turn
[batch, heads, sequence, size] by a table with a batch: fused, the method aborts where queries and
keys have different numbers of heads, and is silently wrong elsewhere. Such a match stays plain ops.
"""

from __future__ import annotations

from typing import Any

from etvk_guard.lowering.graph import edge, is_op, same_dim, shape_of, static

__all__ = ["rotary_fits"]

_TABLE_STEP = 8  # The op turns that many elements of a row at a time.


def rotary_fits(match: Any) -> bool:
    """Whether stock may fuse a match.

    Args:
        match: a `PatternMatch` of stock's; one that is no rotary embedding in halves fits.
    """
    if match.anchor_node is not None or len(match.input_nodes) != 4:
        return True
    if not any(is_op(node, edge.neg.default) for node in match.all_nodes):
        return True
    q, k, cos, sin = (shape_of(node) or () for node in match.input_nodes)
    if not len(q) == len(k) == 4 or not len(cos) == len(sin) == 2:
        return False
    turned = cos[-1]
    return (
        same_dim(q[-1], k[-1])
        and same_dim(q[-3], k[-3])
        and same_dim(cos[0], q[-3])
        and static(turned)
        and turned % _TABLE_STEP == 0
    )
