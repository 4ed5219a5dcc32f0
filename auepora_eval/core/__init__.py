"""The decomposition: targets x datasets x metrics, and the evaluator that joins them."""
