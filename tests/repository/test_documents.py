"""Documents against the code they describe."""

from __future__ import annotations

import re
import subprocess

from repository import ROOT, files, name, sources, text

VARIABLE = re.compile(r'\{\s*"(CUVIL_\w+)"')
GETENV = re.compile(r"\b(?:secure_)?getenv\s*\(\s*\"?([\w.]*)")
ROW = re.compile(r"^\| `(CUVIL_\w+)` \|", re.MULTILINE)


def section(document: str, title: str) -> str:
    """The part of a document below a heading, up to the next one."""
    match = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", document, re.MULTILINE | re.DOTALL)
    assert match, f"no heading '## {title}'"
    return match.group(1)


def test_environment_of_the_compiler_is_documented() -> None:
    table = set(VARIABLE.findall(text(ROOT / "core/base/env.cpp")))
    assert set(ROW.findall(section(text(ROOT / "docs/environment.md"), "Compiler"))) == table


def test_environment_of_the_runtime_is_documented() -> None:
    read = {v for p in sources("runtime") for v in GETENV.findall(text(p)) if v.startswith("CUVIL_")}
    assert set(ROW.findall(section(text(ROOT / "docs/environment.md"), "Runtime"))) == read


def test_environment_of_development_is_documented() -> None:
    ours = [p for p in files() if p.name in ("dev", "conftest.py") or p.suffix in (".py", ".sh")]
    read = {v for p in ours for v in re.findall(r"\b(CUVIL_(?:DEV|TEST)_[A-Z_]+)\b", text(p))}
    assert set(ROW.findall(section(text(ROOT / "docs/environment.md"), "Development"))) == read


def test_only_the_tables_read_the_environment() -> None:
    found = [
        name(p)
        for p in sources("core", "bindings", "tools")
        if GETENV.search(text(p)) and name(p) not in ("core/base/env.cpp", "core/base/env.h")
    ]
    found += [name(p) for p in sources("bindings/python", suffixes={".py"}) if "os.environ" in text(p)]
    assert not found, found


def test_links_lead_somewhere() -> None:
    broken = []
    for path in files():
        if path.suffix != ".md":
            continue
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text(path)):
            if "://" not in link and not (path.parent / link).exists():
                broken.append(f"{name(path)}: {link}")
    assert not broken, "\n".join(broken)


def test_the_index_names_every_document() -> None:
    index = text(ROOT / "docs/README.md")
    pages = [p.name for p in files() if p.parent == ROOT / "docs" and p.name != "README.md"]
    missing = [page for page in pages if f"({page})" not in index]
    assert not missing, missing


def test_dependencies_are_documented() -> None:
    page = text(ROOT / "docs/dependencies.md")
    missing = []
    for path in files():
        if path.parent == ROOT / "requirements":
            for line in text(path).splitlines():
                package = line.split("#")[0].split("==")[0].strip()
                if package and f"`{package}`" not in page:
                    missing.append(package)
    assert not missing, missing


def test_python_packages_are_pinned() -> None:
    loose = [
        f"{name(p)}: {line}"
        for p in files()
        if p.parent == ROOT / "requirements" and p.name.startswith("python-")
        for line in text(p).splitlines()
        if line.strip() and not line.startswith("#") and "==" not in line
    ]
    assert not loose, loose


def test_every_status_is_documented() -> None:
    page = text(ROOT / "docs/errors.md")
    statuses = re.findall(r"\b(CUVIL_\w+) = (\d+),?\s*(?:/\*|$)", re.search(r"enum cuvil_status \{(.*?)\}",
                          text(ROOT / "core/abi/abi.h"), re.DOTALL).group(1), re.MULTILINE)  # fmt: skip
    assert len(statuses) >= 7
    missing = [s for s, number in statuses if f"| {number} | `{s}` |" not in page]
    assert not missing, missing


def test_help_lists_the_commands() -> None:
    dev = text(ROOT / "dev")
    commands = re.findall(r"^  ([a-z]+(?: \| [a-z]+)*)\) ", dev[dev.index("case $command in") :], re.MULTILINE)
    printed = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
    for command in " | ".join(commands).split(" | "):
        assert command == "help" or re.search(rf"\b{command}\b", printed), command
    assert len(commands) >= 10
