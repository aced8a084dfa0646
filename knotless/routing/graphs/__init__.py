"""Graph algorithms of the engines: channels, states, turns, layers and trees."""
