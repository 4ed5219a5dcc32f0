"""What can be asked: HTTP endpoints, chat models, embeddings, entailment."""
