"""`python -m twinspark_tools.launch --port 8000 --ranks 2 [--model FOLDER] [--dtype float32]`."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from twinspark_tools.launch.launcher import Launcher, ServiceFailedError
from twinspark_tools.launch.model_folder import ModelFolderError, find_model
from twinspark_tools.launch.ports import PortTakenError, check_free
from twinspark_tools.launch.run_folder import RunFolder, RunFolderBusyError
from twinspark_tools.launch.services import Instance, build_services, gateway_host
from twinspark_tools.launch.terminal import say


def main(
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of the HTTP API; other ports are picked free.")
    ] = 8000,
    ranks: Annotated[int, typer.Option(min=1, help="Engine ranks.")] = 2,
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder; none: the demo model.")] = None,
    dtype: Annotated[Literal["float32", "bfloat16"], typer.Option(help="Compute dtype.")] = "float32",
) -> None:
    """Serve a model with all services until Ctrl-C."""
    try:
        folder = RunFolder(port)
        folder.open()
        check_free(gateway_host(), port)
        checkpoint = find_model(model, Path.cwd())
        instance = Instance(port, ranks, checkpoint, dtype)
        Launcher(instance, build_services(instance), folder).run()
    except (ModelFolderError, PortTakenError, RunFolderBusyError, ServiceFailedError) as error:
        say(f"error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        # Before the launcher handles signals itself: nothing runs yet.
        sys.exit(130)


if __name__ == "__main__":
    typer.run(main)
