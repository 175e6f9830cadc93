"""Networks as data: architectures, weights, the forward pass, traces, folders."""
