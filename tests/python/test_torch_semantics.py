"""Programs on mutation, views, aliasing, stale weights, changed attributes, gradients, control flow: each must do what
eager PyTorch does, in its results and in what it leaves behind.

A program is a function that gets `compile` (cuvil.compile, or the identity for the expected answer) and returns what
there is to compare; it makes all that it changes itself.
"""

import copy
import itertools
import threading
import warnings
from collections import namedtuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import cuvil  # noqa: E402
from torch import nn  # noqa: E402

PROGRAMS = []


def program(fn):
    PROGRAMS.append(fn)
    return fn


def randn(*shape, seed=0, dtype=torch.float32):
    g = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=g, dtype=dtype)


def equal(got, want, path="result"):
    assert type(got) is type(want), f"{path}: {type(got).__name__} instead of {type(want).__name__}"
    if isinstance(want, torch.Tensor):
        assert got.dtype == want.dtype and got.shape == want.shape, f"{path}: {got.dtype}{list(got.shape)}"
        assert got.requires_grad == want.requires_grad, f"{path}: requires_grad"
        if want.numel() and want.dim():
            assert got.stride() == want.stride() or 1 in want.shape, f"{path}: strides {got.stride()}, {want.stride()}"
        if want.dtype.is_floating_point:
            torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-5, equal_nan=True, msg=lambda m: f"{path}: {m}")
        else:
            assert torch.equal(got, want), path
    elif isinstance(want, dict):
        assert list(got) == list(want), f"{path}: keys"
        for k in want:
            equal(got[k], want[k], f"{path}[{k!r}]")
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want), f"{path}: length"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            equal(g, w, f"{path}[{i}]")
    else:
        assert got == want or (got != got and want != want), f"{path}: {got} instead of {want}"


def net(*sizes, seed=0):
    layers = []
    for i, (a, b) in enumerate(itertools.pairwise(sizes)):
        layer = nn.Linear(a, b)
        with torch.no_grad():
            layer.weight.copy_(randn(b, a, seed=seed + i) / a**0.5)
            layer.bias.copy_(randn(b, seed=seed + i))
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers).eval()


def settle():
    """Waits until changed weights are packed anew."""
    if cuvil_weights := __import__("sys").modules.get("cuvil.torch.weights"):
        cuvil_weights.wait()


# ---- mutation of inputs ----


@program
def adds_in_place(compile):
    @compile
    def f(x):
        x.add_(1)
        return x * 2

    x = randn(3, 4)
    return f(x), x


@program
def returns_the_mutated_input(compile):
    @compile
    def f(x):
        return x.mul_(3)

    x = randn(3, 4)
    y = f(x)
    y.add_(1)
    return x, y is x


@program
def writes_through_a_view_of_an_input(compile):
    @compile
    def f(x):
        x[1].mul_(2)
        return x.sum()

    x = randn(3, 4)
    return f(x), x


@program
def writes_a_slice(compile):
    @compile
    def f(x, y):
        x[:, ::2] = y
        return x + 1

    x = randn(3, 6)
    return f(x, randn(3, 3)), x


@program
def copies_into_an_input(compile):
    @compile
    def f(x, y):
        x.copy_(torch.relu(y) + 1)

    x, y = randn(4, 4), randn(4, 4, seed=1)
    return f(x, y), x


@program
def two_inputs_that_are_one_tensor(compile):
    @compile
    def f(x, y):
        x.add_(1)
        return x + y

    x = randn(3, 4)
    return f(x, x), x


@program
def first_apart_then_the_same(compile):
    @compile
    def f(x, y):
        x.mul_(2)
        return x - y

    a, b = randn(3, 4), randn(3, 4, seed=1)
    first = f(a, b)
    return first, f(a, a), a, b


@program
def inputs_that_overlap(compile):
    @compile
    def f(x, y):
        x.add_(1)
        return y * 2

    base = randn(8)
    return f(base[:6], base[2:]), base


@program
def out_argument(compile):
    @compile
    def f(x, out):
        torch.add(x, x, out=out)
        return out * 3

    out = torch.zeros(3, 4)
    return f(randn(3, 4), out), out


@program
def clears_its_input(compile):
    @compile
    def f(x):
        y = torch.exp(x)
        x.zero_()
        return y

    x = randn(5)
    return f(x), x


@program
def resizes_nothing_but_transposes_in_place(compile):
    @compile
    def f(x):
        x.t_()
        return x + 1

    x = randn(3, 4)
    return f(x), x


@program
def list_argument_is_mutated(compile):
    @compile
    def f(xs):
        y = xs[0] + xs[1]
        xs.append(y)
        return y * 2

    xs = [randn(2, 2), randn(2, 2, seed=1)]
    return f(xs), xs


@program
def dict_argument_is_mutated(compile):
    @compile
    def f(d):
        d["z"] = d["x"] @ d["y"]
        d["x"] = d["x"] + 1
        return d["z"].sum()

    d = {"x": randn(3, 4), "y": randn(4, 3)}
    return f(d), d


# ---- outputs ----


@program
def output_is_a_view_of_an_input(compile):
    @compile
    def f(x):
        return x.view(-1), x + 1

    x = randn(3, 4)
    v, y = f(x)
    v.add_(1)
    return x, v, y


@program
def output_is_the_input(compile):
    @compile
    def f(x):
        return x, x + 1

    x = randn(3)
    a, b = f(x)
    return a is x, b


@program
def outputs_alias_each_other(compile):
    @compile
    def f(x):
        y = torch.relu(x) + 1
        return y, y[0], y.view(-1)

    y, first, flat = f(randn(3, 4))
    first.zero_()
    flat[-1] = 7
    return y, first, flat


@program
def the_same_tensor_twice(compile):
    @compile
    def f(x):
        y = x * 2
        return y, y

    a, b = f(randn(3))
    a.add_(1)
    return a, b, a is b


@program
def views_without_their_base(compile):
    @compile
    def f(x):
        y = x.exp()
        return y[:2], y[1:]

    a, b = f(randn(3, 4))
    a.zero_()
    return a, b


@program
def outputs_are_fresh(compile):
    @compile
    def f(x):
        return torch.relu(x @ x)

    x = randn(4, 4)
    first = f(x)
    kept = first.clone()
    f(x + 1)
    first_after = first.clone()
    first.mul_(0)
    return kept, first_after, f(x)


@program
def output_can_be_resized(compile):
    @compile
    def f(x):
        return x + 1

    y = f(randn(2, 2))
    y.resize_(1)
    return y


@program
def expanded_output(compile):
    @compile
    def f(x):
        return (x + 1).expand(3, 4), x.sum()

    y, s = f(randn(4))
    return y, s, y.is_contiguous()


@program
def strided_output(compile):
    @compile
    def f(x):
        y = x * 2
        return y[:, ::2], y.t()

    a, b = f(randn(3, 6))
    return a, b


@program
def transposed_output(compile):
    @compile
    def f(x):
        return (x + 1).transpose(0, 1), x.permute(2, 0, 1) * 2

    return f(randn(2, 3, 4))


@program
def channels_last(compile):
    conv = nn.Conv2d(3, 8, 3, padding=1).eval()
    with torch.no_grad():
        conv.weight.copy_(randn(8, 3, 3, 3) / 5)
        conv.bias.zero_()

    @compile
    def f(x):
        return torch.relu(conv(x))

    with torch.no_grad():
        return f(randn(1, 3, 6, 5).to(memory_format=torch.channels_last)), f(randn(1, 3, 6, 5))


@program
def nested_containers(compile):
    Pair = namedtuple("Pair", "a b")

    @compile
    def f(x, *, scale=2.0, flags=(True, False)):
        y = x * scale
        if flags[0]:
            y = y + 1
        return {"pair": Pair(y, [y - 1, None]), "n": 3, "flags": flags}, (y.sum(),)

    r, s = f(randn(3), scale=0.5)
    return r["pair"].a, r["pair"].b, r["n"], r["flags"], s, type(r["pair"]).__name__


@program
def no_output(compile):
    @compile
    def f(x):
        x + 1

    return f(randn(3))


@program
def a_number_as_output(compile):
    @compile
    def f(x):
        return x.shape[0] * 2, x.sum().item() > 0, x.dim()

    return f(torch.ones(3, 2)), f(-torch.ones(5, 2)), f(torch.ones(7, 2))


# ---- inputs of all kinds ----


@program
def strided_inputs(compile):
    @compile
    def f(x, y):
        return torch.relu(x) @ y

    x, y = randn(8, 6), randn(6, 8)
    return f(x[::2, 1:4], y.t()[1:7:2, :3].t()), f(x, y), f(x.t(), y.t()), f(randn(1, 6).expand(4, 6), y)


@program
def misaligned_inputs(compile):
    @compile
    def f(x):
        return torch.relu(x) * 2 + 1

    x = randn(67)
    return [f(x[k : k + 33]) for k in range(5)]


@program
def zero_and_one(compile):
    @compile
    def f(x):
        return torch.relu(x) * 2, x.sum()

    return [f(randn(n, 4)) for n in (3, 1, 0, 5, 2)]


@program
def scalars_of_python(compile):
    @compile
    def f(x, k, flag):
        y = x * k
        return y + 1 if flag else y - 1

    x = randn(4)
    return [f(x, k, flag) for k in (2, 3.5, 2, -1, 4) for flag in (True, False)]


@program
def dtypes(compile):
    @compile
    def f(x):
        return x * 2 + 1

    x = randn(3, 4) * 10
    return [f(x.to(t)) for t in (torch.float32, torch.int64, torch.int32, torch.float64, torch.uint8, torch.bfloat16)]


@program
def promotion(compile):
    @compile
    def f(i, x, b):
        return i + x, i / 2, i // 2, b + b, b + i, i * 1.5, x > i, i + b

    return f(torch.arange(-3, 3), randn(6), torch.tensor([True, False, True, True, False, False]))


@program
def ranks(compile):
    @compile
    def f(x):
        return torch.tanh(x) + 1

    return f(torch.tensor(0.3)), f(randn(3)), f(randn(2, 3)), f(randn(1, 2, 3))


@program
def many_sizes(compile):
    model = net(6, 5, 3)

    @compile
    def f(x):
        return model(x).softmax(-1)

    with torch.no_grad():
        return [f(randn(n, 6)) for n in (2, 5, 7, 3, 1, 64, 33)]


@program
def keyword_arguments_and_defaults(compile):
    @compile
    def f(a, b=None, *rest, c=1.0, **more):
        y = a * c if b is None else a + b
        for r in rest:
            y = y - r
        return y + more.get("d", 0)

    x = randn(3)
    return f(x), f(x, x), f(x, x, x, x, c=2.0), f(x, c=3.0), f(x, d=x), f(a=x, b=x)


@program
def an_object_as_argument(compile):
    class Config:
        def __init__(self, scale):
            self.scale = scale
            self.offset = randn(3)

    @compile
    def f(config, x):
        return x * config.scale + config.offset

    c = Config(2.0)
    x = randn(3)
    first = f(c, x)
    c.scale = 5.0
    second = f(c, x)
    c.offset = torch.zeros(3)
    return first, second, f(c, x), f(Config(7.0), x)


# ---- weights ----


def stale(change):
    """A program that changes a model's weights between calls."""

    def run(compile):
        model = net(6, 5, 3)
        f = compile(model)
        x = randn(4, 6)
        with torch.no_grad():
            answers = [f(x)]
            change(model)
            answers.append(f(x))
            settle()
            answers += [f(x), f(x)]
        return answers

    run.__name__ = change.__name__
    return program(run)


@stale
def weights_mul_in_place(model):
    model[0].weight.mul_(2)


@stale
def bias_add_in_place(model):
    model[2].bias.add_(1)


@stale
def parameter_is_replaced(model):
    model[0].weight = nn.Parameter(randn(5, 6, seed=9))


@stale
def data_is_replaced(model):
    model[0].weight.data = randn(5, 6, seed=9)


@stale
def load_state_dict(model):
    model.load_state_dict(net(6, 5, 3, seed=7).state_dict())


@stale
def load_state_dict_assigns(model):
    model.load_state_dict(net(6, 5, 3, seed=7).state_dict(), assign=True)


@stale
def weights_copy_from(model):
    model[2].weight.copy_(randn(3, 5, seed=3))


@stale
def one_element_is_written(model):
    model[2].weight[1, 2] = 4.0


@stale
def a_layer_is_replaced(model):
    model[2] = net(5, 3, seed=11)[0]


@stale
def a_layer_is_appended(model):
    model.append(nn.Tanh())


@stale
def weights_are_viewed_and_written(model):
    model[0].weight.view(-1)[:7].fill_(0.25)


@stale
def storage_is_set(model):
    model[0].weight.set_(randn(5, 6, seed=4))


@stale
def an_optimizer_steps(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.enable_grad():
        model(randn(4, 6, seed=5)).sum().backward()
    optimizer.step()


@stale
def data_with_other_strides(model):
    w = model[0].weight
    w.data = w.data.t().contiguous().t()


@stale
def batch_statistics_are_folded(model):
    model[1] = nn.BatchNorm1d(5).eval()
    model[1].running_mean.add_(0.5)


@program
def weights_change_at_every_call(compile):
    model = net(6, 5, 3)
    f = compile(model)
    x = randn(4, 6)
    answers = []
    with torch.no_grad():
        for _ in range(12):
            answers.append(f(x))
            model[0].weight.mul_(0.9)
            settle()
    return answers


@program
def batch_norm_buffers_change(compile):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    with torch.no_grad():
        model[0].weight.copy_(randn(4, 3, 3, 3))
        model[0].bias.zero_()
    f = compile(model)
    x = randn(2, 3, 6, 6)
    with torch.no_grad():
        first = f(x)
        model[1].running_var.mul_(4)
        second = f(x)
        settle()
        return first, second, f(x)


@program
def two_models_in_turn(compile):
    a, b = net(6, 5, 3), net(6, 5, 3, seed=5)

    @compile
    def infer(model, x):
        return model(x)

    x = randn(4, 6)
    with torch.no_grad():
        answers = []
        for _ in range(3):
            answers += [infer(a, x), infer(b, x)]
            settle()
        return answers


@program
def many_models_in_turn(compile):
    models = [net(6, 5, 3, seed=s) for s in range(7)]

    @compile
    def infer(model, x):
        return model(x)

    x = randn(4, 6)
    answers = []
    with torch.no_grad():
        for _ in range(2):
            for m in models:
                answers.append(infer(m, x))
                settle()
    return answers


@program
def shared_weights(compile):
    model = net(5, 5, 5)
    model[2].weight = model[0].weight
    f = compile(model)
    x = randn(4, 5)
    with torch.no_grad():
        first = f(x)
        model[0].weight.mul_(2)
        return first, f(x)


@program
def a_buffer_counts_calls(compile):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    model = Counter()
    f = compile(model)
    x = randn(3)
    return [f(x) for _ in range(4)], model.calls


@program
def a_cache_in_a_buffer(compile):
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(8, 4))

        def forward(self, x, position):
            self.keys[position] = x
            return self.keys.softmax(-1).sum(0), self.keys

    model = Cache()
    f = compile(model)
    answers = [f(randn(4, seed=i), torch.tensor(i)) for i in range(4)]
    return [a[0] for a in answers], model.keys


@program
def weights_to_double_and_back(compile):
    model = net(6, 5, 3)
    f = compile(model)
    x = randn(4, 6)
    with torch.no_grad():
        first = f(x)
        model.double()
        second = f(x.double())
        model.float()
        return first, second, f(x)


@program
def to_the_meta_device(compile):
    @compile
    def f(x):
        return torch.relu(x) + 1

    y = f(torch.empty(3, 4, device="meta"))
    return f(randn(3, 4)), y.device.type, list(y.shape)


@program
def inference_mode(compile):
    model = net(6, 5, 3)
    f = compile(model)
    x = randn(4, 6)
    with torch.inference_mode():
        first = f(x)
        inside = first.is_inference()
        model[0].weight.mul_(2)
        second = f(x)
    with torch.no_grad():
        third = f(x)
    return first.clone(), inside, second.clone(), third, third.is_inference()


@program
def a_model_made_in_inference_mode(compile):
    with torch.inference_mode():
        model = net(6, 5, 3)
        f = compile(model)
        x = randn(4, 6)
        first = f(x).clone()
        model[0].weight.mul_(2)
        answers = first.tolist(), f(x).tolist()
    return [torch.tensor(a) for a in answers]


# ---- attributes, closures, globals ----


@program
def attribute_of_a_module_changes(compile):
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 2.0
            self.on = True

        def forward(self, x):
            return x * self.k if self.on else x

    m = Scale()
    f = compile(m)
    x = randn(3)
    a = f(x)
    m.k = 3.0
    b = f(x)
    f.on = False
    return a, b, f(x), m.on


@program
def closure_changes(compile):
    k = 2.0

    @compile
    def f(x):
        return x * k

    x = randn(3)
    a = f(x)
    k = 5.0
    return a, f(x)


@program
def a_tensor_in_a_closure_changes(compile):
    w = randn(3)

    @compile
    def f(x):
        return x * w

    x = randn(3)
    a = f(x)
    w.add_(1)
    b = f(x)
    w = torch.ones(3)
    return a, b, f(x)


GLOBAL_SCALE = 2.0
GLOBAL_TENSOR = torch.ones(3)


@program
def globals_change(compile):
    global GLOBAL_SCALE, GLOBAL_TENSOR
    GLOBAL_SCALE, GLOBAL_TENSOR = 2.0, torch.ones(3)

    @compile
    def f(x):
        return x * GLOBAL_SCALE + GLOBAL_TENSOR

    x = randn(3)
    a = f(x)
    GLOBAL_SCALE = 4.0
    b = f(x)
    GLOBAL_TENSOR = torch.zeros(3)
    c = f(x)
    GLOBAL_TENSOR.add_(7)
    return a, b, c, f(x)


@program
def sets_an_attribute(compile):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = None

        def forward(self, x):
            y = torch.relu(x)
            self.last = y
            self.count = getattr(self, "count", 0) + 1
            return y + 1

    m = Model()
    f = compile(m)
    f(randn(3))
    y = f(randn(3, seed=2))
    return y, m.last, m.count, f.last


@program
def sets_a_global(compile):
    global GLOBAL_SCALE
    GLOBAL_SCALE = 1.0

    @compile
    def f(x):
        global GLOBAL_SCALE
        GLOBAL_SCALE = GLOBAL_SCALE + 1
        return x * GLOBAL_SCALE

    x = randn(3)
    return [f(x) for _ in range(3)], GLOBAL_SCALE


@program
def nonlocal_counter(compile):
    calls = 0

    @compile
    def f(x):
        nonlocal calls
        calls += 1
        return x + calls

    x = randn(3)
    return [f(x) for _ in range(3)], calls


@program
def train_and_eval(compile):
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(4))
    f = compile(model)
    x = randn(8, 4)
    with torch.no_grad():
        model.eval()
        a = f(x)
        f.train()
        torch.manual_seed(0)
        b = f(x)
        f.eval()
        return a, b, f(x), model[1].running_mean, model.training


# ---- gradients, modes, hooks ----


@program
def gradients_flow(compile):
    model = net(6, 5, 3)
    f = compile(model)
    x = randn(4, 6).requires_grad_()
    f(x).sum().backward()
    return x.grad, model[0].weight.grad


@program
def gradients_of_an_input(compile):
    @compile
    def f(x, y):
        return (x * y).exp().sum()

    x = randn(4).requires_grad_()
    y = randn(4, seed=1)
    out = f(x, y)
    out.backward()
    return out, x.grad, f(x.detach(), y)


@program
def gradients_sometimes(compile):
    model = net(6, 5, 3)
    f = compile(model)
    x = randn(4, 6)
    with torch.no_grad():
        a = f(x)
    b = f(x)
    b.sum().backward()
    with torch.no_grad():
        c = f(x)
    return a, b, c, model[2].weight.grad


@program
def a_training_loop(compile):
    model = net(6, 5, 3)
    f = compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x = randn(4, 6)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = f(x).square().mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            losses.append(f(x).square().mean())
    return losses


@program
def gradients_inside(compile):
    @compile
    def f(x):
        with torch.no_grad():
            a = x * 2
        with torch.enable_grad():
            b = x * 3
        return a, b

    x = randn(3).requires_grad_()
    a, b = f(x)
    return a, b


@program
def no_grad_outside_and_inside(compile):
    model = net(6, 5, 3)

    @compile
    @torch.no_grad()
    def inside(x):
        return model(x)

    @torch.no_grad()
    @compile
    def outside(x):
        return model(x)

    x = randn(4, 6)
    return inside(x), outside(x), torch.is_grad_enabled()


@program
def freezing_and_unfreezing(compile):
    model = net(6, 5, 3).requires_grad_(False)
    f = compile(model)
    x = randn(4, 6)
    a = f(x)
    model.requires_grad_(True)
    b = f(x)
    b.sum().backward()
    return a, b, model[0].weight.grad


@program
def detach_and_requires_grad(compile):
    @compile
    def f(x):
        return x.detach() * 2, x.requires_grad

    return f(randn(3).requires_grad_()), f(randn(3))


@program
def autocast(compile):
    model = net(8, 8, 8)
    f = compile(model)
    x = randn(4, 8)
    with torch.no_grad():
        a = f(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            b = f(x)
        c = f(x)
    return a, b.dtype, c, (b.float() - a).abs().max() < 0.1


@program
def autocast_around_an_eager_operator(compile):
    @compile
    def f(x):
        s = torch.sort(x @ x, dim=-1, stable=True)[0]
        return torch.relu(s) + 1

    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        y = f(torch.eye(6))
    return y.dtype, y.float()


@program
def forward_hooks(compile):
    model = net(6, 5, 3)
    f = compile(model)
    x = randn(4, 6)
    with torch.no_grad():
        a = f(x)
        handle = model[0].register_forward_hook(lambda m, i, o: o + 1)
        b = f(x)
        handle.remove()
        c = f(x)
        model.register_forward_pre_hook(lambda m, i: (i[0] * 2,))
        return a, b, c, f(x)


@program
def hooks_that_record(compile):
    model = net(6, 5, 3)
    seen = []
    model[1].register_forward_hook(lambda m, i, o: seen.append(o.sum()))
    f = compile(model)
    with torch.no_grad():
        y = f(randn(4, 6))
    return y, seen


# ---- random numbers ----


@program
def random_numbers(compile):
    @compile
    def f(x):
        a = torch.rand(3)
        y = torch.relu(x) @ x
        b = torch.randn_like(x)
        return a, y, b, torch.rand(()) + y.sum()

    torch.manual_seed(3)
    first = f(randn(4, 4))
    return first, f(randn(4, 4)), torch.rand(2)


@program
def random_order_across_levels(compile):
    @compile
    def f(x):
        late = torch.bernoulli((x @ x).sigmoid())
        early = torch.rand(4, 4)
        return (late * 2 + 1) @ early

    torch.manual_seed(5)
    return f(randn(4, 4)), torch.rand(1)


@program
def dropout_in_eval(compile):
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).eval()
    with torch.no_grad():
        model[0].weight.copy_(randn(4, 4))
        model[0].bias.zero_()
        return compile(model)(randn(2, 4))


# ---- control flow ----


@program
def branches_on_data(compile):
    @compile
    def f(x):
        y = torch.relu(x) + 1
        if y.sum() > 10:
            return y * 2
        return y - 1

    return f(torch.ones(3)), f(torch.ones(9)), f(-torch.ones(3))


@program
def loops_on_shapes(compile):
    @compile
    def f(x):
        y = x.new_zeros(x.shape[1])
        for row in x:
            y = torch.tanh(y + row)
        return y

    return f(randn(3, 4)), f(randn(5, 4)), f(randn(2, 4))


@program
def loops_on_data(compile):
    @compile
    def f(x):
        steps = 0
        while x.abs().max() > 0.1:
            x = x * 0.5
            steps += 1
        return x, steps

    return f(randn(4)), f(randn(4) * 100)


@program
def prints_and_goes_on(compile):
    @compile
    def f(x):
        y = torch.relu(x)
        print(end="")
        z = y @ y
        return y, z

    return f(randn(3, 3))


@program
def raises(compile):
    @compile
    def f(x, k):
        y = x + 1
        if k < 0:
            raise ValueError("negative")
        return y

    x = randn(3)
    a = f(x, 1)
    try:
        f(x, -1)
    except ValueError as e:
        return a, str(e), f(x, 2)


@program
def shapes_that_do_not_fit(compile):
    @compile
    def f(x, y):
        return x @ y

    a = f(randn(2, 3), randn(3, 4))
    try:
        f(randn(2, 3), randn(2, 4))
    except RuntimeError:
        return a, "refused", f(randn(5, 3), randn(3, 4))


@program
def recursion(compile):
    def f(x, n):
        return x if n == 0 else f(torch.relu(x) + 1, n - 1)

    f = compile(f)
    return f(randn(3), 3)


@program
def compiled_calls_compiled(compile):
    @compile
    def inner(x):
        return torch.relu(x) + 1

    model = compile(net(3, 3))

    @compile
    def outer(x):
        return inner(x) * 2 + model(x)

    with torch.no_grad():
        return outer(randn(2, 3)), inner(randn(2, 3))


@program
def eager_in_the_middle(compile):
    @compile
    def f(x):
        y = torch.relu(x @ x) + 1
        s, order = torch.sort(y, dim=1, descending=True)
        u = torch.tanh(s) * y
        m, _ = torch.mode(u.round(), dim=1)
        return torch.softmax(u, 0) + m, order

    x = randn(5, 5)
    return f(x), f(x + 1)


@program
def mutates_between_regions(compile):
    @compile
    def f(x):
        y = torch.relu(x) * 2
        y[0] = torch.sort(y[1])[0]
        y.add_(1)
        return y @ y, x

    x = randn(4, 4)
    return f(x), x


@program
def sizes_that_depend_on_data(compile):
    @compile
    def f(x):
        i = torch.nonzero(x > 0)
        return i, x[x > 0] * 2

    return f(randn(6)), f(-torch.ones(4)), f(torch.ones(3))


@program
def as_strided_of_an_intermediate(compile):
    @compile
    def f(x):
        y = (x + 1).t()
        return torch.as_strided(y, (2, 2), (1, 3)) * 2, y

    return f(randn(3, 4))


@program
def nan_and_infinity(compile):
    @compile
    def f(x):
        return x / x, torch.relu(x), x.max(), torch.clamp(x, -1, 1), torch.sign(x), x.exp(), x == x

    inf = float("inf")
    return f(torch.tensor([float("nan"), inf, -inf, 0.0, -0.0, 1.5]))


@program
def integers_are_exact(compile):
    @compile
    def f(x, y):
        return x * y, x // y, x % y, x + y, (x * y).sum(), x >> 3, x & y

    big = torch.tensor([2**40 + 1, -(2**40) - 7, 12345678901, -3])
    return f(big, torch.tensor([3, 7, -11, 2]))


# ---- the object that the decorator returns ----


@program
def copies_are_independent(compile):
    model = net(6, 5, 3)
    f = compile(model)
    x = randn(4, 6)
    with torch.no_grad():
        a = f(x)
        g = copy.deepcopy(f)
        g[0].weight.mul_(2)
        return a, f(x), g(x), copy.copy(f)(x)


@program
def a_method(compile):
    class Thing:
        def __init__(self, k):
            self.k = k

        @compile
        def scale(self, x):
            return x * self.k

    x = randn(3)
    return Thing(2.0).scale(x), Thing(3.0).scale(x), Thing.scale(Thing(4.0), x)


@program
def a_module_class(compile):
    @compile
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(randn(3, 3))

        def forward(self, x):
            return torch.relu(x @ self.w)

    m = Net()
    with torch.no_grad():
        a = m(randn(2, 3))
        m.w.mul_(2)
        return a, m(randn(2, 3)), list(m.state_dict())


@program
def a_module_is_what_it_was(compile):
    model = net(6, 5, 3)
    f = compile(model)
    names = list(f.state_dict())
    f.load_state_dict(net(6, 5, 3, seed=3).state_dict())
    with torch.no_grad():
        y = f(randn(4, 6))
        return y, names, isinstance(f, nn.Sequential), len(f), model[0].bias, f[0] is model[0], f.training


@program
def inside_a_sequential(compile):
    whole = nn.Sequential(compile(net(6, 5)), nn.Tanh(), compile(net(5, 3)))
    with torch.no_grad():
        return whole(randn(4, 6)), list(whole.state_dict()), whole.train().training, whole[0].training


@program
def threads_share_a_function(compile):
    model = net(6, 5, 3)
    f = compile(model)
    xs = [randn(4, 6, seed=i) for i in range(6)]
    answers = [None] * 6

    def work(i):
        with torch.no_grad():
            for _ in range(3):
                answers[i] = f(xs[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return answers


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda p: p.__name__)
def test_program_does_what_eager_does(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = run(lambda f: f)
        torch._dynamo.reset()
        equal(run(cuvil.compile), want)


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= 60
