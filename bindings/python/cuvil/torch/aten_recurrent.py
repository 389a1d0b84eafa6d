"""LSTM, GRU and RNN layers: the input's products for all steps are one MatMul, the recurrence is one operator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cuvil.torch.aten_shape import cat, stack
from cuvil.torch.sizes import Size, simple
from cuvil.torch.table import Context, Tensor, aten, refuse


@dataclass(frozen=True)
class _Cell:
    op: str
    order: tuple[int, ...]  # PyTorch's gates in CIR's order
    activations: tuple[str, ...]
    states: int = 1


_LSTM = _Cell("LSTM", (0, 3, 1, 2), ("Sigmoid", "Tanh", "Tanh"), 2)
_GRU = _Cell("GRU", (1, 0, 2), ("Sigmoid", "Tanh"))
_TANH = _Cell("RNN", (0,), ("Tanh",))
_RELU = _Cell("RNN", (0,), ("Relu",))


def _gates(c: Context, w: Tensor, cell: _Cell) -> list[Tensor]:
    """The rows of each gate, in CIR's order."""
    n = len(cell.order)
    hidden = w.known(0) // n
    return [c.slice(w, 0, g * hidden, hidden) for g in cell.order]


def _in_order(c: Context, w: Tensor, cell: _Cell) -> Tensor:
    return cat(c, _gates(c, w, cell), 0)


def _layer(
    c: Context, cell: _Cell, x: Tensor, weights: Sequence[Sequence[Tensor]], states: list[Tensor], direction: str
) -> tuple[Tensor, list[Tensor]]:
    """One layer over [T, B, I]; `weights` per direction: w_ih, w_hh and, if there are biases, b_ih, b_hh; states
    [D, B, H]. -> [T, B, D * H], last states."""
    projected = c.emit(
        "MatMul", x, cat(c, [_in_order(c, w[0], cell) for w in weights], 0), transpose_b=1
    )  # fmt: skip
    bias_h = None
    if len(weights[0]) > 2:
        biases = []
        for w in weights:
            of_input, of_state = _gates(c, w[2], cell), _gates(c, w[3], cell)
            if cell is _GRU:  # the last gate's is added before the reset
                of_state[2] = c.full(of_state[2].shape, 0.0, x.dtype)
            biases.append(c.emit("Add", cat(c, of_input, 0), cat(c, of_state, 0)))
        projected = c.emit("Add", projected, cat(c, biases, 0))
        if cell is _GRU:
            bias_h = stack(c, [_gates(c, w[3], cell)[2] for w in weights], 0)
    recurrent = stack(c, [c.transpose(_in_order(c, w[1], cell), [1, 0]) for w in weights], 0)
    inputs: list[Tensor | None] = [projected, recurrent, None, *states]
    attributes: dict[str, Any] = {"activations": list(cell.activations) * len(weights), "direction": direction}
    if cell is _GRU:
        inputs.append(bias_h)
        attributes["linear_before_reset"] = 1
    y, *last = c.emit_all(cell.op, *inputs, **attributes)
    t, d, b, h = y.shape
    return c.reshape(c.transpose(y, [0, 2, 1, 3]), [t, b, simple(d * h)]), list(last)


def _network(
    c: Context, cell: _Cell, x: Tensor, states: Sequence[Tensor], params: Sequence[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    if train and dropout and num_layers > 1:
        refuse("dropout in training mode: it is random")
    each = 4 if has_biases else 2
    directions = 2 if bidirectional else 1
    if len(params) != each * directions * num_layers:
        refuse("a recurrent layer with projections")
    if batch_first:
        x = c.transpose(x, [1, 0, 2])
    last: list[list[Tensor]] = []
    for layer in range(num_layers):
        first = layer * directions
        weights = [params[each * (first + d) : each * (first + d + 1)] for d in range(directions)]
        own = [c.slice(s, 0, first, directions) for s in states]
        x, ends = _layer(c, cell, x, weights, own, "bidirectional" if bidirectional else "forward")
        last.append(ends)
    if batch_first:
        x = c.transpose(x, [1, 0, 2])
    return x, *[cat(c, [ends[i] for ends in last], 0) for i in range(len(states))]


@aten("lstm.input")
def lstm(c: Context, x: Tensor, states: Sequence[Tensor], params: Sequence[Tensor], *settings: Any) -> Any:
    return _network(c, _LSTM, x, states, params, *settings)


def _single_state(name: str, cell: _Cell) -> None:
    @aten(f"{name}.input")
    def handler(c: Context, x: Tensor, state: Tensor, params: Sequence[Tensor], *settings: Any) -> Any:
        return _network(c, cell, x, [state], params, *settings)


for _name, _cell in (("gru", _GRU), ("rnn_tanh", _TANH), ("rnn_relu", _RELU)):
    _single_state(_name, _cell)


@aten("mkldnn_rnn_layer")
def rnn_layer(
    c: Context, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, h: Tensor, cell_state: Tensor,
    reverse: bool, batch_sizes: Any, mode: int, hidden_size: Any, num_layers: int, has_biases: bool,
    bidirectional: bool, batch_first: bool, train: bool,
) -> Any:  # fmt: skip
    """One direction of one LSTM layer: what PyTorch makes of nn.LSTM in compiled inference."""
    if mode != 2 or train or batch_sizes or bidirectional or num_layers != 1:
        refuse("a fused recurrent layer of this kind")
    weights = (w_ih, w_hh, b_ih, b_hh) if has_biases else (w_ih, w_hh)
    if batch_first:
        x = c.transpose(x, [1, 0, 2])
    shape: list[Size] = [1, x.shape[1], w_hh.shape[1]]
    states = [c.reshape(s, shape) for s in (h, cell_state)]
    y, last = _layer(c, _LSTM, x, [weights], states, "reverse" if reverse else "forward")
    if batch_first:
        y = c.transpose(y, [1, 0, 2])
    told = c.node.meta["val"] if c.node is not None else None
    ends = [c.reshape(s, c.sizes(told[1 + i].shape)) if told is not None else s for i, s in enumerate(last)]
    return y, *ends, c.full([0], 0, torch.uint8)
