"""The reference of the controller's configuration, from its model."""

from __future__ import annotations

from knotless.controller.config_reference import table

HEAD = """# Configuration

The controller reads one YAML file: the file named by `KNOTLESS_CONFIG`, else `knotless.yaml` in the
current directory, else the defaults below. An unknown key or a wrong value gives one line and exit
status 2. [The controller](../controller.md#configuration) has an example and says what the keys do
together.

The keys from `engine` on are the options of a plan, which have the same names and defaults in
[`knotless plan`](commands.md#knotless-plan) and in [Python](python.md).

This table is generated from the model.

"""


def page() -> str:
    """Return the page."""
    return HEAD + table()
