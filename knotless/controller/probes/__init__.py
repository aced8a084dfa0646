"""What frames of our own find out: links that lose frames, wrong cables, unknown fabrics."""
