# SPDX-License-Identifier: Apache-2.0
"""One op of a VkGraph as an op's function sees it: argument values, and what is declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from etvk_guard.reference import errors
from etvk_guard.reference.dtypes import BUFFER, CHANNELS_PACKED, HEIGHT_PACKED, VK_DTYPES

if TYPE_CHECKING:
    from etvk_guard.pte import Op, VkTensor, Where
    from etvk_guard.reference.graph import LoadedGraph


class Contract(str, Enum):
    """Whose behaviour to compute where an op's argument breaks the prepack contract."""

    STOCK = "stock"  # what ET-VK does: it aborts, or gives the wrong value
    IDEAL = "ideal"  # what the graph means: operands broadcast, and may be computed at run time


# Any float dtype will do: `LoadedGraph` rounds a result to the dtype that its VkTensor declares.
Result: TypeAlias = "torch.Tensor | int | Sequence[torch.Tensor | None] | None"
OpFunction: TypeAlias = "Callable[[Call], Result]"


@dataclass
class Call:
    """An op that is being run.

    Attributes:
        args: argument values in order, the result's place left out: tensors (in the dtype that
            they are stored in), numbers, strings, lists of these, None.
        ids: the same arguments' value ids.
        state: tensors that live as long as the loaded graph (a key-value cache), by a name that
            the op's function chooses.
    """

    op: Op
    where: Where
    graph: LoadedGraph
    contract: Contract
    args: list[Any]
    ids: tuple[int, ...]
    out: int
    state: dict[str, torch.Tensor] = field(default_factory=dict)

    @property
    def stock(self) -> bool:
        """Whether to behave as a stock delegate does."""
        return self.contract is Contract.STOCK

    def tensor(self, index: int) -> torch.Tensor:
        """Argument `index`, which must be a tensor; half tensors come as they are stored."""
        value = self.args[index]
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"argument {index} is {type(value).__name__}, not a tensor")
        return value

    def real(self, index: int) -> torch.Tensor:
        """Argument `index` as a float32 tensor."""
        return self.tensor(index).to(torch.float32)

    def number(self, index: int, default: float | None = None) -> float:
        """Argument `index`, which must be a number, or `default` where it is None."""
        value = self.args[index]
        if value is None and default is not None:
            return default
        if not isinstance(value, (int, float)):
            raise ValueError(f"argument {index} is {type(value).__name__}, not a number")
        return float(value)

    def declared(self, index: int) -> VkTensor:
        """The VkTensor of argument `index`."""
        return self.graph.declared(self.ids[index])

    def out_tensor(self, item: int = 0) -> VkTensor:
        """The VkTensor of the result, or of an item of it where it is a list."""
        return self.graph.declared(self.graph.out_ids(self.out)[item])

    def out_dtype(self, item: int = 0) -> torch.dtype:
        """The dtype that the result is stored in."""
        return VK_DTYPES[self.out_tensor(item).dtype]

    def is_buffer(self, index: int) -> bool:
        """Whether argument `index` lies in a buffer (else in a texture)."""
        return self.graph.storage(self.declared(index)) == BUFFER

    def is_channels_packed_texture(self, index: int) -> bool:
        """Whether argument `index` lies in a texture whose texels run along the channels."""
        tensor = self.declared(index)
        return self.graph.storage(tensor) != BUFFER and self.graph.layout(tensor) == CHANNELS_PACKED

    def is_height_packed(self, index: int) -> bool:
        """Whether argument `index` is packed along its height."""
        return self.graph.layout(self.declared(index)) == HEIGHT_PACKED

    def abort(self, message: str, code: str | None = None) -> errors.StockAbortError:
        """What to raise where a check of the stock delegate fails; the code of the finding."""
        return errors.stock_abort(message, self.where, code)
