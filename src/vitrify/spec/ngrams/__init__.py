"""N-gram language models: back-off models, ARPA files, Kneser–Ney smoothing."""
