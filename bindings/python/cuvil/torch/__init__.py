"""PyTorch modules and graphs to CIR. Imports torch; `import cuvil` alone does not."""

from cuvil.torch.convert import Converted, convert, why_not

__all__ = ["Converted", "convert", "why_not"]
