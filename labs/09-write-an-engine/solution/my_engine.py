"""My engine for meshes."""

from knotless.routing.engine import Engine
from knotless.routing.path_function import path_by_steps, routes_of_paths


def route(task):
    """Return the routes of a mesh: switch x + width * y is in column x and row y."""
    width = int(task.fabric.name.split(",")[1])  # mesh,WIDTH,HEIGHT

    def next_switch(at, end):
        """Return the switch to which a packet for the switch `end` goes from the switch `at`."""
        row, column = divmod(at, width)
        end_row, end_column = divmod(end, width)
        if row != end_row:  # first the column, then the row: no turn from the row to the column
            return at + width if row < end_row else at - width
        return at + 1 if column < end_column else at - 1

    return routes_of_paths(task, path_by_steps(task, next_switch))


ENGINE = Engine(name="mine", summary="my engine for meshes", route=route)
