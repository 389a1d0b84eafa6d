"""cuvil.import_torch: modules through torch.export."""

from typing import Any

import torch

from cuvil import _core
from cuvil.errors import ModelError, UnsupportedError
from cuvil.torch.convert import ConstantOutput, convert
from cuvil.torch.decompositions import table


def import_torch(
    module: Any, args: Any, kwargs: dict[str, Any] | None = None, dynamic_shapes: Any = None, strict: bool = False
) -> _core.Graph:
    """A PyTorch module (in eval mode) or an ExportedProgram as a graph; see cuvil.import_torch."""
    if isinstance(module, torch.export.ExportedProgram):
        program = module
    else:
        if not isinstance(module, torch.nn.Module):
            _keep_frames_of(module)
            module = _Wrapped(module)
        if module.training:
            raise UnsupportedError(
                "the module is in training mode, where dropout is random and statistics change. Call module.eval()"
            )
        args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
        with torch.no_grad():
            program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)
    return _convert_program(program)


def _keep_frames_of(function: Any) -> None:
    """torch.export records only frames of modules; where it can be told, those of this function, too."""
    register = getattr(torch.fx.proxy, "_register_stack_trace_anchor", None)
    if register is not None:
        register(function)


class _Wrapped(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.eval()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _convert_program(program: torch.export.ExportedProgram) -> _core.Graph:
    program = program.run_decompositions(table())
    signature = program.graph_signature
    if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
        names = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
        raise UnsupportedError(
            f"the module changes {', '.join(names)} in place, which a graph cannot. Return the new value instead"
        )
    kinds = torch.export.graph_signature.InputKind
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
    static: dict[int, torch.Tensor] = {}
    for i, (node, spec) in enumerate(zip(placeholders, signature.input_specs, strict=True)):
        if spec.kind in (kinds.PARAMETER, kinds.BUFFER, kinds.CONSTANT_TENSOR):
            static[i] = _weight(program, spec.target)
        elif spec.kind not in (kinds.USER_INPUT, kinds.TOKEN):
            raise UnsupportedError(f"input {node.name}: a custom object")
    converted = convert(program.graph_module, static=static, whole=True)
    for o in converted.outputs:
        if isinstance(o, ConstantOutput) and o.value is not None:
            raise ModelError(f"the module returns {o.value!r}; a graph returns tensors that it computes")
    return converted.graph


def _weight(program: torch.export.ExportedProgram, target: Any) -> torch.Tensor:
    for store in (program.state_dict, program.constants):
        value = store.get(target)
        if isinstance(value, torch.Tensor):
            return value
    raise ModelError(f"the exported program lacks its tensor {target}")
