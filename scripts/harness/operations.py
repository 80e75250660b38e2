# SPDX-License-Identifier: GPL-2.0
"""What a user does to a driver, for tests that have each of it fail in some way."""

import dataclasses

# Where the XDP programs of tools/selftests/xdp are pinned, each by its name, and how they get there.
XDP_PINS = "/sys/fs/bpf/xdp"
LOAD_XDP = (
    "mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf;"
    f"rm -rf {XDP_PINS}; mkdir {XDP_PINS} && bpftool prog loadall /opt/ring-nics/xdp/programs.o {XDP_PINS}/programs"
    f" pinmaps {XDP_PINS}/maps"
)
XDP_PASS = f"{XDP_PINS}/programs/xdp_pass"


@dataclasses.dataclass(frozen=True)
class Operation:
    """Shell text; of a command that is one program, the first process does all the work."""

    name: str
    command: str
    # Makes the state that the command needs.
    before: str = "true"
    # Takes the effect back; well behind a command that failed, too.
    after: str = "true"
    # Whether the port is up in the state before, and so where a failure leaves it.
    up: bool = True


def operations(rig, name=None, device=None, peer=None):
    """Those on a port that is up: its interface, the address of its NIC and the peer that it reaches,
    or else the first of the rig."""
    name, device, peer = name or rig.interface, device or rig.device, peer or rig.peer
    rings, queues = rig.ethtool("-g", name), rig.channels(name)
    driver = f"/sys/bus/pci/drivers/{rig.driver.module}"
    return [
        Operation(
            "probe",
            f"echo {device} > {driver}/bind",
            before=f"test ! -e {driver}/{device} || echo {device} > {driver}/unbind",
            after=f"test -e {driver}/{device} || echo {device} > {driver}/bind; {rig.up_command(name, peer)}",
            up=False,
        ),
        Operation(
            "open",
            f"ip link set {name} up",
            before=f"ip link set {name} down",
            after=f"ip link set {name} up",
            up=False,
        ),
        Operation("stop", f"ip link set {name} down", after=f"ip link set {name} up"),
        Operation(
            "rings",
            f"ethtool -G {name} rx {rings['rx'] // 2} tx {rings['tx'] * 2}",
            after=f"ethtool -G {name} rx {rings['rx']} tx {rings['tx']}",
        ),
        Operation(
            "channels",
            f"ethtool -L {name} combined {max(1, queues // 2)}",
            after=f"ethtool -L {name} combined {queues}",
        ),
        Operation("spread", f"ethtool -X {name} equal 1", after=f"ethtool -X {name} default"),
        Operation("mtu", f"ip link set {name} mtu 1400", after=f"ip link set {name} mtu 1500"),
        Operation(
            "xdp",
            f"ip link set dev {name} xdpdrv pinned {XDP_PASS}",
            before=f"test -e {XDP_PASS} || {{ {LOAD_XDP}; }}",
            after=f"ip link set dev {name} xdpdrv off",
        ),
        Operation("features", f"ethtool -K {name} tx off rx off", after=f"ethtool -K {name} tx on rx on"),
        Operation(
            "vlan",
            f"ip link add link {name} name {name}.7 up type vlan id 7",
            after=f"ip link delete {name}.7",
        ),
        *(
            Operation(f"ethtool {flag}", f"ethtool {flag} {name}")
            for flag in ("-S", "-i", "-g", "-l", "-x", "-k", "")
        ),
        Operation("statistics", f"ip -s link show dev {name}"),
    ]


def settings_command(name):
    """Shell text that prints the settings of an interface."""
    return (
        f"ethtool -g {name}; ethtool -l {name}; ethtool -x {name}; ethtool -k {name};"
        f" cat /sys/class/net/{name}/mtu"
    )
