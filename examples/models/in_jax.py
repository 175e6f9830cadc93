"""Three architectures as pairs (parameters, apply), for `vitrify diagnose examples/models/in_jax.py:lstm` and so on."""

import jax
import jax.numpy as jnp

WIDTH = 64


def normal(key, **shapes):
    """Arrays whose products keep the size of what they read."""
    keys = jax.random.split(key, len(shapes))
    return {
        name: jax.random.normal(own, shape) / shape[0] ** 0.5
        for own, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def lstm(vocabulary, length, seed):
    shapes = {"embed": (vocabulary, WIDTH), "read": (WIDTH, 4 * WIDTH), "keep": (WIDTH, 4 * WIDTH)}
    found = normal(jax.random.key(seed), **shapes, out=(WIDTH, vocabulary))
    found["embed"] *= vocabulary**0.5
    return found | {"bias": jnp.zeros(4 * WIDTH).at[WIDTH : 2 * WIDTH].set(1.0)}, run_lstm


def run_lstm(p, tokens):
    driven = p["embed"][tokens] @ p["read"] + p["bias"]

    def step(state, given):
        hidden, cell = state
        put, keep, show, new = jnp.split(given + hidden @ p["keep"], 4, axis=-1)
        cell = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(put) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(show) * jnp.tanh(cell)
        return (hidden, cell), hidden

    start = jnp.zeros((2, tokens.shape[0], WIDTH))
    return jax.lax.scan(step, (start[0], start[1]), driven.swapaxes(0, 1))[1].swapaxes(0, 1) @ p["out"]


def attention(vocabulary, seed):
    size = (WIDTH, WIDTH)
    block = {"q": size, "k": size, "v": size, "o": size, "up": (WIDTH, 2 * WIDTH), "down": (2 * WIDTH, WIDTH)}
    first, *keys = jax.random.split(jax.random.key(seed), 3)
    ends = normal(first, embed=(vocabulary, WIDTH), out=(WIDTH, vocabulary))
    ends["embed"] *= vocabulary**0.5
    return ends | {"blocks": [normal(key, **block) for key in keys]}


def run_attention(p, tokens, softmax):
    x, (batch, length) = p["embed"][tokens], tokens.shape
    for block in p["blocks"]:
        y = normed(x)
        q, k, v = ((y @ block[name]).reshape(batch, length, 2, -1).swapaxes(1, 2) for name in "qkv")
        earlier = jnp.tril(jnp.ones((length, length)))
        if softmax:
            scores = turned(q) @ turned(k).swapaxes(-1, -2) / q.shape[-1] ** 0.5
            weights = jax.nn.softmax(jnp.where(earlier > 0, scores, -1e9))
        else:
            weights = (jax.nn.elu(q) + 1) @ (jax.nn.elu(k) + 1).swapaxes(-1, -2) * earlier
            weights /= weights.sum(axis=-1, keepdims=True)
        x += (weights @ v).swapaxes(1, 2).reshape(batch, length, WIDTH) @ block["o"]
        x += jax.nn.gelu(normed(x) @ block["up"]) @ block["down"]
    return normed(x) @ p["out"]


def normed(x):
    return (x - x.mean(axis=-1, keepdims=True)) / jnp.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def turned(x):
    """Rotary places."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[-2])[:, None] * 10000.0 ** -(jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], axis=-1)


def run_transformer(p, tokens):
    return run_attention(p, tokens, softmax=True)


def run_linear(p, tokens):
    return run_attention(p, tokens, softmax=False)


def transformer(vocabulary, length, seed):
    return attention(vocabulary, seed), run_transformer


def linear_attention(vocabulary, length, seed):
    return attention(vocabulary, seed), run_linear


lstm.kind, transformer.kind, linear_attention.kind = "LSTM", "transformer", "positive"
