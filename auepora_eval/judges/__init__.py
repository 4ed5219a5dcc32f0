"""What has an opinion about text: embeddings."""
