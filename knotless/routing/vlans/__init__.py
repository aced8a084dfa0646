"""VLANs: which paths share one, and whether hosts or switches tag."""
