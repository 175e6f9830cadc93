r"""A chain of bits and the one-layer transformer that reads them as numbers, in closed form.

The chain leaves 0 with probability $p$ and 1 with probability $q$; $\pi_1 = p/(p+q)$ is how often a 1 comes up. The
network (`learn/models/scalar.py`) can do two things: say $\pi_1$ whatever it read, which costs $H(\pi)$ a symbol, or
read the last bit, which costs the entropy rate. In its low-rank form with the numbers $e > 0$ and $w$ the logit of a 1
after $x$ is $e^2 (1 + 2w|w|)\,x + b - e^2/2$, and the loss with the best $b$ depends on the contrast
$A = e^2 (1 + 2w|w|)$ only: `profile`.
Formulae take numbers of Python, of NumPy and of JAX; with the first two they need no JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from vitrify.arrays import Array, Namespace, namespace

if TYPE_CHECKING:
    from vitrify.net.transformer import Transformer
    from vitrify.sandboxes.catalogue import Example

Number: TypeAlias = Array  # or a number of Python
CRITICAL = -np.sqrt(0.5)  # where 1 + 2w|w| changes its sign
SADDLE = -(1 + np.log(2)) / 2  # the energy at e = 0 and the critical w


def _numbers(*values: Number) -> Namespace:
    """JAX's functions where one of the values is an array of JAX, else NumPy's."""
    arrays = [value for value in values if hasattr(value, "__array_namespace__") and not isinstance(value, np.generic)]
    return next((namespace(array) for array in arrays if not isinstance(array, np.ndarray)), np)


def ones(p: Number, q: Number) -> Number:
    """The stationary probability of a 1."""
    return p / (p + q)


def alone(p: float, q: float) -> float:
    """The entropy of one symbol, in nats: what it costs not to read."""
    return float(_coin(ones(p, q)))


def rate(p: float, q: float) -> float:
    """The entropy rate, in nats: what it costs to read the last bit."""
    return float((q * _coin(p) + p * _coin(q)) / (p + q))


def contrast(p: Number, q: Number) -> Number:
    """The difference of the right logits of a 1, after 1 and after 0: negative where p + q > 1."""
    return np.log((1 - p) * (1 - q) / (p * q))


def _coin(p: Number) -> Number:
    return -p * np.log(p) - (1 - p) * np.log1p(-p)


def weighted(listed: Example, p: float, q: float) -> Example:
    """Listed strings of bits, weighted with their probabilities in the chain that leaves 0 by p and 1 by q."""
    bits, leave = np.asarray(listed.targets), np.array([p, q])
    moves = np.where(bits[:, 1:] != bits[:, :-1], leave[bits[:, :-1]], 1 - leave[bits[:, :-1]])
    chance = np.where(bits[:, 0] == 1, ones(p, q), ones(q, p)) * moves.prod(axis=1)
    return listed._replace(weight=np.tile(chance[:, None], (1, bits.shape[1])))


def blank(net: Transformer, size: float = 0.0, seed: int = 0) -> dict[str, Array]:
    """Parameters of the network that reads bits as numbers: normal of that size in its arrays, zero for e, a and b."""
    rng = np.random.default_rng(seed)
    trained = ("W_pos", "W_Q", "W_K", "W_V", "W_O", "W_in", "W_out")
    arrays = {name: size * rng.normal(size=shape) for name, shape in net.shapes().items() if name.endswith(trained)}
    return arrays | {"e": np.zeros(net.d_model), "a": np.zeros(net.d_model), "b": np.float64(0.0)}


def unread(net: Transformer, p: float, q: float, size: float, seed: int = 0) -> dict[str, Array]:
    r"""$\theta_\pi$: it says how often a 1 comes up and reads nothing; all that can't matter is of that size."""
    return blank(net, size, seed) | {"b": np.log(p / q)}


def solved(net: Transformer, p: float, q: float) -> dict[str, Array]:
    r"""$\theta_\star$: it says the chain's own probabilities, with tied weights or not.

    With $|e| = 1$ and $a = e$ the stream says $x$ and one unit adds $(A - 1)\,x$; so the sign of $A$ does not matter.
    """
    arrays, e = blank(net), np.eye(net.d_model)[0]
    read, write = arrays["blocks.0.mlp.W_in"], arrays["blocks.0.mlp.W_out"]
    read[:, 0], write[0] = e, (contrast(p, q) - 1) * e
    return arrays | {"e": e, "a": e, "b": np.log(p / (1 - p))}


def reduced(e: Array, w: Array, b: Array, p: Array, q: Array) -> Array:
    """The loss of the low-rank form."""
    zero = b - e**2 / 2
    return costs(zero, zero + gain(w) * e**2, p, q)


def gain(w: Array) -> Array:
    """Return the factor by which the units scale the contrast: negative below the critical w."""
    return 1 + 2 * w * abs(w)


def costs(zero: Array, one: Array, p: Array, q: Array) -> Array:
    """The mean loss of the logits of a 1 after 0 and after 1."""
    xp = _numbers(zero, one, p, q)
    after_one = q * xp.logaddexp(one, 0.0) + (1 - q) * xp.logaddexp(-one, 0.0)
    after_zero = p * xp.logaddexp(-zero, 0.0) + (1 - p) * xp.logaddexp(zero, 0.0)
    return ones(p, q) * after_one + (1 - ones(p, q)) * after_zero


def best(a: Array, p: Array, q: Array) -> Array:
    r"""The logit after 0 that is best for a contrast: $\log u$ with $q e^A u^2 + (q - p) u - p = 0$.

    Of the two forms of the positive root the one without cancellation is taken, scaled so that nothing overflows.
    """
    xp = _numbers(a, p, q)
    half = xp.maximum(a, 0.0) / 2
    small = xp.exp(-half)
    root = xp.sqrt((p - q) ** 2 * small**2 + 4 * p * q * xp.exp(a - 2 * half))
    log_sum = xp.log(abs(p - q) * small + root)
    return xp.where(p > q, half - a - xp.log(2 * q) + log_sum, xp.log(2 * p) - half - log_sum)


def profile(a: Array, p: Array, q: Array) -> Array:
    """The loss with this contrast and the best bias."""
    zero = best(a, p, q)
    return costs(zero, zero + a, p, q)


def slope(a: Number, p: Number, q: Number) -> Number:
    r"""The derivative of `profile`: $\pi_1 (\sigma(z) - (1 - q))$ with the logit $z$ after 1: the bias is the best."""
    one = best(a, p, q) + a
    return ones(p, q) * (0.5 * (1 + np.tanh(one / 2)) - (1 - q))


def energy(e: Number, w: Number) -> Number:
    r"""$e^2 - w^2 - \mathrm{sign}(w) \log|w|$, which the gradient flow keeps."""
    xp = _numbers(e, w)
    return e**2 - (w**2 + xp.sign(w) * xp.log(abs(w)))


def separatrix(w: Number) -> Number:
    """The e > 0 with the energy of the saddle, for a negative w."""
    return np.sqrt(np.maximum(SADDLE + w**2 - np.log(-w), 0.0))


def trapped(e: Number, w: Number, p: Number, q: Number) -> Array:
    """Return True if theory predicts that the flow from (e, w) ends at e = 0, where the input is ignored."""
    low = np.asarray(energy(e, w)) < SADDLE
    below = (w < CRITICAL) & low
    above = (w >= 0) | ((w > CRITICAL) & low)
    return np.where(np.asarray(p + q) < 1, below, above)
