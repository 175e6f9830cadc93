"""Sandboxes become glass boxes: specs compiled to exact, labelled network weights, certified and checked."""

__version__ = "0.1.0"
