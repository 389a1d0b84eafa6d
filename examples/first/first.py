"""The smallest whole use of Cuvil without any framework: a graph as text, compiled, run, saved, loaded."""

import os
import tempfile

import cuvil
import numpy as np

graph = cuvil.parse(
    """
    graph @softplus_of_rows(%x: f32[N, 64]) -> (%y) {
      %e = Exp(%x) : f32[N, 64]
      %one = Constant() {value = dense<f32[], [1]>} : f32[]
      %s = Add(%e, %one) : f32[N, 64]
      %l = Log(%s) : f32[N, 64]
      %y = ReduceSum(%l) {axes = [1], keepdims = 0} : f32[N]
    }
    """
)
exe = cuvil.build(graph)
x = np.random.default_rng(0).standard_normal((5, 64)).astype(np.float32)
want = np.log1p(np.exp(x)).sum(axis=1)
np.testing.assert_allclose(exe(x), want, rtol=1e-5)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "first.cvl")
    exe.save(path)
    np.testing.assert_array_equal(cuvil.load(path)(x), exe(x))
    print(f"cuvil {cuvil.__version__}: compiled, saved ({os.path.getsize(path)} bytes) and loaded; results agree")
