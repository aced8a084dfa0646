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
        # TODO: choose a neighbour that is nearer to the end: at + 1, at - 1, at + width, at - width
        raise NotImplementedError("choose a neighbour")

    return routes_of_paths(task, path_by_steps(task, next_switch))


ENGINE = Engine(name="mine", summary="my engine for meshes", route=route)
