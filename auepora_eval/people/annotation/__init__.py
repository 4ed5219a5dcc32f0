"""Annotation tasks: what people judge, their queues, their labels on the disk, and what is exported."""
