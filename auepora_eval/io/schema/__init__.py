"""JSON Schemas, and checking documents against them."""
