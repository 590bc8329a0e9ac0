"""Closed-form gradients against autograd, clipped gradients against Opacus, Adam against torch's own."""

import pytest
from training_setup import LAYOUTS, Silent, printed, torch

from sensorsim.training import model
from sensorsim.training.step import Batch, Step, noise_factor

UNITS, N, L = 3, 5, 2


def take_step(config, batch, weights, gradient):
    """One step of a mechanism, as the training loop takes it."""
    config.object.step(Step(config, batch, weights, gradient, Silent(0)))


def nets(bias, inside, seed=0):
    weights, gradient = (model.allocate(UNITS, N, L, bias, inside) for _ in range(2))
    model.initialise(weights, torch.Generator().manual_seed(seed))
    return weights, gradient


def leaves(weights):
    return [t.detach().clone().requires_grad_() for t in (weights.W, weights.V, weights.b, weights.d) if t is not None]


def plain_forward(leaf, x):
    W, V, *biases = leaf
    h = torch.sigmoid(x @ W + (biases[0] if biases else 0))
    return h, h @ V + (biases[1] if biases else 0)


def check(leaf, loss, gradient):
    expected = torch.autograd.grad(loss, leaf)
    found = [t for t in (gradient.W, gradient.V, gradient.b, gradient.d) if t is not None]
    for ref, comp in zip(expected, found, strict=True):
        torch.testing.assert_close(comp, ref, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("batch", "inside"), LAYOUTS)
def test_cross_entropy_gradient_equals_autograd(bias, batch, inside):
    weights, gradient = nets(bias, inside)
    x = torch.rand(UNITS, batch, N, generator=torch.Generator().manual_seed(1))
    leaf = leaves(weights)
    _, z = plain_forward(leaf, x)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, x, reduction="sum")
    take_step(printed("none"), Batch(x), weights, gradient)
    check(leaf, loss, gradient)


@pytest.mark.parametrize("c", [0.0, 2.5])
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(("batch", "inside"), LAYOUTS)
def test_spof_gradient_equals_autograd_of_the_printed_loss(c, noisy, batch, inside):
    weights, gradient = nets(False, inside)
    generator = torch.Generator().manual_seed(2)
    x, noise2, noise3 = (torch.rand(UNITS, batch, N, generator=generator) for _ in range(3))
    seen = x + torch.randn(x.shape, generator=generator) if noisy else None
    drawn = {"noise2": noise2, "noise3": noise3, "scale": torch.full((UNITS, batch, 1), 0.7)}
    take_step(printed("spof", 1.0, c=c), Batch(x, seen, drawn=drawn), weights, gradient)

    leaf = leaves(weights)
    hidden, variable = plain_forward(leaf, x)
    alpha2, alpha3 = 0.5 - x + 0.7 * noise2, 0.5 * x - 0.25 + 0.7 * noise3
    if noisy:  # b_j and t_ji are numbers of the record, z is the variable
        with torch.no_grad():
            h_noisy, z_noisy = plain_forward(leaf, seen)
            b = noise_factor(hidden, h_noisy)
            t = b * variable - z_noisy
        alpha2, alpha3, variable = b * alpha2, b * alpha3, variable - t / b
    variable = variable + c * hidden.sum(2, keepdim=True)
    check(leaf, (alpha2 * variable + alpha3 * variable**2).sum(), gradient)


@pytest.mark.parametrize(("batch", "inside"), LAYOUTS)
def test_release_gradient_equals_autograd(batch, inside):
    weights, gradient = nets(False, inside)
    released, x = (torch.randn(UNITS, batch, N, generator=torch.Generator().manual_seed(seed)) for seed in (3, 4))
    take_step(printed("release", 1.0), Batch(x, drawn={"released": released}), weights, gradient)
    leaf = leaves(weights)
    _, z = plain_forward(leaf, released)
    check(leaf, ((0.5 - released) * z + z**2 / 8).sum(), gradient)


@pytest.mark.parametrize(("batch", "inside"), LAYOUTS)
def test_sampled_gradient_equals_autograd(batch, inside):
    """What is released is weighed; what is not has no linear term."""
    weights, gradient = nets(False, inside)
    released = torch.randn(UNITS, batch, N, generator=torch.Generator().manual_seed(5))
    weight = torch.zeros_like(released)
    weight[..., 1] = N
    take_step(
        printed("sampled", 1.0), Batch(released, drawn={"released": released, "weight": weight}), weights, gradient
    )
    leaf = leaves(weights)
    _, z = plain_forward(leaf, released)
    check(leaf, (N * (0.5 - released[..., 1]) * z[..., 1]).sum() + (z**2 / 8).sum(), gradient)


class Net(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.encoder = torch.nn.Linear(N, L, bias=bias)
        self.decoder = torch.nn.Linear(L, N, bias=bias)

    def forward(self, x):
        return self.decoder(torch.sigmoid(self.encoder(x)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("C", [0.05, 0.3, 100.0])
def test_clipped_gradients_equal_opacus(bias, C):
    grad_sample = pytest.importorskip("opacus.grad_sample")
    from opacus.optimizers import DPOptimizer

    batch = 6
    x = torch.rand(batch, N, generator=torch.Generator().manual_seed(4))
    weights, gradient = nets(bias, False)
    net = Net(bias)
    with torch.no_grad():
        net.encoder.weight.copy_(weights.W[0].T)
        net.decoder.weight.copy_(weights.V[0].T)
        if bias:
            net.encoder.bias.copy_(weights.b[0, 0])
            net.decoder.bias.copy_(weights.d[0, 0])
    wrapped = grad_sample.GradSampleModule(net)
    peer = DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=1.0), noise_multiplier=0.0, max_grad_norm=C, expected_batch_size=batch
    )
    # Opacus takes the loss for a mean over the batch and scales it back
    torch.nn.functional.binary_cross_entropy_with_logits(wrapped(x), x, reduction="sum").div(batch).backward()
    peer.pre_step()

    ours = Batch(x.expand(UNITS, -1, -1).contiguous(), present=torch.full((UNITS, batch, 1), 1 / batch))
    take_step(printed("dpsgd-weights", 1.0, C=C, batch=batch, bias=bias), ours, weights, gradient)
    torch.testing.assert_close(gradient.W[0], net.encoder.weight.grad.T, rtol=0, atol=1e-6)
    torch.testing.assert_close(gradient.V[0], net.decoder.weight.grad.T, rtol=0, atol=1e-6)
    if bias:
        torch.testing.assert_close(gradient.b[0, 0], net.encoder.bias.grad, rtol=0, atol=1e-6)
        torch.testing.assert_close(gradient.d[0, 0], net.decoder.bias.grad, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_optimiser_equals_torch(name):
    generator = torch.Generator().manual_seed(6)
    start = torch.randn(40, generator=generator)
    ours, theirs = start.clone(), start.clone().requires_grad_()
    peer = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[name]([theirs], lr=1e-2)
    update = model.make_optimiser(name, ours, 1e-2)
    for _ in range(50):
        theirs.grad = torch.randn(40, generator=generator)
        peer.step()
        update.step(theirs.grad)
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-6)
