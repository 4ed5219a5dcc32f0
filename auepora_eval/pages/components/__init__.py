"""Typed functions that return escaped markup: what pages are made of."""
