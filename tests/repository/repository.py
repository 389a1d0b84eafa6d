"""What the checks of the repository share: which files are ours, and their text."""

from __future__ import annotations

import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("core", "runtime", "bindings", "tools", "tests", "bench", "examples", "cmake", "docs", "requirements")
CXX = {".h", ".hpp", ".cpp", ".c", ".inc", ".fbs"}
TEXT = CXX | {".py", ".md", ".txt", ".toml", ".cmake", ".json", ".yaml", ".in", ".inc", ".pyi", ".sh"}


@functools.cache
def files() -> list[Path]:
    """All files of ours, sorted; nothing that a build made."""
    found = [p for p in ROOT.iterdir() if p.is_file() and p.name != ".git"]
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            parts = path.relative_to(ROOT).parts
            made = any(part in ("__pycache__", "dist") or part.startswith(("build", ".")) for part in parts)
            if path.is_file() and not made and not any(part.endswith(".egg-info") for part in parts):
                found.append(path)
    return sorted(found)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def sources(*folders: str, suffixes: set[str] | None = None) -> list[Path]:
    """Files below the folders; C and C++ unless suffixes says otherwise."""
    wanted = suffixes or CXX
    return [p for p in files() if p.suffix in wanted and name(p).startswith(tuple(f + "/" for f in folders))]
