"""What operators and programs ask of the controller: HTTP, events, metrics."""
