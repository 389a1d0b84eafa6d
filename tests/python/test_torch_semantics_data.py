"""Programs on inputs and outputs: mutation, views, aliasing, shapes, dtypes, containers."""

from collections import namedtuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402
from torch_programs import check, net, randn  # noqa: E402

PROGRAMS = []


def program(fn):
    PROGRAMS.append(fn)
    return fn


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


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda p: p.__name__)
def test_program_does_what_eager_does(run):
    check(run)
