"""The extension: it only registers the other modules of this package."""
