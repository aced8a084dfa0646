"""Code that every folder may use: errors, YAML files, plug-ins, names of option values."""
