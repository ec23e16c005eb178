"""The report of `tokendyno doctor`: this machine, the versions, and which choices are usable here."""

from dataclasses import dataclass

from backend import hardware
from backend.arms.usable import Usable, usable_choices
from backend.cli.documents import ChoiceEntry, DoctorDocument
from backend.errors import InputError
from backend.hardware import Machine, peak_rates
from backend.hardware.bandwidth import Bandwidth, MeasureFailed, measure, recall, remember
from backend.hardware.compatibility import startup_messages
from backend.hardware.compilers import INSTALL
from backend.hosting.limits import LIMITS
from backend.models import DEFAULT_MODEL, resolve


@dataclass(frozen=True, slots=True)
class Report:
    """Machine, versions, problems, and every choice with its verdict for the default model.

    bandwidth          measured now or earlier; None: never measured, or `bandwidth_problem` says why that failed
    bandwidth_note     which peak rates of this machine are unknown
    """

    machine: dict[str, str]
    versions: dict[str, str]
    problems: list[str]
    choices: list[Usable]
    bandwidth: Bandwidth | None = None
    bandwidth_problem: str = ""
    bandwidth_note: str = ""

    def document(self) -> DoctorDocument:
        """For programs."""
        choices = [ChoiceEntry(row.axis, row.choice, row.usable, row.why) for row in self.choices]
        limits = {str(mode): limits for mode, limits in LIMITS.items()}
        return DoctorDocument(self.machine, self.versions, self.problems, choices, self.bandwidth, limits)


def doctor_report(machine: Machine, bandwidth: bool = False) -> Report:
    """Inspect this machine. `bandwidth`: measure it now and keep it; otherwise an earlier measurement is shown."""
    problems = [*startup_messages(), *machine.remarks]
    if machine.no_compiler:
        problems.append(f"torch.compile cannot run: {machine.no_compiler}. Install it {INSTALL}.")
    found, failed = recall(machine), ""
    if bandwidth:
        try:
            found = measure(machine)
            problems += filter(None, [remember(found)])
        except MeasureFailed as error:
            found, failed = None, f"the measurement failed: {error}."
            problems.append(f"The memory bandwidth is unknown; {failed}")
    rows: list[Usable] = []
    try:
        facts = resolve(DEFAULT_MODEL)
    except InputError as error:
        problems.append(str(error))
    else:
        rows = usable_choices(facts, machine)
    return Report(machine.describe(), hardware.versions(), problems, rows, found, failed, peak_rates.remark(machine))
