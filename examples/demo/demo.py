"""The demo: a trained text detector, from ONNX to native code, beside ONNX Runtime and in a process without Python.

Run it with `./dev demo`: it sets everything up. Results land in demo_out/.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import cuvil
import numpy as np
from picture import boxes_of, draw, mark, to_input
from timing import side_by_side

ROOT = Path(__file__).resolve().parents[2]


def detector() -> Path:
    """The PP-OCR text detector that the package rapidocr ships; the package itself is not imported."""
    spec = importlib.util.find_spec("rapidocr")
    models = sorted((Path(spec.origin).parent / "models").glob("*det*.onnx")) if spec and spec.origin else []
    if not models:
        sys.exit(
            "demo: the package rapidocr, which ships the detector, is not installed; run ./dev demo, it installs it"
        )
    return models[0]


def say(text: str) -> None:
    print(text, flush=True)


def peak_of(code: str, *args: str) -> dict[str, float]:
    """Runs Python code in a process of its own; it prints a JSON object, to which its peak memory is added."""
    code += (
        # VmHWM, not ru_maxrss: that one begins with what the parent had when it forked.
        "\nstatus = open('/proc/self/status').read().split('VmHWM:')[1]"
        "\nr['rss'] = int(status.split()[0]) / 1024; print(json.dumps(r))"
    )
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


BUILD = """
import json, sys, time, numpy as np, cuvil
x = np.load(sys.argv[2]); t = time.perf_counter()
exe = cuvil.build(cuvil.import_onnx(sys.argv[1], shapes={"x": x.shape}))
r = {'ready': time.perf_counter() - t}; exe(x)
"""
LOAD = """
import json, sys, time, numpy as np, cuvil
x = np.load(sys.argv[2]); t = time.perf_counter()
exe = cuvil.load(sys.argv[1]); exe(x)
r = {'ready': time.perf_counter() - t}
"""
PEER = """
import json, sys, time, numpy as np, onnxruntime as ort
x = np.load(sys.argv[2]); t = time.perf_counter()
s = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
r = {'ready': time.perf_counter() - t}; s.run(None, {"x": x})
"""


def native(runner: Path, artifact: Path, x: Path, y: Path) -> str:
    """The same from the .cvl in the C++ runner: no Python, no compiler in that process."""
    done = subprocess.run(
        [runner, artifact, "--input", f"x={x}", "--output", y, "--repeat", "20"], capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(f"demo: {runner.name} failed: {done.stderr}")
    return done.stdout


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", type=Path, default=ROOT / "demo_out")
    ap.add_argument("--runner", type=Path, default=ROOT / "build/release/examples/cpp_runner/cpp_runner")
    ap.add_argument(
        "--threads", type=int, default=None, help="of all contestants; default: all cores this process may use"
    )
    a = ap.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    threads = a.threads or len(os.sched_getaffinity(0))

    import onnxruntime as ort

    model = detector()
    picture = draw()
    x = to_input(picture)
    picture.save(a.out / "picture.png")
    np.save(a.out / "x.npy", x)
    say(f"model    {model.name}, {model.stat().st_size / 1e6:.1f} MB")

    t = time.perf_counter()
    graph = cuvil.import_onnx(model, shapes={"x": x.shape})
    exe = cuvil.build(graph, num_threads=threads)
    say(f"build    {len(graph.nodes)} nodes in {time.perf_counter() - t:.2f} s")
    probability = exe(x)
    boxes = boxes_of(probability[0, 0])
    mark(picture, boxes).save(a.out / "boxes.png")
    say(f"boxes    {len(boxes)} lines of text found, drawn in {a.out / 'boxes.png'}")

    artifact = a.out / "detector.cvl"
    exe.save(artifact)
    say(f"save     {artifact.name}, {artifact.stat().st_size / 1e6:.1f} MB (this machine and its baseline)")

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    want = session.run(None, {"x": x})[0]
    error = float(np.abs(probability - want).max() / np.abs(want).max())
    if [(b.left, b.top, b.right, b.bottom) for b in boxes_of(want[0, 0])] != [
        (b.left, b.top, b.right, b.bottom) for b in boxes
    ]:
        sys.exit("demo: the boxes differ from those of ONNX Runtime")

    text = native(a.runner, artifact, a.out / "x.npy", a.out / "y.npy")
    y = np.load(a.out / "y.npy")
    say(f"native   {a.runner.name}: same bits as in Python: {bool(np.array_equal(y, cuvil.load(artifact)(x)))}")
    say("         " + text.strip().replace("\n", "\n         "))

    times = side_by_side({"cuvil": lambda: exe(x), "onnxruntime": lambda: session.run(None, {"x": x})})
    ratio = statistics.median(c / o for c, o in zip(times["cuvil"], times["onnxruntime"], strict=True))
    built = peak_of(BUILD, str(model), str(a.out / "x.npy"))
    loaded = peak_of(LOAD, str(artifact), str(a.out / "x.npy"))
    peer = peak_of(PEER, str(model), str(a.out / "x.npy"))
    rows = [
        ("", "cuvil", "cuvil from .cvl", "ONNX Runtime"),
        ("error against ONNX Runtime", f"{error:.1e}", f"{float(np.abs(y - want).max() / np.abs(want).max()):.1e}", "-"),
        (f"latency, {threads} thread(s)", f"{statistics.median(times['cuvil']):.2f} ms", "", f"{statistics.median(times['onnxruntime']):.2f} ms"),
        ("ready after (kernels cached)", f"{built['ready']:.2f} s", f"{loaded['ready']:.3f} s*", f"{peer['ready']:.2f} s"),
        ("file", f"{model.stat().st_size / 1e6:.1f} MB", f"{artifact.stat().st_size / 1e6:.1f} MB", f"{model.stat().st_size / 1e6:.1f} MB"),
        ("peak memory of a process", f"{built['rss']:.0f} MB", f"{loaded['rss']:.0f} MB", f"{peer['rss']:.0f} MB"),
    ]  # fmt: skip
    say("")
    for row in rows:
        say(f"{row[0]:<30}{row[1]:>14}{row[2]:>18}{row[3]:>16}")
    say("* to the first output")
    say(f"\nlatency cuvil / ONNX Runtime: {ratio:.2f} (below 1: cuvil is faster)")


if __name__ == "__main__":
    main()
