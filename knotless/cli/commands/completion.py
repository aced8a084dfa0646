"""``knotless completion``: the script with which a shell completes commands and their values."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

EXAMPLE = """\b
Example: knotless completion bash > ~/.local/share/bash-completion/completions/knotless
         knotless completion zsh > ~/.zfunc/_knotless
         knotless completion fish > ~/.config/fish/completions/knotless.fish
"""


@click.command("completion", epilog=EXAMPLE)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"], case_sensitive=False))
def command(shell: str) -> None:
    """Print a script that completes commands, options, engines, fabrics and names.

    Names of running fabrics, their hosts and links are known to root only.
    """
    completion_class = get_completion_class(shell)
    if completion_class is None:  # pragma: no cover - click has all three
        raise ValueError(shell)
    root = click.get_current_context().find_root()
    click.echo(completion_class(root.command, {}, "knotless", "_KNOTLESS_COMPLETE").source())
