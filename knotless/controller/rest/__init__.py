"""The HTTP interface for operators and programs: requests, events, metrics."""
