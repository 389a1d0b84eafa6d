"""Programs with control flow, graph breaks and operators that stay PyTorch's."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch_programs import check, net, randn  # noqa: E402

PROGRAMS = []


def program(fn):
    PROGRAMS.append(fn)
    return fn


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


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda p: p.__name__)
def test_program_does_what_eager_does(run):
    check(run)
