"""Networks as data: architectures, weights, the forward pass, traces, folders."""

from vitrify.net.architecture import Output
from vitrify.net.decode import Thought, decode
from vitrify.net.folder import load, save
from vitrify.net.labels import HeadLabel, Labels, SpaceLabel, UnitsLabel
from vitrify.net.recurrent import Recurrent
from vitrify.net.run import batch_logits, encode, log_probabilities, logits, outputs, trace
from vitrify.net.trace import Trace
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Ledger, Weights

__all__ = [
    "Block",
    "Head",
    "HeadLabel",
    "Labels",
    "Ledger",
    "Output",
    "Recurrent",
    "SpaceLabel",
    "Thought",
    "Trace",
    "Transformer",
    "UnitsLabel",
    "Weights",
    "batch_logits",
    "decode",
    "encode",
    "forward",
    "load",
    "log_probabilities",
    "logits",
    "outputs",
    "save",
    "trace",
]
