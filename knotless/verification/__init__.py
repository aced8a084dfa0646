"""Proofs about a forwarding state: deliveries, loops, and cycles of channel dependencies."""
