"""Three architectures as plain torch modules, for `vitrify diagnose examples/models/in_torch.py:lstm` and so on."""

import torch
from torch import nn

WIDTH = 64


class Lstm(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, WIDTH)
        self.cell = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, vocabulary)

    def forward(self, tokens):
        return self.out(self.cell(self.embed(tokens))[0])


class Block(nn.Module):
    """A layer of two heads and a layer of units; `softmax` or linear attention."""

    def __init__(self, softmax):
        super().__init__()
        self.softmax = softmax
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.queries, self.keys, self.values, self.mix = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.units = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x, places):
        batch, length, _ = x.shape
        y = self.norms[0](x)
        q, k, v = (
            part(y).view(batch, length, 2, WIDTH // 2).transpose(1, 2)
            for part in (self.queries, self.keys, self.values)
        )
        if self.softmax:
            found = nn.functional.scaled_dot_product_attention(turned(q, places), turned(k, places), v, is_causal=True)
        else:
            q, k = nn.functional.elu(q) + 1, nn.functional.elu(k) + 1
            scores = (q @ k.transpose(-1, -2)).tril()
            found = scores @ v / scores.sum(dim=-1, keepdim=True)
        x = x + self.mix(found.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.units(self.norms[1](x))


def turned(x, places):
    """Rotary places."""
    half = x.shape[-1] // 2
    angle = places[:, None] * 10000.0 ** -(torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


class Attention(nn.Module):
    def __init__(self, vocabulary, softmax):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, WIDTH)
        self.blocks = nn.ModuleList([Block(softmax), Block(softmax)])
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, vocabulary)

    def forward(self, tokens):
        x, places = self.embed(tokens), torch.arange(tokens.shape[1])
        for block in self.blocks:
            x = block(x, places)
        return self.out(self.norm(x))


def lstm(vocabulary, length, seed):
    return Lstm(vocabulary)


def transformer(vocabulary, length, seed):
    return Attention(vocabulary, softmax=True)


def linear_attention(vocabulary, length, seed):
    return Attention(vocabulary, softmax=False)


lstm.kind, transformer.kind, linear_attention.kind = "LSTM", "transformer", "positive"
