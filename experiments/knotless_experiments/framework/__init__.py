"""The framework of all experiments: campaigns, options and reports."""
