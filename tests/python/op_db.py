"""PyTorch's own operator samples through the converter, against eager.

    python tests/python/op_db.py [--samples 3] [--dtype float32] [--target cpu] [--only add,conv] [--list eager|wrong]

Every operator of op_db is traced to ATen (functionalised, with the decompositions that the backend uses). A graph that
the converter takes whole counts as native and must agree with eager; one with an operator that Cuvil lacks counts as
eager. Prints the shares; exit status 1 if anything is wrong or crashed.
"""

import argparse
import collections
import itertools
import sys
import traceback
import warnings
from typing import Any

import cuvil
import torch
from cuvil.torch.convert import convert, why_not
from cuvil.torch.decompositions import keep_composites, table
from functorch.compile import aot_function
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

warnings.filterwarnings("ignore")
_RANDOM = ("rand", "normal", "dropout", "bernoulli", "multinomial", "uniform", "exponential", "geometric", "cauchy",
           "empty", "rrelu")  # fmt: skip


def agree(got: torch.Tensor, want: torch.Tensor) -> str | None:
    """None, or how they differ; half precision within PyTorch's own bounds."""
    bounds = {"rtol": 1e-4, "atol": 1e-5} if want.dtype == torch.float32 else {}
    try:
        torch.testing.assert_close(got, want, equal_nan=True, check_stride=False, **bounds)
    except AssertionError as e:
        return " ".join(str(e).split())[:160]
    return None


def compile_graph(gm: torch.fx.GraphModule, target: str, seen: list[tuple[str, str]]) -> Any:
    """The backend: native where the converter takes the whole graph, else eager."""
    reasons = [r for n in gm.graph.nodes if n.op == "call_function" and (r := why_not(n))]
    if reasons:
        seen.append(("eager", reasons[0]))
        return gm.forward
    try:
        c = convert(gm)
        with _disable_current_modes():
            exe = cuvil.build(c.graph, target=target) if c.graph.outputs else None
    except cuvil.UnsupportedError as e:
        seen.append(("eager", "late: " + str(e).splitlines()[-1][:100]))
        return gm.forward
    except Exception as e:
        seen.append(("crashed", f"{type(e).__name__}: {' '.join(str(e).split())[:200]}"))
        return gm.forward
    seen.append(("native", ""))

    def run(*args: Any) -> Any:
        y = exe(*[torch.as_tensor(args[i]) for i in c.inputs]) if exe is not None else ()
        return c.rebuild(y if isinstance(y, tuple) else (torch.as_tensor(y),), args)

    return run


def check(op: Any, sample: Any, target: str) -> tuple[str, str]:
    """("native" | "eager" | "wrong" | "crashed" | "skipped", detail)"""
    flat, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    slots = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]
    tensors = [flat[i].detach().clone() for i in slots]

    def f(*given: torch.Tensor) -> Any:
        args = list(flat)
        for i, t in zip(slots, given, strict=True):
            args[i] = t
        x, a, k = pytree.tree_unflatten(args, spec)
        return op.op(x, *a, **k)

    seen: list[tuple[str, str]] = []
    with torch.no_grad():
        try:
            want = f(*[t.clone() for t in tensors])
        except Exception as e:
            return "skipped", f"eager: {e}"[:100]
        torch._dynamo.reset()
        compiled = aot_function(f, fw_compiler=lambda gm, _: compile_graph(gm, target, seen), decompositions=table())
        try:
            with keep_composites():
                got = compiled(*[t.clone() for t in tensors])
        except Exception as e:
            detail = f"{type(e).__name__}: {' '.join(str(e).split())[:200]}"
            # Sizes that depend on values, tensor subclasses: Dynamo breaks the graph there, too.
            return ("crashed" if seen else "eager"), detail
    if not seen or seen[0][0] != "native":
        return seen[0] if seen else ("eager", "nothing to compile")
    flat_want, flat_got = (pytree.tree_leaves(v) for v in (want, got))
    if len(flat_want) != len(flat_got):
        return "wrong", f"{len(flat_got)} results"
    for a, b in zip(flat_got, flat_want, strict=True):
        problem = agree(a, b) if isinstance(b, torch.Tensor) else (None if a == b else f"{a} instead of {b}")
        if problem:
            return "wrong", problem
    return "native", ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", default="wrong,crashed")
    parser.add_argument("--verbose", action="store_true")
    a = parser.parse_args()
    dtype = getattr(torch, a.dtype)
    wanted, listed = set(filter(None, a.only.split(","))), set(a.list.split(","))
    counts: collections.Counter[str] = collections.Counter()
    per_op: collections.Counter[str] = collections.Counter()
    for op in op_db:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if (wanted and op.name not in wanted and name not in wanted) or dtype not in op.dtypes:
            continue
        if any(w in name for w in _RANDOM):
            counts["random, not run"] += 1
            continue
        try:
            torch.manual_seed(0)
            samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), a.samples))
        except Exception as e:
            print(f"{name}: no samples ({type(e).__name__})")
            continue
        seen = set()
        if a.verbose:
            print(name, flush=True)
        for i, sample in enumerate(samples):
            try:
                kind, detail = check(op, sample, a.target)
            except Exception:
                kind, detail = "crashed", traceback.format_exc(limit=-2).replace("\n", " ")[-200:]
            counts[kind] += 1
            seen.add(kind)
            if kind in listed:
                print(f"{kind} {name}[{i}]: {detail}", flush=True)
        worst = next((k for k in ("crashed", "wrong", "eager", "native") if k in seen), "skipped")
        per_op[worst] += 1
    ran = sum(counts[k] for k in ("native", "eager", "wrong", "crashed"))
    print("samples:", dict(counts), f"native {counts['native'] / max(ran, 1):.1%}")
    print("operators:", dict(per_op), f"native {per_op['native'] / max(sum(per_op.values()), 1):.1%}")
    return 1 if counts["wrong"] or counts["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
