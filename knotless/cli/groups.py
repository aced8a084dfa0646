"""A group of commands that says which command was perhaps meant."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import click


class SuggestingGroup(click.Group):
    """A :class:`click.Group` whose error for an unknown command names similar ones."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; raises UsageError, with suggestions, if there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            error.message += suggestion(args[0], self.list_commands(ctx))
            raise


def suggestion(word: str, names: Sequence[str]) -> str:
    """Return ``" Did you mean ...?"`` for a word that is none of ``names``, or nothing."""
    similar = get_close_matches(word, names)
    return f" Did you mean {' or '.join(similar)}?" if similar else ""
