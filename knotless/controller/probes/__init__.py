"""Frames of our own, which find links that lose frames, wrong cables and unknown fabrics."""
