"""``knotless controller``: the controller of switches, or of a running fabric."""

from __future__ import annotations

from pathlib import Path

import click

from knotless.base.counting import counted
from knotless.cli.answer import Answer, Headline, print_answer
from knotless.cli.groups import SuggestingGroup
from knotless.cli.numbers import Whole
from knotless.cli.options import json_option, name_option, print_json
from knotless.emulation import rest
from knotless.emulation.controller import restart
from knotless.emulation.names import names_of
from knotless.emulation.requirements import require_fabrics

EXAMPLE = """\b
Example: knotless controller restart
"""
RUN_EXAMPLE = """\b
Example: knotless controller run --config controller/knotless.yaml
         knotless controller run --tls-key k.pem --tls-cert c.pem --tls-ca ca.pem
"""
_FILE = click.Path(path_type=Path)
CONFIRM_EXAMPLE = """\b
Example: knotless controller confirm
"""


@click.group("controller", cls=SuggestingGroup, epilog=EXAMPLE)
def command() -> None:
    """Run the controller of your switches, or look after that of a running fabric."""


@command.command("run", epilog=RUN_EXAMPLE)
@click.option(
    "--config",
    metavar="FILE",
    type=_FILE,
    help="Its configuration.  [default: that of KNOTLESS_CONFIG, or knotless.yaml, or none]",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to which switches connect."
)
@click.option(
    "--port",
    type=Whole(0, 65535),
    help="Port for switches; 0 is none if they use a Unix socket.  [default: 6653]",
)
@click.option("--rest-host", help="Address of the REST interface, instead of the file's.")
@click.option("--rest-port", type=Whole(0, 65535), help="Its port, instead of the file's.")
@click.option("--tls-key", metavar="FILE", help="Private key in PEM: switches then need TLS.")
@click.option("--tls-cert", metavar="FILE", help="Certificate of the key, in PEM.")
@click.option("--tls-ca", metavar="FILE", help="Certificates of the CA of the switches, in PEM.")
def run_command(
    config: Path | None,
    host: str,
    port: int | None,
    rest_host: str | None,
    rest_port: int | None,
    tls_key: str | None,
    tls_cert: str | None,
    tls_ca: str | None,
) -> None:
    """Run the controller in the foreground, until a signal ends it.

    It serves OpenFlow 1.3 switches that connect. What happens is logged to the standard error. The
    switches keep their rules when it ends. It is the same controller as the Ryu application
    controller/app.py, without Ryu.
    """
    from knotless.controller.openflow.tls import chosen_tls  # only this command needs it
    from knotless.controller.process import Options, run

    tls = chosen_tls({"--tls-key": tls_key, "--tls-cert": tls_cert, "--tls-ca": tls_ca})
    run(Options(config, host, port, rest_host, rest_port, tls))


@command.command("restart", epilog=EXAMPLE)
@name_option
@json_option
def restart_command(name: str, as_json: bool) -> None:
    """Start the controller again, dead or alive; return when every switch has its rules.

    The switches keep their rules and forward in the meantime. Rules that are correct are not
    touched. The controller reads /run/knotless/NAME/controller.yaml again.
    """
    require_fabrics()
    status = restart(names_of(name))
    if as_json:
        print_json(status)
    else:
        switches = counted(len(status["switches"]), "switches")
        rest_of = f", {switches} have their rules (pid {status['pid']})"
        print_answer(Answer(Headline(f"controller of {name!r}", "ready", rest_of)))


@command.command("confirm", epilog=CONFIRM_EXAMPLE)
@name_option
@json_option
def confirm_command(name: str, as_json: bool) -> None:
    """Confirm what is in force, after the file with the requests of operators was damaged.

    The controller then goes on to the options of its configuration, without the parts that are
    drained, in proven steps; problems in knotless status name these. To see the steps first:
    knotless change --dry-run.
    """
    require_fabrics()
    answer = rest.Controller(names_of(name)).post("/confirm", {})
    if as_json:
        print_json(answer)
    else:
        drained = f", drained: {', '.join(answer['drained']) or 'nothing'}"
        print_answer(Answer(Headline(f"controller of {name!r}", "confirmed", drained)))
