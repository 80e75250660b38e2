# SPDX-License-Identifier: GPL-2.0
"""The demonstration: one guest, two ports, the stock driver and ours in turn, a table at the end."""

from . import build, runner
from .common import DRIVERS, Failure
from .guest import Boot, fastest
from .rig import Rig
from .tests import traffic

BOOT = Boot(cpus=2, ports=2)
SECONDS = 5


class Phase:
    """Shows a phase of the demonstration with its time."""

    def __init__(self, title):
        self._title = title
        self._ticker = runner.Ticker(f"  {title}")

    def __enter__(self):
        return self

    def __exit__(self, kind, _value, _trace):
        seconds = self._ticker.stop()
        if kind is None:
            print(f"  {self._title:<36} {int(seconds) // 60:>3}:{int(seconds) % 60:02}", flush=True)


def show(rig, command):
    """Prints a command and what it said, as in a terminal of the guest."""
    print(f"\n  guest# {command}")
    for line in rig.guest.output(command).splitlines():
        print(f"    {line.expandtabs()}")


def measure(rig):
    """Figures of the driver that is loaded: (what, value, unit)."""
    figures = []

    def add(what, value, unit):
        figures.append((what, value, unit))

    def counted(work):
        """Runs `work`, and returns its result and what the NIC counted meanwhile."""
        rig.model.ask({"clear": "counters"})
        result = work()
        return result, rig.model.counters()

    with Phase("iperf3 from the guest"):
        end, counters = counted(lambda: traffic.iperf3(rig, seconds=SECONDS))
        add("iperf3, guest sends", traffic.received_mbits(end), "Mbit/s")
        sent = counters["doorbell_sq"] / max(counters["tx_packets"], 1)
    with Phase("iperf3 to the guest"):
        end, counters = counted(lambda: traffic.iperf3(rig, "--reverse", seconds=SECONDS))
        add("iperf3, guest receives", traffic.received_mbits(end), "Mbit/s")
        received = counters["doorbell_rq"] / max(counters["rx_packets"], 1)
    for name, what, unit in (
        ("TCP_STREAM", "netperf TCP_STREAM", "Mbit/s"),
        ("TCP_MAERTS", "netperf TCP_MAERTS", "Mbit/s"),
        ("TCP_RR", "netperf TCP_RR", "per second"),
        ("UDP_RR", "netperf UDP_RR", "per second"),
    ):
        with Phase(what):
            add(what, traffic.netperf(rig, name, seconds=SECONDS), unit)
    add("send doorbells per packet", sent, "")
    add("receive doorbells per packet", received, "")
    return figures


def table(columns):
    """Prints the figures of several drivers side by side."""
    names = list(columns)
    print(f"\n  {'':<30}" + "".join(f"{name:>18}" for name in names))
    for row, (what, _, unit) in enumerate(columns[names[0]]):
        values = [columns[name][row][1] for name in names]
        cells = "".join(f"{value:>18.3f}" if not unit else f"{value:>18.0f}" for value in values)
        print(f"  {what:<30}{cells} {unit}")


def run(settings, results, shown_results):
    try:
        demonstrate(settings, results)
    except Failure as failure:
        print(f"\ndemo: {failure}\n  what explains it is in {shown_results}")
        return 1
    return 0


def demonstrate(settings, results):
    with Phase("device models"):
        build.build_models(settings, results / "models.txt")
    with Phase("kernel modules"):
        build.build_modules(settings, results / "modules.txt")
    with Phase("guest's disk with our modules"):
        payload = build.build_payload(settings, results / "payload.txt")
    settings = fastest(settings, results / "kvm", payload)
    columns = {}
    for driver in DRIVERS.values():
        with Phase(f"boot, {driver.module}"):
            rig = Rig(settings, driver, BOOT, results / driver.name, payload)
        try:
            with Phase(f"load {driver.module}, ports up"):
                rig.ensure_up()
            if driver.ours:
                show(rig, "uname -r; lsmod | grep -E '^(mana|ring)'")
                for flag in ("-i", "-l", "-g"):
                    show(rig, f"ethtool {flag} {rig.interface}")
                show(rig, f"ip -s link show dev {rig.interface}")
            columns[f"{driver.module}.ko"] = measure(rig)
            rig.check()
            with Phase(f"unload {driver.module}"):
                rig.unload()
        except BaseException:
            rig.save()
            raise
        finally:
            rig.close()
    table(columns)
    print(
        f"\n  Kernel {settings.release}, unmodified. The NIC is a model"
        f"{'' if 'kvm' in settings.accelerator else ' and the processor is emulated'}:"
        " compare the columns,\n  the figures say nothing about silicon."
    )
