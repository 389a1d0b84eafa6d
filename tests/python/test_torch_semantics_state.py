"""Programs on attributes, closures, globals, gradients, modes, hooks, random numbers, and the compiled objects."""

import copy
import threading

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402
from torch_programs import check, net, randn  # noqa: E402

PROGRAMS = []


def program(fn):
    PROGRAMS.append(fn)
    return fn


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
    check(run)
