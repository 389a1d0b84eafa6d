"""Long sums stay as exact as short ones: partial sums, not one accumulator."""

import cuvil
import numpy as np
import pytest


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize(
    "text, shape",
    [
        ("%y = ReduceMean(%x) {axes = [2, 3], keepdims = 0} : f32[1, 16]", (1, 16, 160, 160)),
        ("%y = ReduceMean(%x) {axes = [0], keepdims = 0} : f32[3]", (50000, 3)),
        ("%y = ReduceMean(%x) {axes = [1], keepdims = 0} : f32[2]", (2, 70001)),
    ],
)
def test_means_of_many_values(target: str, text: str, shape: tuple[int, ...]) -> None:
    sizes = ", ".join(map(str, shape))
    graph = cuvil.parse(f"graph @main(%x: f32[{sizes}]) -> (%y) {{ {text} }}")
    x = (np.random.default_rng(0).random(shape) + 0.5).astype(np.float32)
    y = cuvil.build(graph, target=target)(x)
    axes = {4: (2, 3), 2: (0,) if shape[1] == 3 else (1,)}[len(shape)]
    want = x.astype(np.float64).mean(axis=axes)
    # One accumulator would be off by 1e-5 and more.
    np.testing.assert_allclose(y, want, rtol=1e-6)
