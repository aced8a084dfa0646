"""VLANs: which paths share one, and who puts the tag on."""
