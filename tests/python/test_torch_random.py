"""Random PyTorch programs, compiled, against eager; a failing one is shrunk to its shortest failing part.

100 programs in the usual run, 2,000 with CUVIL_TEST_FULL=1. CUVIL_TEST_SEED runs one program and prints it.
"""

import os
import random
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import cuvil  # noqa: E402

SHAPES = ((4, 6), (6, 4), (4, 1), (1, 6), (6,), (2, 4, 6), (2, 3, 4, 5), ())
UNARY = (
    "torch.relu({a})", "torch.tanh({a})", "torch.sigmoid({a})", "-{a}", "{a}.abs()", "{a}.exp().clamp(max=50)",
    "{a} * {k}", "{a} + {k}", "{k} - {a}", "{a}.clamp({k}, {k} + 1)", "torch.nn.functional.gelu({a})",
    "({a} > {k})", "{a}.sum()", "{a}.mean(dim=-1, keepdim=True)", "{a}.sum(0)", "{a}.amax(-1)", "{a}.flatten()",
    "{a}.reshape(-1)", "{a}.transpose(0, -1)", "{a}.unsqueeze(0)", "{a}.unsqueeze(-1)", "{a}.squeeze()", "{a}[0]",
    "{a}[..., ::2]", "{a}[1:]", "{a}.t()", "{a}.permute(*reversed(range({a}.dim())))", "{a}.contiguous()",
    "{a}.float()", "{a}.softmax(-1)", "torch.nn.functional.layer_norm({a}, {a}.shape[-1:])", "{a}.clone()",
    "{a}.argmax(-1)", "{a}.cumsum(0)", "torch.flip({a}, (0,))", "{a}.repeat(2, *[1] * ({a}.dim() - 1))", "{a}.sort(-1)[0]",
    "{a}.round()", "torch.where({a} > 0, {a}, {k})", "{a}.masked_fill({a} > {k}, 0)", "{a}.expand(3, *{a}.shape)",
    "{a}.chunk(2, -1)[0]", "torch.nn.functional.pad({a}, (1, 2))", "{a}.roll(1, 0)", "{a}.tril()", "{a} ** 2",
    "{a}.rsqrt().nan_to_num(0, 0, 0)", "{a}.long() // 2", "{a}.long() % 3", "torch.rand_like({a})", "{a}.diff()",
)  # fmt: skip
BINARY = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / ({b}.abs() + 1)", "torch.maximum({a}, {b})", "{a} @ {b}",
    "{a} @ {b}.transpose(-1, -2)", "torch.cat([{a}, {b}])", "torch.stack([{a}, {b}])", "torch.cat([{a}, {b}], -1)",
    "torch.where({a} > {b}, {a}, {b})", "torch.atan2({a}, {b} + 3)", "{a} == {b}", "torch.outer({a}, {b})",
    "torch.nn.functional.linear({a}, {b})", "{a}.lerp({b}, 0.3)", "({a} < {b}) & ({a} > 0)",
)  # fmt: skip
STATEMENTS = (
    "{a}.add_({k})", "{a}.mul_({b})", "{a}[0] = {k}", "{a}.zero_()", "{a}.copy_({b})", "{a}[..., 0] += {k}",
    "{a}.relu_()", "{a}.t_()", "{a}.clamp_(-1, 1)", "{a}.view(-1)[0] = {k}",
)  # fmt: skip


def run(lines, inputs, compile=None):
    """(results, inputs afterwards), or the exception's type."""
    source = "def f(" + ", ".join(f"x{i}" for i in range(len(inputs))) + "):\n    "
    names = [f"x{i}" for i in range(len(inputs))] + [name for name, _ in lines if name]
    body = [f"{name} = {text}" if name else text for name, text in lines]
    source += "\n    ".join([*body, f"return {', '.join(names[-3:])},"])
    scope = {"torch": torch}
    exec(source, scope)
    f = scope["f"] if compile is None else compile(scope["f"])
    inputs = [x.clone() for x in inputs]
    torch.manual_seed(0)
    return f(*inputs), inputs


def random_program(seed):
    """Lines that eager PyTorch accepts, and inputs."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    inputs = [torch.randn(rng.choice(SHAPES)) for _ in range(rng.randint(1, 3))]
    lines = []
    wanted = rng.randint(2, 9)
    for _ in range(60):
        if len(lines) == wanted:
            break
        names = [f"x{i}" for i in range(len(inputs))] + [name for name, _ in lines if name]
        near = names[-4:]
        kind = rng.random()
        template = rng.choice(STATEMENTS if kind < 0.12 else BINARY if kind < 0.4 else UNARY)
        text = template.format(a=rng.choice(near), b=rng.choice(names), k=rng.choice((-1.5, -0.5, 0.25, 1.0, 2.0)))
        line = ("", text) if kind < 0.12 else (f"t{len(lines)}", text)
        try:
            results, _ = run([*lines, line], inputs)
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue
        if sum(r.numel() for r in results) < 20_000 and all(
            r.double().nan_to_num().abs().max() < 1e6 for r in results if r.numel()
        ):
            lines.append(line)
    return lines, inputs


def difference(lines, inputs):
    """What is wrong with the compiled program; None if nothing is."""
    try:
        want, want_inputs = run(lines, inputs)
    except Exception:
        return None  # no program: shrinking has left out a line that others need
    torch._dynamo.reset()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got, got_inputs = run(lines, inputs, cuvil.compile)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    for i, (g, w) in enumerate(zip([*got, *got_inputs], [*want, *want_inputs], strict=True)):
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"value {i}: {g.dtype}{list(g.shape)} instead of {w.dtype}{list(w.shape)}"
        if w.dtype.is_floating_point:
            scale = max(1.0, float(w.nan_to_num(0, 0, 0).abs().max())) if w.numel() else 1.0
            if not torch.allclose(g, w, rtol=1e-4, atol=1e-4 * scale, equal_nan=True):
                return f"value {i} differs by {(g - w).abs().max()}"
        elif not torch.equal(g, w):
            return f"value {i} differs"
    aliases = [a.data_ptr() == b.data_ptr() and a.numel() > 0 for a in want for b in want]
    if aliases != [a.data_ptr() == b.data_ptr() and a.numel() > 0 for a in got for b in got]:
        return "results alias each other differently"
    return None


def is_close_call(lines, inputs):
    """Whether rounding decides what a program returns: comparisons, argmax, rounding and the like of computed values."""
    nudged = [x * (1 + 1e-6) for x in inputs]
    try:
        a, b = run(lines, inputs)[0], run(lines, nudged)[0]
    except Exception:
        return False
    return any(x.shape != y.shape or not torch.allclose(x.float(), y.float(), 1e-3, 1e-3, equal_nan=True)
               for x, y in zip(a, b, strict=True))  # fmt: skip


def shrink(lines, inputs):
    """Leaves out lines as long as the program still fails."""
    progress = True
    while progress:
        progress = False
        for i in reversed(range(len(lines))):
            shorter = lines[:i] + lines[i + 1 :]
            if shorter and difference(shorter, inputs):
                lines, progress = shorter, True
    return lines


PER_TEST = 10
COUNT = 2000 if os.environ.get("CUVIL_TEST_FULL") else 100
SEEDS = [int(os.environ["CUVIL_TEST_SEED"])] if "CUVIL_TEST_SEED" in os.environ else range(0, COUNT, PER_TEST)


@pytest.mark.parametrize("first", SEEDS)
def test_random_programs(first):
    only = "CUVIL_TEST_SEED" in os.environ
    for seed in range(first, first + (1 if only else PER_TEST)):
        lines, inputs = random_program(seed)
        if not lines:
            continue
        if only:
            print("\n".join(f"{n} = {t}" if n else t for n, t in lines), [list(x.shape) for x in inputs])
        with torch.no_grad():
            problem = difference(lines, inputs)
            if problem and not is_close_call(lines, inputs):
                short = shrink(lines, inputs)
                body = "\n".join(f"    {n} = {t}" if n else f"    {t}" for n, t in short)
                shapes = [list(x.shape) for x in inputs]
                pytest.fail(f"seed {seed}, inputs {shapes}: {difference(short, inputs)}\n{body}", pytrace=False)
