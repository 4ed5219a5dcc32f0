"""Metrics of robustness: noise, counterfactuals, rejection."""
