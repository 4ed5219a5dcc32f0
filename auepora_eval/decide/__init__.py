"""Decisions over results and comparisons: may a run pass, may it stop early, which variant wins?"""
