"""The `cuvil` command: compile, run, inspect, diff."""

import argparse
import os
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cuvil import _core, api
from cuvil.diff import diff
from cuvil.errors import CuvilError, ModelError, ShapeError, UnsupportedError
from cuvil.executable import Port
from cuvil.specialize import ValueGraph

_EPILOG = """examples:
  cuvil compile model.onnx -o model.cvl                     for this machine and its baseline
  cuvil compile model.onnx -o model.cvl --target aarch64    for another machine
  cuvil compile model.onnx --emit asm | less                what the processor will see
  cuvil run model.cvl --input x=photo.npy --output out.npz  with real data
  cuvil run model.onnx --repeat 100                         with random data, timed
  cuvil inspect model.cvl --verify                          what is inside, and is it undamaged
  cuvil diff model.onnx                                     is optimised code right, and if not, from where on
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry of the command line; returns the exit status."""
    args = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = args.run
    try:
        return run(args)
    except CuvilError as e:
        print(f"cuvil {args.command}: {type(e).__name__}: {e}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, MemoryError) as e:  # an output that cannot be written, random inputs that do not fit
        print(f"cuvil {args.command}: {e}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="cuvil",
        description="Cuvil compiles trained models into native code.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--version", action="version", version=f"cuvil {_core.version()}")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")

    c = commands.add_parser("compile", help="compile a model into a .cvl, or show its code")
    c.add_argument("model", help="an .onnx file, or a .cir text")
    c.add_argument("-o", "--output", help="the file to write; default: MODEL with .cvl; - is standard output for text")
    c.add_argument(
        "--target",
        default="",
        help=f"comma-separated machines: host, {', '.join(_core.target_names())}; default: host and its baseline",
    )
    c.add_argument(
        "--shape", action="append", default=[], metavar="INPUT=1,3,640,640", help="fix the sizes of an input"
    )
    c.add_argument("--precision", default="fp32", help="fp32 (others are not there yet)")
    c.add_argument("--numerics", default="default", choices=["default", "strict"])
    c.add_argument(
        "--emit",
        default="cvl",
        choices=["cvl", "cir", "kir", "llvm", "asm", "static"],
        help="cvl: the artifact; cir: the graph after all passes; kir: the kernels; llvm, asm: their code",
    )
    c.set_defaults(run=_compile)

    r = commands.add_parser("run", help="run a .cvl or a model, on files or on random data")
    r.add_argument("model", help="a .cvl, .onnx or .cir file")
    r.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="an input; default: random")
    r.add_argument(
        "--shape", action="append", default=[], metavar="SYMBOL=N", help="value of a symbolic dimension; default 1"
    )
    r.add_argument("--output", help="write the outputs to this .npz")
    r.add_argument("--repeat", type=_count, default=0, metavar="N", help="time N more runs")
    r.add_argument(
        "--threads", type=_count, default=0, help="at most so many; 0, the default: CUVIL_NUM_THREADS, or all"
    )
    r.add_argument("--seed", type=_count, default=0, help="of random inputs")
    r.set_defaults(run=_run)

    i = commands.add_parser("inspect", help="show what a .cvl or a model holds")
    i.add_argument("model", help="a .cvl, .onnx or .cir file")
    i.add_argument("--verify", action="store_true", help="check the weights of a .cvl against their checksums")
    i.set_defaults(run=_inspect)

    d = commands.add_parser(
        "diff", help="compare optimised code with plain code, and name the first operator that differs"
    )
    d.add_argument("model", help="an .onnx file, or a .cir text")
    d.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="an input; default: random")
    d.add_argument(
        "--shape", action="append", default=[], metavar="SYMBOL=N", help="value of a symbolic dimension; default 1"
    )
    d.add_argument("--tolerance", type=float, default=1e-4, help="of a value's largest element; default 1e-4")
    d.add_argument(
        "--against",
        default="plain",
        choices=["plain", "reference"],
        help="plain: native code without optimisations; reference: the interpreter (slow)",
    )
    d.add_argument("--numerics", default="default", choices=["default", "strict"])
    d.add_argument("--seed", type=_count, default=0, help="of random inputs")
    d.set_defaults(run=_diff)
    return p


def _count(text: str) -> int:
    """A number that is not negative and fits 63 bits."""
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 63):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of that kind")
    return int(text)


def _import(path: str, shapes: dict[str, list[int]] | None = None) -> _core.Graph:
    if path.endswith(".cir"):
        try:
            with open(path, encoding="utf-8") as f:
                return api.parse(f.read())
        except (OSError, UnicodeDecodeError) as e:
            raise ModelError(f"cannot read '{path}': {e}") from None
    if path.endswith((".tflite", ".pb")) or os.path.isdir(path):
        raise UnsupportedError(f"'{path}': only ONNX models and .cir text are read so far")
    graph = api.import_onnx(path, shapes)
    if isinstance(graph, ValueGraph):
        graph.refuse("the command line")
    return graph


def _compile(args: argparse.Namespace) -> int:
    targets = [t for t in args.target.split(",") if t]
    if args.emit == "static":
        raise UnsupportedError("--emit static is not implemented yet. Use --emit cvl.")
    try:
        shapes = {name: [int(n) for n in sizes.split(",")] for name, sizes in (_pair(s, "--shape") for s in args.shape)}
    except ValueError:
        raise ShapeError(f"--shape {' '.join(args.shape)}: write INPUT=1,3,640,640") from None
    if any(abs(n) >= 1 << 63 for shape in shapes.values() for n in shape):
        raise ShapeError(f"--shape {' '.join(args.shape)}: a size does not fit 64 bits")
    graph = _import(args.model, shapes)
    if args.emit != "cvl":
        if len(targets) > 1:
            raise UnsupportedError(f"--emit {args.emit} shows one target at a time")
        text = _core.emit(graph, targets[0] if targets else "cpu", args.precision, args.numerics, args.emit)
        if args.output in (None, "-"):
            print(text)
        else:
            with open(args.output, "w", encoding="utf-8") as f:
                f.write(text)
        return 0
    output = args.output or os.path.splitext(args.model)[0] + ".cvl"
    begin = time.perf_counter()
    _core.save(graph, args.precision, args.numerics, output, targets)
    seconds = time.perf_counter() - begin
    print(f"{output}: {_bytes(os.path.getsize(output))} in {seconds:.2f} s")
    _print_variants(_core.Model(output, 1, inspect_only=True))
    return 0


def _run(args: argparse.Namespace) -> int:
    begin = time.perf_counter()
    if args.model.endswith(".cvl"):
        exe = api.load(args.model, num_threads=args.threads or None)
    else:
        exe = api.build(_import(args.model), num_threads=args.threads or None)
    ready = time.perf_counter()
    inputs = _inputs(exe.inputs, args)
    first = time.perf_counter()
    y = exe(**inputs)
    done = time.perf_counter()
    print(f"ready in {ready - begin:.3f} s, first run {1e3 * (done - first):.3f} ms, {exe.num_threads} thread(s)")
    outputs = dict(zip((o.name for o in exe.outputs), y if isinstance(y, tuple) else (y,), strict=True))
    for name, value in outputs.items():
        print(f"  {name}: {value.dtype}{list(value.shape)} {_summary(value)}")
    if args.repeat > 0:
        times = []
        for _ in range(args.repeat):
            t = time.perf_counter()
            exe(**inputs)
            times.append(1e3 * (time.perf_counter() - t))
        times.sort()
        median = times[len(times) // 2]
        print(f"{args.repeat} runs: median {median:.3f} ms, best {times[0]:.3f} ms, worst {times[-1]:.3f} ms")
    if args.output:
        _save_npz(args.output, outputs)
    return 0


def _diff(args: argparse.Namespace) -> int:
    graph = _import(args.model)
    shown = sys.stderr.isatty()

    def progress(text: str) -> None:
        if shown:
            print(f"\r\033[Kcomparing up to {text}", end="", file=sys.stderr, flush=True)

    ports = tuple(Port(*p) for p in graph.inputs)
    result = diff(graph, _inputs(ports, args), args.tolerance, args.against, args.numerics, progress)
    if shown:
        print("\r\033[K", end="", file=sys.stderr)
    for output in result.outputs:
        print(f"output {output}")
    if result.first is None:
        print(f"no output differs by more than {args.tolerance:g} of its largest value")
        return 0
    print(f"first difference, after {result.builds} comparisons:\n  {result.first}")
    return 1


def _inputs(ports: Sequence[Port], args: argparse.Namespace) -> dict[str, np.ndarray[Any, Any]]:
    files = dict(_pair(text, "--input") for text in args.input)
    sizes: dict[str, int] = {}
    for symbol, size in (_pair(text, "--shape") for text in args.shape):
        if symbol not in {d for p in ports for d in p.shape if isinstance(d, str)}:
            raise ShapeError(f"the model has no symbolic dimension {symbol}")
        try:
            sizes[symbol] = _count(size)
        except argparse.ArgumentTypeError as e:
            raise ShapeError(f"--shape {symbol}={size}: {e}") from None
    unknown = set(files) - {p.name for p in ports}
    if unknown:
        raise ShapeError(
            f"the model has no input {', '.join(sorted(unknown))}; it has {', '.join(p.name for p in ports)}"
        )
    rng = np.random.default_rng(args.seed)
    return {p.name: _load(files[p.name]) if p.name in files else _random(p, sizes, rng) for p in ports}


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ShapeError(f"{option} {text!r}: write NAME=VALUE")
    return name, value


def _load(path: str) -> np.ndarray[Any, Any]:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as e:
        raise ShapeError(f"cannot read '{path}': {e}") from None
    if not isinstance(array, np.ndarray):
        raise ShapeError(f"'{path}' is not one array; give an .npy file")
    return array


def _save_npz(path: str, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """np.savez, for arrays of any name: that one has parameters of its own."""
    with zipfile.ZipFile(path if path.endswith(".npz") else path + ".npz", "w") as z:
        for name, value in arrays.items():
            with z.open(name + ".npy", "w", force_zip64=True) as f:
                np.lib.format.write_array(f, np.asanyarray(value), allow_pickle=False)


_NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16",
          "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool"}  # fmt: skip


def _random(port: Port, sizes: dict[str, int], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    shape = [d if isinstance(d, int) else sizes.get(d, 1) for d in port.shape]
    dtype = np.dtype(_NUMPY.get(port.dtype, "float32"))
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


def _summary(value: np.ndarray[Any, Any]) -> str:
    if value.size == 0:
        return "empty"
    if value.dtype.kind == "f":
        return f"min {value.min():.6g} mean {value.mean():.6g} max {value.max():.6g}"
    return f"min {value.min()} max {value.max()}"


def _inspect(args: argparse.Namespace) -> int:
    if not args.model.endswith(".cvl"):
        print(_import(args.model))
        return 0
    model = _core.Model(args.model, 1, inspect_only=True)
    for key, value in model.metadata.items():
        print(f"{key}: {value}")
    for kind, ports in (("input", model.inputs), ("output", model.outputs)):
        for p in ports:
            print(f"{kind} {Port(*p)}")
    _print_variants(model)
    print("A .cvl is code: its checksums find damage, they are no signature. Load only files you would also run.")
    if args.verify:
        model.verify()
        print("weights: undamaged")
    return 0


def _print_variants(model: _core.Model) -> None:
    print(f"{'variant':<16} {'code':>10} {'weights':>10} {'alone':>10}  runs here")
    for v in model.variants:
        print(
            f"{v['name']:<16} {_bytes(v['code_bytes']):>10} {_bytes(v['weight_bytes']):>10} "
            f"{_bytes(v['file_bytes']):>10}  {'yes' if v['supported'] else 'no'}"
        )


def _bytes(n: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"
