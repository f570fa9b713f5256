"""What goes between the service and its compiler host, over one socket pair: pickled values of these classes."""

from dataclasses import dataclass
from pathlib import Path

from twinspark_grammar.compiling.job import Compiled, JobLimits, Refused
from twinspark_grammar.source import GrammarSource


@dataclass(frozen=True, slots=True)
class HostConfig:
    """First frame to the host."""

    model: Path
    limits: JobLimits
    compile_seconds: float
    compile_memory_bytes: int
    compile_threads: int


@dataclass(frozen=True, slots=True)
class HostReady:
    """First frame of the host: it takes jobs from now on. `process_id`: its own."""

    process_id: int


@dataclass(frozen=True, slots=True)
class CompileOrder:
    """One source to compile; `number` names it."""

    number: int
    source: GrammarSource


@dataclass(frozen=True, slots=True)
class CompileCancel:
    """Nobody waits for the order of this number any more."""

    number: int


@dataclass(frozen=True, slots=True)
class CompileResult:
    """What came of an order. `was_killed`: at a limit of time or memory."""

    number: int
    outcome: Compiled | Refused
    seconds: float
    was_killed: bool
