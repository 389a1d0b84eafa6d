"""cuvil.compile: functions and modules of PyTorch, compiled at their first call."""

import copy
import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, overload

import torch
from torch._dynamo.callback import callback_handler
from torch._dynamo.exc import BackendCompilerFailed, Unsupported
from torch.utils.hooks import RemovableHandle

from cuvil.errors import CuvilError, UnsupportedError
from cuvil.torch import report as reports
from cuvil.torch.backend import Session
from cuvil.torch.options import Options

F = TypeVar("F", bound=Callable[..., Any])


@overload
def compile(fn: F, /) -> F: ...
@overload
def compile(
    fn: F,
    /,
    *,
    target: str = ...,
    precision: str = ...,
    mode: str = ...,
    dynamic: bool | None = ...,
    fallback: bool = ...,
    tune: bool | str | None = ...,
    numerics: str = ...,
    recompile: str = ...,
    num_threads: int | None = ...,
) -> F: ...
@overload
def compile(
    *,
    target: str = ...,
    precision: str = ...,
    mode: str = ...,
    dynamic: bool | None = ...,
    fallback: bool = ...,
    tune: bool | str | None = ...,
    numerics: str = ...,
    recompile: str = ...,
    num_threads: int | None = ...,
) -> Callable[[F], F]: ...
def compile(fn: Any = None, /, **options: Any) -> Any:
    """Compiles a function of PyTorch tensors, an nn.Module or a module class, at its first call.

    Bare (`@cuvil.compile`) or with options (`@cuvil.compile(precision="fp32")`). What it returns behaves as the
    original: Python's control flow, mutation and aliasing stay as they are, new shapes and changed attributes compile
    anew, changed weights are noticed, and what Cuvil lacks runs in PyTorch. `.report()` says what was compiled.
    Call it under torch.no_grad() or torch.inference_mode(): where gradients are wanted everything stays PyTorch's.

    Options: see cuvil.torch.options.Options. Raises ValueError, TargetError or UnsupportedError for those that are
    wrong or not there yet.
    """
    checked = Options.from_dict(options)
    if fn is None:
        return lambda f: _compile(f, checked)
    return _compile(fn, checked)


def _compile(fn: Any, options: Options) -> Any:
    if isinstance(fn, CompiledFunction):
        return CompiledFunction(fn.__wrapped__, options)
    if isinstance(fn, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        raise TypeError("cuvil.compile takes Python code; this is a TorchScript object. Give it what was scripted.")
    if isinstance(fn, torch.nn.Module):
        return _compiled_module(fn, options)
    if inspect.isclass(fn):
        if not issubclass(fn, torch.nn.Module):
            raise TypeError(
                f"cuvil.compile takes functions, nn.Modules and classes of nn.Modules, not the class {fn.__name__}"
            )
        fn.forward = CompiledFunction(fn.forward, options)  # type: ignore[attr-defined]
        return fn
    if not callable(fn):
        raise TypeError(f"cuvil.compile takes a function or an nn.Module, not {type(fn).__name__}")
    plain = inspect.unwrap(fn)
    if inspect.iscoroutinefunction(plain) or inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise UnsupportedError(
            f"{_name(fn)} is a coroutine or generator: compile the function of tensors that it calls."
        )
    return CompiledFunction(fn, options)


class CompiledFunction:
    """A function that runs compiled: calls are the original's. Thread-safe; the first call compiles, once."""

    def __init__(self, fn: Callable[..., Any], options: Options) -> None:
        functools.update_wrapper(self, fn, updated=())
        self.__wrapped__ = fn
        self._options = options
        self._session = Session(options, _name(fn))
        self._start()
        # In the instance, so that decorators that copy __dict__ (torch.no_grad()) keep them.
        self.report = self._report
        self.inspect = self._inspect

    def _start(self) -> None:
        dynamo: Any = torch.compile  # whose overloads lack isolate_recompiles
        self._run = dynamo(
            self.__wrapped__,
            backend=self._session,
            dynamic=self._options.dynamic,
            fullgraph=not self._options.fallback,
            isolate_recompiles=True,
        )
        self._hooks_seen = RemovableHandle.next_id
        self._fresh = True
        self._entry: types.CodeType | None = None  # the function's own code, as Dynamo sees it
        self._generation = 0  # compilations so far

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return self.__wrapped__(*args, **kwargs)
        if self._fresh or self._hooks_seen != RemovableHandle.next_id:
            return self._first_call(args, kwargs)
        generation = self._generation  # noqa: F841  _on_start reads it off this frame
        try:
            return self._run(*args, **kwargs)
        except (BackendCompilerFailed, Unsupported) as e:
            self._translate(e)
        except _Again:
            return self(*args, **kwargs)

    def _first_call(self, args: Any, kwargs: Any) -> Any:
        with self._session.lock:
            if not self._session.guard_hooks and self._hooks_seen != RemovableHandle.next_id:
                # Dynamo does not watch for hooks on modules that had none. This process uses hooks: compile anew, and
                # watch from now on.
                if not self._fresh:
                    self._start()
                self._session.guard_hooks = True
            self._hooks_seen = RemovableHandle.next_id
            _watch_compilations()
            try:
                result = self._run(*args, **kwargs)
            except (BackendCompilerFailed, Unsupported) as e:
                self._translate(e)
            self._fresh = False
        return result

    def _translate(self, e: Any) -> NoReturn:
        inner = getattr(e, "inner_exception", None)
        if isinstance(inner, CuvilError):
            raise inner from None
        if isinstance(e, Unsupported) and not self._options.fallback:
            raise UnsupportedError(
                f"{self._session.name}: with fallback=False the whole function is compiled, but {e}"
            ) from None
        raise e

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def _report(self) -> reports.Report:
        """What was compiled, what was fused, and what stays PyTorch's and why, per Python line."""
        return reports.make(self._session)

    def _inspect(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError("inspect is not implemented yet. Return the tensor from the function to see it.")

    def __repr__(self) -> str:
        options = str(self._options)
        return f"<cuvil.compile of {_describe(self.__wrapped__)}{': ' + options if options else ''}>"

    def __copy__(self) -> "CompiledFunction":
        return CompiledFunction(self.__wrapped__, self._options)

    def __deepcopy__(self, memo: dict[int, Any]) -> "CompiledFunction":
        return CompiledFunction(copy.deepcopy(self.__wrapped__, memo), self._options)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(_NO_PICKLE)


class _Again(BaseException):
    """The call is to be made again: another thread has compiled meanwhile what it lacked. Never seen by users."""


def _calling() -> types.FrameType | None:
    """The frame of the compiled function's call that has made Dynamo compile in this thread."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not CompiledFunction.__call__.__code__:
        frame = frame.f_back
    return frame


def _code_being_compiled() -> types.CodeType | None:
    """Read off the frames of Dynamo that lead here; None if they look different one day."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        code = frame.f_locals.get("code")
        if isinstance(code, types.CodeType):
            return code
        frame = frame.f_back
    return None


def _on_start(_: Any) -> None:
    """Dynamo compiles one at a time, but a thread that has waited for its turn would compile the same once more."""
    frame, code = _calling(), _code_being_compiled()
    if frame is None or code is None:
        return
    f = frame.f_locals["self"]
    if f._fresh:
        f._entry = f._entry or code
    elif code is f._entry and frame.f_locals.get("generation", f._generation) != f._generation:
        raise _Again  # nothing of the function has run yet


def _on_end(_: Any) -> None:
    frame = _calling()
    if frame is not None:
        frame.f_locals["self"]._generation += 1


def _watch_compilations() -> None:
    """torch._dynamo.reset() forgets who watches."""
    if _on_start not in callback_handler.start_callbacks:
        callback_handler.register_start_callback(_on_start)
        callback_handler.register_end_callback(_on_end)


_NO_PICKLE = (
    "what cuvil.compile returns cannot be pickled: it holds code for this process. Pickle the original "
    "(a function's __wrapped__, a module's state_dict()) and compile it again."
)


class _CompiledModule:
    """Mixed into the class of a compiled module; the rest of the object is the original's."""

    _cuvil: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return super().__call__(*args, **kwargs)  # type: ignore[misc]
        return self._cuvil(*args, **kwargs)

    def report(self) -> reports.Report:
        """What was compiled, what was fused, and what stays PyTorch's and why, per Python line."""
        return self._cuvil.report()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        options = str(self._cuvil._options)
        return f"<cuvil.compile of {self._cuvil.module!r}{': ' + options if options else ''}>"

    def __copy__(self) -> Any:
        return _compiled_module(copy.copy(self._cuvil.module), self._cuvil._options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _compiled_module(copy.deepcopy(self._cuvil.module, memo), self._cuvil._options)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(_NO_PICKLE)


class _ModuleCall(CompiledFunction):
    """The call of one module, hooks included."""

    def __init__(self, module: torch.nn.Module, options: Options) -> None:
        # A code object of its own: Dynamo keeps and counts compilations per code object.
        name = type(module).__name__
        # Globals of its own, too: Dynamo leaves its compiled code in them.
        own: dict[str, Any] = {"__name__": __name__, "__builtins__": __builtins__}
        call = types.FunctionType(_call_module.__code__.replace(co_name=name), own, name)
        call.__qualname__ = name
        super().__init__(call, options)
        self.module = module
        weakref.finalize(self, _release, own)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(self.module, *args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self  # an attribute of a class, but no method


def _release(own: dict[str, Any]) -> None:
    """Lets compiled code go; Dynamo's own references to these globals last as long as PyTorch's modules."""
    for name in own:
        if name.startswith("__compiled_fn"):
            own[name] = None


def _call_module(module: Any, *args: Any, **kwargs: Any) -> Any:
    return module(*args, **kwargs)


def _compiled_module(module: torch.nn.Module, options: Options) -> Any:
    """An object of a subclass of the module's class that shares its attributes: it is the module in all but its call,
    so state_dict(), parameters(), hooks, train(), to() and isinstance() are the original's."""
    if isinstance(module, _CompiledModule):
        module = module._cuvil.module
    cls = type(module)
    names = {"_cuvil": _ModuleCall(module, options), "__module__": cls.__module__, "__doc__": cls.__doc__}
    compiled: Any = object.__new__(type(cls.__name__, (_CompiledModule, cls), names))
    object.__setattr__(compiled, "__dict__", module.__dict__)
    return compiled


def _name(fn: Any) -> str:
    return str(getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or type(fn).__name__)


def _describe(fn: Any) -> str:
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return f"{_name(fn)} at {code.co_filename}:{code.co_firstlineno}" if code is not None else _name(fn)
