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

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import cuvil
from cuvil.torch.convert import convert, why_not
from cuvil.torch.decompositions import table

warnings.filterwarnings("ignore")
_RANDOM = ("rand", "normal", "dropout", "bernoulli", "multinomial", "uniform", "exponential", "geometric", "cauchy",
           "empty", "rrelu")  # fmt: skip


def trace(f: Any, tensors: list[torch.Tensor]) -> torch.fx.GraphModule:
    gm = make_fx(torch.func.functionalize(f), decomposition_table=table(), tracing_mode="fake")(*tensors)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm


def agree(got: Any, want: Any) -> str | None:
    try:
        torch.testing.assert_close(got, want, equal_nan=True, check_stride=False, rtol=1e-4, atol=1e-5)
    except AssertionError as e:
        return " ".join(str(e).split())[:160]
    return None


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

    with torch.no_grad():
        try:
            want = f(*[t.clone() for t in tensors])
        except Exception as e:
            return "skipped", f"eager: {e}"[:100]
        try:
            gm = trace(f, tensors)
        except Exception as e:  # data-dependent sizes, tensor subclasses: Dynamo breaks the graph there, too
            return "eager", f"trace: {type(e).__name__}"
    reasons = [r for n in gm.graph.nodes if n.op == "call_function" and (r := why_not(n))]
    if reasons:
        return "eager", reasons[0]
    try:
        c = convert(gm)
        y: Any = ()
        if c.graph.outputs:
            y = cuvil.build(c.graph, target=target)(*[tensors[i] for i in c.inputs])
            y = y if isinstance(y, tuple) else (y,)
        got = c.rebuild([torch.as_tensor(t) for t in y], tensors)
    except cuvil.UnsupportedError as e:
        return "eager", "late: " + str(e).splitlines()[-1][:100]
    except Exception as e:
        return "crashed", f"{type(e).__name__}: {' '.join(str(e).split())[:200]}"
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
