"""Graphs that engines share: channels, states, turns, layers and trees."""
