"""The Dynamo backend: AOTAutograd makes a functional graph, a Unit compiles it.

Registered as "cuvil" by the package's entry point, so that torch.compile(model, backend="cuvil") needs no import.
"""

import functools
import operator
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo import config as dynamo_config
from torch._dynamo.callback import callback_handler
from torch._dynamo.exc import ShortenTraceback, TensorifyScalarRestartAnalysis
from torch._functorch._aot_autograd.schemas import OutputType, PlainTensorMeta
from torch._functorch.aot_autograd import aot_module_simplified
from torch._guards import CompileContext, TracingContext
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

from cuvil.errors import CuvilError, UnsupportedError
from cuvil.torch import decompositions
from cuvil.torch.options import Options
from cuvil.torch.unit import Unit

_GRADIENTS = "its inputs require gradients and grad mode is on; call it under torch.no_grad() or torch.inference_mode()"


class RecompileError(CuvilError):
    """A call would have compiled again although recompile="error" was asked for."""


class Frame:
    """One graph that Dynamo handed over: a unit, or a reason why it runs in PyTorch."""

    def __init__(self, gm: GraphModule, unit: Unit | None, reason: str | None) -> None:
        self.unit = weakref.ref(unit) if unit is not None else None
        self.reason = reason
        self.break_reason = getattr(gm, "compile_subgraph_reason", None)
        self.operators = sum(n.op.startswith("call_") for n in gm.graph.nodes)
        context = CompileContext.current_compile_id()
        self.frame_id = getattr(context, "frame_id", None)
        self.frame_compile_id = getattr(context, "frame_compile_id", None) or 0


class Session:
    """What the compilations of one decorated function have in common."""

    def __init__(self, options: Options, name: str) -> None:
        self.options = options
        self.name = name
        self.lock = threading.RLock()
        self.frames: list[Frame] = []
        self.warned = False
        self.guard_hooks = False

    @property
    def compilations(self) -> int:
        """How many graphs became native code."""
        return sum(1 for f in self.frames if f.reason is None)

    def eager(self, gm: GraphModule, reason: str) -> Callable[..., Any]:
        """Runs Dynamo's graph in PyTorch, and remembers why."""
        self.frames.append(Frame(gm, None, reason))
        if not self.options.fallback:
            return _raise(UnsupportedError(f"{self.name} would run in PyTorch: {reason}"))
        if reason == _GRADIENTS and not self.warned:
            self.warned = True
            warnings.warn(f"cuvil: {self.name} runs in PyTorch: {reason}", stacklevel=2)
        return gm.forward

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any], **_: Any) -> Callable[..., Any]:
        """Compiles one of Dynamo's graphs."""
        if self.guard_hooks:
            _guard_hooks()
        if self.options.recompile == "error":
            context = CompileContext.current_compile_id()
            if context is not None and (context.frame_compile_id or 0) > 0:
                raise RecompileError(
                    f'{self.name} would be compiled again (recompile="error"): its arguments have new shapes, dtypes '
                    "or values, or something that it reads changed. TORCH_LOGS=recompiles names the guard."
                )
        if not any(n.op.startswith("call_") for n in gm.graph.nodes):
            return gm.forward
        tensors = [x for x in example_inputs if isinstance(x, torch.Tensor)]
        differentiable = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
        if differentiable and not any(n.target is torch._C._set_grad_enabled for n in gm.graph.nodes):
            return self.eager(gm, _GRADIENTS)
        if any(_writes_to_overlap(n) for n in gm.graph.nodes):
            return self.eager(gm, "it writes to an expanded tensor, which AOTAutograd's functional form gets wrong")
        try:
            return self._compile(gm, example_inputs)
        except _GradientsError:
            return self.eager(gm, _GRADIENTS)
        except (TensorifyScalarRestartAnalysis, ShortenTraceback):
            raise
        except CuvilError as e:
            if not self.options.fallback:
                return _raise(e)
            return self.eager(gm, str(e))
        except Exception as e:
            return self.eager(gm, f"{type(e).__name__} while tracing: {e}")

    def _compile(self, gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        real = _real_inputs(gm)
        made: list[tuple[Unit, Any, Any]] = []

        def inference_compiler(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
            metadata = TracingContext.get().fw_metadata
            static = _static_inputs(gm, real, metadata)
            with _disable_current_modes():  # AOTAutograd traces with fake tensors; weights and constants are real
                unit = Unit(gm, static, self.options, self.name)
            function = unit.start()
            made.append((unit, function, metadata))

            def boxed(args: list[Any]) -> Any:
                given = tuple(args)
                args.clear()
                return function(*given)

            boxed._boxed_call = True  # type: ignore[attr-defined]
            return boxed

        with decompositions.keep_composites():
            wrapped = aot_module_simplified(
                gm,
                example_inputs,
                _refuse_gradients,
                bw_compiler=_refuse_gradients,
                decompositions=_decompositions(),
                inference_compiler=inference_compiler,
            )
        unit, function, metadata = made.pop()
        real.clear()  # AOTAutograd keeps the compiler, and with it this list
        self.frames.append(Frame(gm, unit, None))
        # Without mutated or aliased inputs and outputs AOTAutograd's wrapper has nothing to do.
        plain = _is_plain(metadata) and len(unit.placeholders) == len(example_inputs)
        return function if plain else wrapped


_hook_setting: list[bool] = []


def _guard_hooks() -> None:
    """Makes Dynamo guard on the absence of hooks in this compilation, whose guards are made after the backend's work."""
    if not _hook_setting:
        _hook_setting.append(dynamo_config.skip_nnmodule_hook_guards)
        dynamo_config.skip_nnmodule_hook_guards = False
        if _restore_hook_setting not in callback_handler.end_callbacks:  # torch._dynamo.reset() forgets it
            callback_handler.register_end_callback(_restore_hook_setting)


def _restore_hook_setting(_: Any) -> None:
    while _hook_setting:
        dynamo_config.skip_nnmodule_hook_guards = _hook_setting.pop()


class _GradientsError(Exception):
    """AOTAutograd has found that outputs need gradients."""


_IN_PLACE = {
    getattr(operator, name) for name in dir(operator) if name.startswith("i") and hasattr(operator, "__" + name + "__")
}


def _writes_to_overlap(n: Node) -> bool:
    """An in-place operator on a tensor several of whose elements are one in memory (x.expand(...).zero_())."""
    if not n.args or not isinstance(n.args[0], Node):
        return False
    method = n.op == "call_method" and str(n.target).endswith("_") and not str(n.target).startswith("__")
    if not method and n.target is not operator.setitem and n.target not in _IN_PLACE:
        return False
    written = n.args[0].meta.get("example_value")
    return isinstance(written, torch.Tensor) and any(
        stride == 0 and size != 1 for stride, size in zip(written.stride(), written.shape, strict=True)
    )


def _refuse_gradients(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    raise _GradientsError


@functools.cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    return decompositions.table()


def _real_inputs(gm: GraphModule) -> list[Any]:
    """The tensors behind AOTAutograd's placeholders: the module's own, then Dynamo's arguments."""
    real: list[Any] = [p for _, p in gm.named_parameters(remove_duplicate=False)]
    real += [b for _, b in gm.named_buffers(remove_duplicate=False)]
    for n in gm.graph.find_nodes(op="placeholder"):
        argument = n.meta.get("grapharg")
        real.append(argument.example if argument is not None and argument.is_tensor else None)
    return real


def _static_inputs(aten: GraphModule, real: list[Any], metadata: Any) -> dict[int, torch.Tensor]:
    placeholders = aten.graph.find_nodes(op="placeholder")
    if len(placeholders) != len(real):  # duplicates were removed: which is which is not known
        return {}
    static = {}
    mutated = set(metadata.mutated_inp_runtime_indices) | {
        i for i, info in enumerate(metadata.input_info) if info.mutates_data or info.mutates_metadata
    }
    for i in metadata.static_input_indices:
        fake, tensor = placeholders[i].meta.get("val"), real[i]
        if i in mutated or not isinstance(tensor, torch.Tensor) or not isinstance(fake, torch.Tensor):
            continue
        if tuple(fake.shape) == tuple(tensor.shape) and fake.dtype == tensor.dtype:
            static[i] = tensor
    return static


def _is_plain(metadata: Any) -> bool:
    return (
        not metadata.mutated_inp_runtime_indices
        and all(o.output_type in (OutputType.non_alias, OutputType.unsafe_view_alias) for o in metadata.output_info)
        and not any(o.requires_grad for o in metadata.output_info)
        and all(issubclass(o.raw_type, (torch.Tensor, int, float)) for o in metadata.output_info)
        and metadata.num_intermediate_bases == 0
        and metadata.grad_enabled_mutation is None
        and not metadata.tokens
        and not metadata.act_input_indices
        and all(isinstance(m, PlainTensorMeta) for m in metadata.subclass_inp_meta)
        and all(isinstance(m, PlainTensorMeta) for m in metadata.subclass_fw_graph_out_meta)
    )


def _raise(error: CuvilError) -> Callable[..., Any]:
    def refuse(*args: Any) -> Any:
        raise error

    return refuse


def cuvil(
    gm: GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None, options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The backend of torch.compile(..., backend="cuvil"); `options` as cuvil.compile's keyword arguments."""
    given = dict(options or {})
    if mode is not None:
        given["mode"] = mode
    return Session(Options.from_dict(given), "the compiled function")(gm, example_inputs)
