"""Programs whose weights change between calls."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402
from torch_programs import check, net, randn, settle  # noqa: E402

PROGRAMS = []


def program(fn):
    PROGRAMS.append(fn)
    return fn


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


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda p: p.__name__)
def test_program_does_what_eager_does(run):
    check(run)
