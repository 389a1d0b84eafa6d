"""PyTorch modules and graphs to CIR, and the decorator. Imports torch; `import cuvil` alone does not."""

from cuvil.torch.backend import RecompileError
from cuvil.torch.convert import Converted, convert, why_not
from cuvil.torch.decorator import compile
from cuvil.torch.options import Options
from cuvil.torch.report import Report

__all__ = ["Converted", "Options", "RecompileError", "Report", "compile", "convert", "why_not"]
