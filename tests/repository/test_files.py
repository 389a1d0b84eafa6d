"""Sizes of files, words that do not belong in them, and operator names outside the operators' folder."""

from __future__ import annotations

import re
import statistics

import pytest
from repository import CXX, TEXT, files, name, sources, text

CODE = CXX | {".py"}
MOST_LINES = 700
MEDIAN_LINES = 150

# Paths and hosts of somebody's machine; each written so that this file does not contain it.
FORBIDDEN = [re.compile(pattern) for pattern in (
    r"(?<![\w.])/(?:root|work|home/\w+)/(?=\w)",
    r"\bpypi\.o" r"rg\b",
    r"\bdeb\.debian\.o" r"rg\b",
    r"\b10\.255\.\d+\.\d+\b",
    r"(?i)\bthis work" r"place\b",
)]  # fmt: skip

# How code decides by name; in a pass, the plan or a backend an operator's name belongs into core/ops, as a trait. (A
# schedule may say whose loop nest it is.)
COMPARISON = re.compile(r'(?:[=!]=\s*"(\w+)"|"(\w+)"\s*[=!]=|(?:contains|count|find|starts_with)\(\s*"(\w+)"\s*\))')


def lines(content: str) -> int:
    return content.count("\n")


def test_no_file_is_too_long() -> None:
    code = [p for p in files() if p.suffix in CODE and not name(p).startswith("tests/")]
    long = [f"{name(p)}: {lines(text(p))} lines" for p in code if lines(text(p)) > MOST_LINES]
    assert not long, "\n".join(long)


def test_the_median_file_is_short() -> None:
    assert statistics.median(lines(text(p)) for p in sources("core", "runtime")) < MEDIAN_LINES


def test_no_machine_is_named() -> None:
    found = [
        f"{name(p)}: {match.group()!r}"
        for p in files()
        if p.suffix in TEXT or p.name in ("dev", "README.md", "run")
        for pattern in FORBIDDEN
        for match in pattern.finditer(text(p))
    ]
    assert not found, "\n".join(found)


def operator_names() -> set[str]:
    """Names that files of core/ops declare: `.name = "Conv2D"`, or the first string of an OpDef."""
    declared: set[str] = set()
    for path in sources("core/ops"):
        if path.suffix == ".cpp":
            declared |= set(re.findall(r'\.name\s*=\s*"([A-Z]\w+)"', text(path)))
    return declared


def names_compared(content: str) -> set[str]:
    return {next(g for g in groups if g) for groups in COMPARISON.findall(content)}


def test_nobody_switches_on_operator_names() -> None:
    operators = operator_names()
    found = [
        f"{name(p)}: {operator}"
        for p in sources("core/passes", "core/plan", "core/backends", "core/artifact", "core/driver")
        for operator in sorted(names_compared(text(p)) & operators)
    ]
    assert not found, "ask a trait instead of comparing with the name:\n" + "\n".join(found)


@pytest.mark.parametrize("line", ['if (node.op == "Conv2D")', 'if ("Conv2D" != node.op)', 'names.contains("Conv2D")'])
def test_the_check_sees_a_switch(line: str) -> None:
    assert names_compared(line) == {"Conv2D"}


def test_headers_have_a_guard() -> None:
    headers = [p for p in sources("core", "runtime", "bindings", "tools", "tests") if p.suffix in (".h", ".hpp")]
    bare = [name(p) for p in headers if "#pragma once" not in text(p) and "#ifndef" not in text(p)]
    assert not bare, bare
