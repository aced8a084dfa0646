"""Finite fields and projective planes."""
