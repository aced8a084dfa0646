"""My engine: up*/down* routing."""

from collections import deque

from knotless.routing.engine import Engine
from knotless.routing.graphs.spanning_tree import spanning_tree
from knotless.routing.path_function import routes_of_paths

ROOT = 0  # the switch s1


def is_up(task, level, channel):
    """Tell whether a channel leads up."""
    near = int(task.channels.tail[channel])  # the switch that it leaves
    far = int(task.channels.head[channel])  # the switch that it enters
    # TODO: compare level[near] and level[far]; which end is up if they are equal?
    return False


def may_follow(went_down, goes_up):
    """Tell whether a packet that went down before, or not, may take a channel that goes up."""
    # TODO: state the rule of up*/down*
    return True


def route(task):
    """Return the routes: for each pair of switches a shortest path that follows the rule."""
    tree = spanning_tree(task.channels, ROOT)
    level = tree.level.tolist()
    leaving = [[] for _ in task.channels.names]
    for channel, near in enumerate(task.channels.tail.tolist()):
        leaving[near].append(channel)

    def path(start, end):
        # A breadth-first search over (switch, has a channel led down?).
        seen = {(start, False): []}
        waiting = deque(seen)
        while waiting:
            at, went_down = waiting.popleft()
            taken = seen[at, went_down]
            if at == end:
                return taken
            for channel in leaving[at]:
                up = is_up(task, level, channel)
                if may_follow(went_down, up):
                    state = (int(task.channels.head[channel]), went_down or not up)
                    if state not in seen:
                        seen[state] = [*taken, channel]
                        waiting.append(state)
        raise ValueError(f"no path from switch {start} to switch {end}")

    return routes_of_paths(task, path, trees=tree.from_everywhere())


ENGINE = Engine(name="my-updown", summary="up*/down* from s1", route=route, has_root=False)
