"""Parts of a transformer as GPU kernels, forward and backward, written in Pallas; `net/routines.py` chooses them."""
