"""What has an opinion about text: embeddings and language models."""
