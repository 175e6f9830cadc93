"""Sandboxes: data sources that are understood completely, each with a sampler and its exact optimal predictor."""
