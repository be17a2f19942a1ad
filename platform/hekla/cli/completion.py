"""Shell completion of commands, and of names from the server."""

import click
from click.shell_completion import CompletionItem, get_completion_class

from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.client import ClientError
from hekla.lib.text import strip_control_codes

SHELLS = ("bash", "zsh", "fish")
_WHERE = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/hekla.fish"}
_MOST = 100


class NameParameter(click.ParamType[str]):
    """The name or uid of a resource; `path`: its list in REST."""

    def __init__(self, path: str) -> None:
        self.path, self.name = path, path

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """The names with this beginning, newest first; none if the server cannot be used."""
        root = ctx.find_root().params
        try:
            with ctx:
                choice = ServerOptions(root.get("server"), root.get("token"), root.get("home"))
                client = client_of(choice, limit_seconds=0)
                found = client.pages(self.path, _MOST)
        except ClientError:
            return []
        names = dict.fromkeys(strip_control_codes(one["name"]) for one in found)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


JOB = NameParameter("jobs")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for SHELL, for example: hekla completion bash >> ~/.bashrc"""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101  (click has all of these)
    root = click.get_current_context().find_root()
    click.echo(f"# Completion of hekla for {shell}; keep it in {_WHERE[shell]}.")
    click.echo(kind(root.command, {}, "hekla", "_HEKLA_COMPLETE").source())
