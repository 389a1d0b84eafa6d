"""Options of cuvil.compile and of torch.compile(..., backend="cuvil", options={...})."""

from dataclasses import dataclass, fields
from typing import Any

from cuvil.errors import TargetError, UnsupportedError

_CHOICES: dict[str, tuple[Any, ...]] = {
    "target": ("cpu", "gpu", "npu", "auto", "reference"),
    "precision": ("fp32", "fp16", "bf16", "int8", "auto"),
    "mode": ("dual", "static", "instrumented"),
    "dynamic": (None, True, False),
    "fallback": (True, False),
    "tune": (False, None, "fast", "full"),
    "numerics": ("default", "strict"),
    "recompile": ("auto", "error"),
}


@dataclass(frozen=True)
class Options:
    """Checked options.

    target: "cpu" ("reference": the interpreter, slow and exact). precision: "fp32". mode: "dual" or "static"; both
    compile from one trace. dynamic: as torch.compile has it. fallback: False refuses what would stay PyTorch's.
    numerics: "strict" keeps the order of sums. recompile: "error" raises RecompileError instead of compiling again.
    num_threads: at most so many per call; None: torch.get_num_threads().
    """

    target: str = "cpu"
    precision: str = "fp32"
    mode: str = "dual"
    dynamic: bool | None = None
    fallback: bool = True
    tune: bool | str | None = False
    numerics: str = "default"
    recompile: str = "auto"
    num_threads: int | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not any(value is c or (isinstance(c, str) and value == c) for c in choices):
                error = TargetError if name == "target" else ValueError
                raise error(f"{name}={value!r}: it must be one of {', '.join(map(repr, choices))}")
        if self.target in ("gpu", "npu", "auto"):
            raise UnsupportedError(f'target="{self.target}" is not implemented yet. Use target="cpu".')
        if self.precision != "fp32":
            raise UnsupportedError(f'precision="{self.precision}" is not implemented yet. Use precision="fp32".')
        if self.mode == "instrumented":
            raise UnsupportedError('mode="instrumented" is not implemented yet. Use mode="dual" or mode="static".')
        if self.tune:
            raise UnsupportedError("tune is not implemented yet: schedules are chosen by rules. Use tune=False.")
        n = self.num_threads
        if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 1):
            raise ValueError(f"num_threads must be a positive number or None, not {n!r}")

    @classmethod
    def from_dict(cls, given: dict[str, Any] | None) -> "Options":
        """From torch.compile's options={...}; raises ValueError for a name that is none."""
        given = dict(given or {})
        names = [f.name for f in fields(cls)]
        for name in given:
            if name not in names:
                raise ValueError(f"there is no option {name!r}; the options are {', '.join(names)}")
        return cls(**given)

    def __str__(self) -> str:
        changed = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != f.default]
        return ", ".join(changed)
