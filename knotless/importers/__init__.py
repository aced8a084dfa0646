"""Fabrics of others as forwarding states: assembled from the files that readers recognised."""
