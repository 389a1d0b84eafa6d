"""cuvil.compile as an object: options, reports, threads, copies, weights, compilations."""

import copy
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import threading
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import cuvil  # noqa: E402
from cuvil.torch import weights  # noqa: E402
from torch import nn  # noqa: E402


@pytest.fixture(autouse=True)
def no_grad():
    torch._dynamo.reset()
    with torch.no_grad():
        yield


@cuvil.compile
def at_module_level(x):
    """Doubles."""
    return x * 2


def session(f):
    return (f if hasattr(f, "_session") else f._cuvil)._session


def only_unit(f):
    (frame,) = session(f).frames
    return frame.unit()


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)).eval()


# ---- the object ----


def test_it_looks_like_the_function():
    @cuvil.compile(numerics="strict")
    def twice(x, *, k: int = 2):
        """Says what it does."""
        return x * k

    assert twice.__name__ == "twice" and twice.__doc__ == "Says what it does."
    assert str(inspect.signature(twice)) == "(x, *, k: int = 2)"
    assert (
        "twice at " in repr(twice) and "test_torch_decorator.py" in repr(twice) and "numerics='strict'" in repr(twice)
    )
    assert inspect.unwrap(twice)(torch.ones(1)).item() == 2


def test_pickling_is_refused_and_says_what_to_do():
    for f in (at_module_level, cuvil.compile(model())):
        with pytest.raises(TypeError, match="compile it again"):
            pickle.dumps(f)


def test_copies_compile_for_themselves():
    x = torch.ones(3)
    at_module_level(x)
    f = copy.copy(at_module_level)
    assert f.report().compilations == 0
    torch.testing.assert_close(f(x), x * 2)
    assert f.report().compilations == 1


def test_a_compiled_module_shows_the_module():
    m = model()
    f = cuvil.compile(m)
    assert isinstance(f, nn.Sequential) and "cuvil.compile of Sequential" in repr(f)
    assert f.state_dict().keys() == m.state_dict().keys()
    f.train()
    assert m.training


def test_decorating_twice_is_decorating_once():
    f = cuvil.compile(cuvil.compile(lambda x: x + 1), numerics="strict")
    torch.testing.assert_close(f(torch.ones(2)), torch.full((2,), 2.0))
    g = cuvil.compile(cuvil.compile(model()))
    assert g._cuvil.module.__class__ is nn.Sequential


def test_what_is_no_function_is_refused():
    async def coroutine(x):
        return x

    def generator(x):
        yield x

    for wrong in (coroutine, generator):
        with pytest.raises(cuvil.UnsupportedError, match="coroutine or generator"):
            cuvil.compile(wrong)
    for wrong in (3, dict, torch.jit.script(nn.Linear(2, 2))):
        with pytest.raises(TypeError):
            cuvil.compile(wrong)


def test_report_survives_no_grad_around_it():
    @torch.no_grad()
    @cuvil.compile
    def f(x):
        return x + 1

    f(torch.ones(2))
    assert f.report().compilations == 1


def test_inspect_is_refused_by_name():
    with pytest.raises(cuvil.UnsupportedError, match="inspect"):
        at_module_level.inspect(torch.ones(1), name="x")


def test_without_torch_the_message_says_so():
    code = "import sys; sys.modules['torch'] = None\nimport cuvil\ntry: cuvil.compile(print)\nexcept ImportError as e: print(e)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs PyTorch" in out.stdout


def test_importing_cuvil_does_not_import_torch():
    code = "import sys, cuvil; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


# ---- options ----


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"target": "gpu"}, cuvil.UnsupportedError, "gpu"),
        ({"target": "tpu"}, cuvil.TargetError, "tpu"),
        ({"precision": "int8"}, cuvil.UnsupportedError, "int8"),
        ({"precision": "fp64"}, ValueError, "'fp32', 'fp16'"),
        ({"mode": "instrumented"}, cuvil.UnsupportedError, "instrumented"),
        ({"mode": "max"}, ValueError, "mode"),
        ({"tune": "fast"}, cuvil.UnsupportedError, "tune"),
        ({"dynamic": "yes"}, ValueError, "dynamic"),
        ({"fallback": 1}, ValueError, "fallback"),
        ({"numerics": "loose"}, ValueError, "numerics"),
        ({"recompile": "never"}, ValueError, "recompile"),
        ({"num_threads": 0}, ValueError, "num_threads"),
        ({"num_threads": True}, ValueError, "num_threads"),
        ({"threads": 2}, ValueError, "no option 'threads'"),
    ],
)
def test_wrong_options_are_refused_at_once(options, error, text):
    with pytest.raises(error, match=text):
        cuvil.compile(lambda x: x, **options)
    with pytest.raises(error, match=text):
        cuvil.compile(**options)


def test_reference_target_agrees():
    m = model()
    x = torch.randn(4, 6)
    torch.testing.assert_close(cuvil.compile(m, target="reference")(x), m(x), rtol=1e-5, atol=1e-5)


def test_threads_of_the_call():
    m = model()
    x = torch.randn(4, 6)
    for n in (1, 2):
        f = cuvil.compile(m, num_threads=n)
        torch.testing.assert_close(f(x), m(x), rtol=1e-5, atol=1e-5)
        assert only_unit(f).variants[0].models[0].num_threads == n


def test_a_changed_torch_num_threads_is_honoured():
    f = cuvil.compile(model())
    x = torch.randn(4, 6)
    want = f(x)
    before = torch.get_num_threads()
    try:
        for n in (1, 2, 1):
            torch.set_num_threads(n)
            torch.testing.assert_close(f(x), want)
    finally:
        torch.set_num_threads(before)


def test_torch_compile_knows_the_backend_by_name():
    m = model()
    x = torch.randn(4, 6)
    f = torch.compile(m, backend="cuvil", options={"fallback": False})
    torch.testing.assert_close(f(x), m(x), rtol=1e-5, atol=1e-5)
    assert "cuvil" in torch._dynamo.list_backends()


# ---- fallback=False ----


def test_without_fallback_all_reasons_come_at_once_with_lines():
    @cuvil.compile(fallback=False)
    def f(x):
        y = torch.mode(x)[0]
        z = torch.relu(x)
        return y, torch.rand(3), z

    with pytest.raises(cuvil.UnsupportedError) as e:
        f(torch.randn(3, 3))
    text = str(e.value)
    assert "mode" in text and "rand" in text and text.count("test_torch_decorator.py:") == 2
    assert len(text.splitlines()) <= 10
    with pytest.raises(cuvil.UnsupportedError):
        f(torch.randn(3, 3))


def test_without_fallback_graph_breaks_are_refused():
    @cuvil.compile(fallback=False)
    def f(x):
        y = x + 1
        print(end="")
        return y * 2

    with pytest.raises(cuvil.UnsupportedError, match="test_torch_decorator"):
        f(torch.ones(2))


def test_without_fallback_gradients_are_refused():
    f = cuvil.compile(model(), fallback=False)
    with torch.enable_grad(), pytest.raises(cuvil.UnsupportedError, match="no_grad"):
        f(torch.ones(2, 6))


def test_what_needs_gradients_warns_once():
    f = cuvil.compile(model())
    with torch.enable_grad(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        f(torch.ones(2, 6))
        f(torch.ones(3, 6))
    assert len([w for w in seen if "no_grad" in str(w.message)]) == 1
    assert "no_grad" in str(f.report())


# ---- compilations ----


def test_a_range_of_sizes_takes_two_compilations():
    f = cuvil.compile(model())
    m = model()
    for n in (3, 4, 17, 9, 2, 100):
        x = torch.randn(n, 6)
        torch.testing.assert_close(f(x), m(x), rtol=1e-5, atol=1e-5)
    assert f.report().compilations == 2


def test_dynamic_takes_one():
    f = cuvil.compile(model(), dynamic=True)
    for n in (3, 4, 17):
        assert f(torch.randn(n, 6)).shape == (n, 3)
    assert f.report().compilations == 1


def test_recompile_error():
    @cuvil.compile(recompile="error")
    def f(x):
        return x * 2

    f(torch.ones(3))
    f(torch.zeros(3))
    with pytest.raises(cuvil.CuvilError, match="recompile"):
        f(torch.ones(4))
    torch.testing.assert_close(f(torch.ones(3)), torch.full((3,), 2.0))


def test_recompile_error_allows_the_graphs_of_the_first_call():
    @cuvil.compile(recompile="error")
    def f(x):
        y = x * 2
        print(end="")
        return y + 1

    f(torch.ones(3))
    torch.testing.assert_close(f(torch.ones(3)), torch.full((3,), 3.0))


def test_thirty_two_threads_compile_once():
    m = model()
    f = cuvil.compile(m)
    x = torch.randn(4, 6)
    want = m(x)
    barrier = threading.Barrier(32)
    wrong = []

    def work():
        barrier.wait()
        with torch.no_grad():
            y = f(x)
        if not torch.allclose(y, want, atol=1e-5):
            wrong.append(y)

    threads = [threading.Thread(target=work) for _ in range(32)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and f.report().compilations == 1


def test_a_new_shape_from_many_threads_compiles_once_more():
    f = cuvil.compile(model())
    f(torch.randn(4, 6))
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        with torch.no_grad():
            f(torch.randn(9, 6))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert f.report().compilations == 2


def test_small_pieces_stay_in_pytorch():
    @cuvil.compile
    def f(x):
        s, _ = torch.mode(x)
        return s + 1

    torch.testing.assert_close(f(torch.ones(3, 3)), torch.full((3,), 2.0))
    assert not only_unit(f).partition.regions


def test_code_goes_when_the_function_goes():
    f = cuvil.compile(model())
    f(torch.randn(2, 6))
    unit = weakref.ref(only_unit(f))
    del f
    gc.collect()
    assert unit() is None


def test_outputs_do_not_pile_up():
    f = cuvil.compile(model())
    x = torch.randn(2, 6)
    y = weakref.ref(f(x))
    gc.collect()
    assert y() is None


# ---- weights ----


def test_changed_weights_are_packed_in_the_background():
    m = model()
    f = cuvil.compile(m)
    x = torch.randn(4, 6)
    f(x)
    unit = only_unit(f)
    m[0].weight.mul_(2)
    torch.testing.assert_close(f(x), m(x), rtol=1e-5, atol=1e-5)
    assert unit.eager_calls == 1
    weights.wait()
    torch.testing.assert_close(f(x), m(x), rtol=1e-5, atol=1e-5)
    f(x)
    assert unit.eager_calls == 1 and unit.repacks == 1
    assert "packed again 1 times" in str(f.report())


def test_two_models_in_turn_are_packed_once_each():
    a, b = model(0), model(1)

    @cuvil.compile
    def infer(m, x):
        return m(x)

    x = torch.randn(4, 6)
    for _ in range(4):
        for m in (a, b):
            torch.testing.assert_close(infer(m, x), m(x), rtol=1e-5, atol=1e-5)
            weights.wait()
    assert only_unit(infer).repacks == 1 and only_unit(infer).eager_calls == 1


def test_weights_that_never_rest_become_inputs():
    m = model()
    f = cuvil.compile(m)
    x = torch.randn(4, 6)
    for _ in range(8):
        torch.testing.assert_close(f(x), m(x), rtol=1e-5, atol=1e-5)
        m[0].weight.mul_(0.9)
        weights.wait()
    unit = only_unit(f)
    assert len(unit.changes.ordinary) == 1
    before = unit.eager_calls
    for _ in range(3):
        m[0].weight.mul_(0.9)
        torch.testing.assert_close(f(x), m(x), rtol=1e-5, atol=1e-5)
    assert unit.eager_calls == before


def test_static_inputs_see_what_changed():
    from cuvil import _core

    t = torch.randn(3, 4)
    for change in (
        lambda: t.add_(1),
        lambda: setattr(t, "data", torch.randn(3, 4)),
        lambda: setattr(t, "data", t.data.t()),
        lambda: setattr(t, "data", t.data[:2]),
        lambda: t.resize_(2, 2),
        lambda: t.set_(torch.randn(2, 2)),
        lambda: t.unsqueeze_(0),
    ):
        s = _core.StaticInputs([(1, t)])
        assert s.unchanged((None, t)) and not s.unchanged((None, t.clone())) and not s.unchanged((t,))
        change()
        assert not s.unchanged((None, t))
    with torch.inference_mode():
        u = torch.ones(2)
    with pytest.raises(ValueError, match="versions"):
        _core.StaticInputs([(0, u)])


# ---- reports ----


def test_the_report_names_lines_kernels_and_reasons():
    @cuvil.compile
    def f(x):
        h = torch.relu(x @ x)
        m, _ = torch.mode(h)
        print(end="")
        return torch.softmax(h, -1) + m

    assert "nothing compiled yet" in str(f.report())
    f(torch.randn(4, 4))
    report = f.report()
    first = inspect.getsourcelines(inspect.unwrap(f))[1]
    lines = {line.number - first: line for g in report.graphs for line in g.lines}
    assert lines[2].compiled == ["matmul", "relu"] and lines[2].source == "h = torch.relu(x @ x)"
    assert lines[3].eager == ["mode"] and "mode" in lines[3].reasons[0]
    assert report.graphs[0].graph_break and "print" in report.graphs[0].graph_break
    assert report.eager == lines[3].reasons
    assert all(part in str(report) for part in ("compiled: matmul, relu", "PyTorch: mode (", "ends at:"))


def test_functools_partial_and_lambda():
    f = cuvil.compile(functools.partial(lambda k, x: x * k, 3.0))
    torch.testing.assert_close(f(torch.ones(2)), torch.full((2,), 3.0))
