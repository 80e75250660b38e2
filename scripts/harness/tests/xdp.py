# SPDX-License-Identifier: GPL-2.0
"""XDP: programs that pass, drop, send back and redirect packets, frames that others redirect to the port,
AF_XDP sockets, and programs that come and go."""

import base64
import contextlib
import json
import time

from .. import packet, wire
from ..common import Failure, expect
from ..load import FLOOD_TIMEOUT
from ..operations import LOAD_XDP, XDP_PINS as PINS
from ..runner import OURS, test
from .bringup import BOUNCED, FULL, STRICT, WIDE
from .lifecycle import expect_load, load
from .traffic import GUEST, ping_sizes

# What tools/selftests/xdp/programs.c acts on, and by how much it changes a frame.
PORT = 7777
SHIM = bytes.fromhex("88b5") + bytes(6)
CHANGE = 40
# The entries of the map "seen".
ACTED, PASSED, MARKED, REFUSED = range(4)
# A tap device holds 500 frames.
BURST = 100
PATIENCE = 30
SIZES = range(60, 1515, 7)
FEW_SIZES = range(60, 1515, 43)


class Programs:
    """The programs and their maps, loaded into the guest anew."""

    def __init__(self, rig):
        self._rig = rig
        rig.guest.run(LOAD_XDP)

    def attach(self, program, name=None, check=True):
        """Attaches a program in native mode, in place of what is there."""
        return self._rig.guest.run(
            f"ip -force link set dev {name or self._rig.interface} xdpdrv pinned {PINS}/programs/{program}",
            check=check,
        )

    def seen(self):
        """The counts of packets, by what was done to them."""
        dump = json.loads(self._rig.guest.output(f"bpftool -j map dump pinned {PINS}/maps/seen"))
        return [int.from_bytes(bytes(int(byte, 16) for byte in each["value"]), "little") for each in dump]

    def wait(self, what, least):
        """Waits until that many packets were counted."""
        deadline = time.monotonic() + PATIENCE * self._rig.guest.slowness
        while (seen := self.seen())[what] < least:
            expect(time.monotonic() < deadline, f"{least} packets were sent, the program has seen {seen}")
            time.sleep(0.1)

    def point(self, table, value, key=0):
        """Sets an entry of a map of 32-bit values."""
        digits = " ".join(map(str, value.to_bytes(4, "little")))
        self._rig.guest.run(f"bpftool map update pinned {PINS}/maps/{table} key {key} 0 0 0 value {digits}")


@contextlib.contextmanager
def attached(rig, program):
    """A program on the rig's interface; none afterwards."""
    rig.ensure_up()
    programs = Programs(rig)
    name = rig.interface
    programs.attach(program)
    try:
        expect(mode(rig) == "native", f"the program is attached, and its mode is {mode(rig)}")
        rig.wait_for_peer(name, rig.peer)
        yield programs
    finally:
        if rig.guest.alive():
            rig.guest.run(f"ip link set dev {name} xdpdrv off")
    expect(mode(rig) is None, "the program is detached, and still there")
    rig.wait_for_peer(name, rig.peer)


def mode(rig, name=None):
    """How an interface runs its program, None without one."""
    xdp = rig.links(name).get("xdp", {})
    return {0: None, 1: "native", 2: "generic"}.get(xdp.get("mode", 0), "strange")


def filler(size):
    return bytes((size * 31 + position * 7 + (position >> 8) * 13) & 0xFF for position in range(size))


def datagrams(rig, sizes, mac=None):
    """Frames that the programs act on, of flows that all differ."""
    mac = mac or rig.links()["address"]
    return [
        packet.udp(rig.peer.mac, mac, rig.peer.v4, rig.peer.guest_v4, (1024 + size, PORT), filler(size - 42))
        for size in sizes
    ]


def turned(frame):
    """A frame with its Ethernet addresses exchanged."""
    return frame[6:12] + frame[:6] + frame[12:]


def send(rig, programs, frames, what=ACTED):
    """Puts frames on the wire, not more at once than it holds."""
    for start in range(0, len(frames), BURST):
        wire.send_frames(rig.peer, frames[start : start + BURST])
        programs.wait(what, min(start + BURST, len(frames)))


def expect_frames(expected, seen):
    """All expected frames are among those seen, once each, byte by byte."""
    wrong = [frame for frame in expected if seen.count(frame) != 1]
    if not wrong:
        return
    first, size = wrong[0], len(wrong[0])
    alike = [frame[:80].hex() for frame in seen if len(frame) == size]
    raise Failure(
        f"{len(wrong)} of {len(expected)} frames are not once among {len(seen)}; the first, of {size} bytes,"
        f" begins with {first[:80].hex()}, and those of that size with {alike[:3]}"
    )


def reflected(rig, programs, frames, expected):
    """Sends frames and checks what the port sends back."""
    capture = wire.Capture(rig.peer, rig.folder / "reflected.pcap")
    try:
        send(rig, programs, frames)
    finally:
        seen = capture.frames()
    expect_frames(expected, seen)


def total(statistics, direction, key):
    """A counter of all queues of ethtool -S."""
    return sum(
        value
        for name, value in statistics.items()
        if name.startswith(f"{direction}_") and name.endswith(f"_{key}") and name.split("_")[1].isdigit()
    )


class Counters:
    """What the driver's counters say of the time since then."""

    def __init__(self, rig):
        self._rig, self._before = rig, rig.statistics()

    def __call__(self, direction, key):
        now = self._rig.statistics()
        return total(now, direction, key) - total(self._before, direction, key)


def expect_count(counters, direction, key, number):
    seen = counters(direction, key)
    expect(seen == number, f"{direction}_N_{key} counts {seen}, not {number}")


@test(boots=(FULL,), timeout=400)
def xdp_pass(rig):
    """Every size of packet through a program that passes it; some, where the driver is not ours."""
    step = 1 if rig.driver.ours else 7
    with attached(rig, "xdp_pass") as programs:
        ping_sizes(rig, 0, 1500, step)
        for address in (rig.peer.v4, rig.peer.v6):
            stream(rig, address)
        passed = programs.seen()[PASSED]
        expect(passed > 2800 // step, f"the program has seen {passed} packets")
    ping_sizes(rig, 0, 1500, 211)


def stream(rig, address):
    """Hashed data both ways."""
    server = wire.StreamServer(address)
    try:
        answer = rig.guest.output(f"python3 {GUEST}/stream.py connect {address} {server.port} 4", timeout=120)
        server.check()
        expect(answer == "same", f"data from the peer arrived changed: {answer}")
    finally:
        server.close()


@test(boots=(STRICT, BOUNCED))
def xdp_pass_some(rig):
    """Packets through a program where DMA is translated, or bounced."""
    with attached(rig, "xdp_pass"):
        ping_sizes(rig, 0, 1500, 37)
        stream(rig, rig.peer.v4)


@test(boots=(FULL, STRICT, BOUNCED))
def xdp_drop(rig):
    """Datagrams that a program drops are counted, all others pass; their buffers are used again."""
    with attached(rig, "xdp_drop") as programs:
        counters = Counters(rig)
        # More than there are buffers.
        frames = datagrams(rig, SIZES) * 12
        send(rig, programs, frames)
        expect_count(counters, "rx", "xdp_drop", len(frames))
        if rig.driver.ours:
            expect_count(counters, "rx", "xdp_faults", 0)
            received = counters("rx", "packets")
            expect(received >= len(frames), f"{received} packets were received, of {len(frames)} and more")
        ping_sizes(rig, 0, 1500, 97)


@test(boots=(FULL,))
def xdp_abort(rig):
    """A program that fails: dropped, counted, traced."""
    event = "/sys/kernel/tracing/events/xdp/xdp_exception/enable"
    with attached(rig, "xdp_abort") as programs:
        counters = Counters(rig)
        rig.guest.run(f"echo > /sys/kernel/tracing/trace; echo 1 > {event}")
        frames = datagrams(rig, FEW_SIZES)
        send(rig, programs, frames)
        rig.guest.run(f"echo 0 > {event}")
        traced = int(rig.guest.output("grep -c 'xdp_exception.*ABORTED' /sys/kernel/tracing/trace; true"))
        expect(traced == len(frames), f"{len(frames)} faults, the tracepoint has told of {traced}")
        expect_count(counters, "rx", "xdp_drop", len(frames))
        if rig.driver.ours:
            expect_count(counters, "rx", "xdp_faults", len(frames))
        ping_sizes(rig, 0, 1500, 211)


@test(boots=(FULL, STRICT, BOUNCED))
def xdp_reflect(rig):
    """Datagrams that a program sends back are on the wire as it made them, and counted as received and as
    sent."""
    with attached(rig, "xdp_reflect") as programs:
        counters = Counters(rig)
        frames = datagrams(rig, SIZES)
        reflected(rig, programs, frames, [turned(frame) for frame in frames])
        expect_count(counters, "rx", "xdp_tx", len(frames))
        for direction in ("rx", "tx"):
            seen = counters(direction, "packets")
            expect(seen >= len(frames), f"{direction}_N_packets counts {seen} of {len(frames)} frames")
        ping_sizes(rig, 0, 1500, 97)


@test(boots=(FULL,))
def xdp_flood(rig):
    """While a flood is sent back, the stack gets its turn on the same queues; a burst takes few doorbells."""
    flood, burst = 20000, 64
    with attached(rig, "xdp_reflect") as programs:
        counters = Counters(rig)
        frames = [frame.hex() for frame in datagrams(rig, range(60, 68))]
        rig.model.do("flood", port=0, frames=frames, count=flood, burst=burst)
        ping_sizes(rig, 0, 1500, 97)
        deadline = time.monotonic() + FLOOD_TIMEOUT * rig.guest.slowness
        while rig.model.report()["gauges"]["flood.left"]:
            expect(time.monotonic() < deadline, f"a flood of {flood} frames took over {FLOOD_TIMEOUT} s")
            time.sleep(0.1)
        programs.wait(ACTED, flood)
        sent = counters("rx", "xdp_tx")
        if rig.driver.ours:
            lost = counters("rx", "xdp_faults")
            expect(sent + lost == flood, f"of {flood} frames {sent} were sent back, {lost} lost")
            rung = counters("tx", "doorbells")
            expect(sent > flood / 2 and rung * 8 < sent, f"{rung} doorbells for {sent} of {flood} frames")
        ping_sizes(rig, 0, 1500, 211)


@test(boots=(FULL,))
def xdp_reflect_tagged(rig):
    """The VLAN tag that the NIC took out of a datagram is in it again when it is sent back."""
    with attached(rig, "xdp_reflect") as programs:
        frames = [frame[:12] + bytes.fromhex("81000064") + frame[12:] for frame in datagrams(rig, FEW_SIZES)]
        reflected(rig, programs, frames, [turned(frame) for frame in frames])


@test(boots=(FULL, STRICT))
def xdp_adjust(rig):
    """Programs that make packets shorter and longer at either end, and send them back."""
    sizes = range(120, 1515 - CHANGE, 43)
    cases = {
        "xdp_shrink_head": lambda frame: frame[:14] + frame[14 + CHANGE :],
        "xdp_grow_head": lambda frame: frame[:14] + bytes(range(CHANGE)) + frame[14:],
        "xdp_shrink_tail": lambda frame: frame[:-CHANGE],
        "xdp_grow_tail": lambda frame: frame + bytes(CHANGE),
    }
    for program, change in cases.items():
        with attached(rig, program) as programs:
            frames = datagrams(rig, sizes)
            reflected(rig, programs, frames, [change(turned(frame)) for frame in frames])
            refused = programs.seen()[REFUSED]
            expect(refused == 0, f"{program}: {refused} packets could not be changed")


@test(boots=(FULL,))
def xdp_unwrap(rig):
    """A program takes a header out of packets that the stack gets, and tells the stack something about each."""
    with attached(rig, "xdp_unwrap") as programs:
        frames = datagrams(rig, FEW_SIZES)
        name = rig.interface
        rig.guest.run(
            f"tc qdisc add dev {name} clsact && tc filter add dev {name} ingress bpf direct-action"
            f" object-pinned {PINS}/programs/read_mark"
        )
        listener = rig.guest.start(
            "python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
            f' s.bind(("", {PORT})); s.settimeout({PATIENCE}); print("up", flush=True);'
            f" [print(s.recv(2048).hex()) for _ in range({len(frames)})]'"
        )
        rig.guest.run(f"until ss -uln | grep -q :{PORT}; do sleep 0.1; done")
        send(rig, programs, [frame[:12] + SHIM + frame[12:] for frame in frames])
        received = listener.result(60).check().stdout.split()[1:]
        rig.guest.run(f"tc qdisc delete dev {name} clsact")
        expect(sorted(received) == sorted(frame[42:].hex() for frame in frames), "datagrams came up changed")
        marked = programs.seen()[MARKED]
        expect(marked == len(frames), f"{marked} of {len(frames)} packets came up with their mark")


@contextlib.contextmanager
def pair(rig, programs):
    """Two virtual interfaces that are each other's wire. The second one runs a program, without which it
    takes no frames."""
    rig.guest.run(
        "ip link add v0 type veth peer name v1;"
        "sysctl -q net.ipv6.conf.v0.disable_ipv6=1 net.ipv6.conf.v1.disable_ipv6=1;"
        "ip link set v0 up && ip link set v1 up"
    )
    programs.attach("xdp_pass_too", "v1")
    try:
        yield
    finally:
        if rig.guest.alive():
            rig.guest.run("ip link delete v0")


def index_of(rig, name):
    return int(rig.guest.output(f"cat /sys/class/net/{name}/ifindex"))


# The stock driver fills its rings with buffers that are not of its page pool, and has the kernel give them
# back to that pool: it warns, and frames get lost.
# Two of the frames are not captured in most runs, and it is not known where they stay.
@test(long=True, drivers=OURS, boots=(FULL, STRICT))
def xdp_redirect(rig):
    """A program sends datagrams out of another interface, as they came."""
    with attached(rig, "xdp_to_port") as programs, pair(rig, programs):
        counters = Counters(rig)
        programs.point("ports", index_of(rig, "v0"))
        frames = datagrams(rig, FEW_SIZES)
        capture = rig.guest.start(
            f"tcpdump -i v1 --immediate-mode -Z root -c {len(frames)} -w /tmp/v1.pcap udp port {PORT} 2>/tmp/v1.log",
            timeout=120,
        )
        rig.guest.run("until grep -q 'listening on' /tmp/v1.log; do sleep 0.1; done")
        send(rig, programs, frames)
        # It ends when it has them all: a slow guest writes them down late.
        capture.result(120).check()
        file = rig.folder / "redirected.pcap"
        file.write_bytes(base64.b64decode(rig.guest.output("base64 -w0 /tmp/v1.pcap")))
        expect_frames(frames, list(wire.read_pcap(file)))
        expect_count(counters, "rx", "xdp_redirect", len(frames))
        ping_sizes(rig, 0, 1500, 211)


@test(boots=(FULL, STRICT, BOUNCED, WIDE))
def xdp_transmit(rig):
    """Frames that another interface's program redirects to the port are on the wire, whatever CPU they come
    from and however many queues the port has."""
    rig.ensure_up()
    programs = Programs(rig)
    name, queues = rig.interface, rig.channels()
    with pair(rig, programs):
        programs.point("ports", index_of(rig, name))
        programs.attach("xdp_to_port", "v1")
        acted = 0
        for count in sorted({1, max(1, queues // 2), queues}):
            if rig.channels() != count:
                rig.guest.run(f"ethtool -L {name} combined {count}")
            rig.wait_for_peer(name, rig.peer)
            for cpu in range(rig.guest.boot.cpus):
                counters = Counters(rig)
                frames = [turned(frame) for frame in datagrams(rig, FEW_SIZES)]
                acted += len(frames)
                capture = wire.Capture(rig.peer, rig.folder / "sent.pcap", f"udp port {PORT}")
                try:
                    rig.guest.run(
                        f"taskset -c {cpu} python3 {GUEST}/send_frames.py v0",
                        text="".join(f"{frame.hex()}\n" for frame in frames),
                    )
                    programs.wait(ACTED, acted)
                finally:
                    seen = capture.frames()
                expect_frames(frames, seen)
                expect_count(counters, "tx", "xdp_xmit", len(frames))


@test(boots=(FULL,))
def xdp_other_cpu(rig):
    """A program has another CPU take up all packets."""
    rig.ensure_up()
    programs = Programs(rig)
    programs.point("cpus", 512)
    programs.attach("xdp_to_cpu")
    try:
        ping_sizes(rig, 0, 1500, 37)
        stream(rig, rig.peer.v4)
        expect(programs.seen()[ACTED] > 100, "the program has seen no packet")
    finally:
        rig.guest.run(f"ip link set dev {rig.interface} xdpdrv off")


# As above.
@test(drivers=OURS, boots=(FULL,))
def xdp_socket(rig):
    """An AF_XDP socket in copy mode receives frames, and sends them back."""
    with attached(rig, "xdp_to_socket") as programs:
        name = rig.interface
        rig.guest.run(f"ethtool -X {name} equal 1")
        counters = Counters(rig)
        frames = datagrams(rig, SIZES)
        rig.guest.run("rm -f /tmp/af_xdp")
        echo = rig.guest.start(
            f"python3 {GUEST}/af_xdp.py {name} 0 {PINS}/maps/sockets {len(frames)} >/tmp/af_xdp"
        )
        rig.guest.run("for n in $(seq 100); do grep -q ready /tmp/af_xdp && break; sleep 0.1; done")
        reflected(rig, programs, frames, [turned(frame) for frame in frames])
        echo.result(60).check()
        said = rig.guest.output("cat /tmp/af_xdp").split()
        expect(said == ["ready", str(len(frames)), str(len(frames))], f"the socket's program said {said}")
        expect_count(counters, "rx", "xdp_redirect", len(frames))
        rig.guest.run(f"ethtool -X {name} default")


@test(boots=(FULL,))
def xdp_come_and_go(rig):
    """Programs are attached and detached under load."""
    rig.ensure_up()
    programs = Programs(rig)
    name = rig.interface
    with load(rig):
        for _ in range(8):
            programs.attach("xdp_pass")
            expect_load(rig)
            rig.guest.run(f"ip link set dev {name} xdpdrv off")
            expect_load(rig)
    expect(programs.seen()[PASSED] > 0, "the program has seen no packet")
    rig.wait_for_peer(name, rig.peer)
    ping_sizes(rig, 0, 1500, 211)


@test(drivers=OURS, boots=(FULL, WIDE))
def xdp_swap(rig):
    """One program takes the place of another under load: the link stays, and packets flow."""
    with attached(rig, "xdp_pass") as programs:
        name = rig.interface
        changes = f"/sys/class/net/{name}/carrier_changes"
        with load(rig):
            expect_load(rig, 100)
            before = rig.guest.output(f"cat {changes}")
            for _ in range(20):
                for program in ("xdp_pass_too", "xdp_pass"):
                    programs.attach(program)
                expect_load(rig)
            expect(rig.guest.output(f"cat {changes}") == before, "the link went away")
        seen = programs.seen()
        expect(seen[PASSED] and seen[MARKED], f"not both programs have seen packets: {seen}")
        ping_sizes(rig, 0, 1500, 211)


@test(boots=(FULL,))
def xdp_mtu(rig):
    """A program does not go with an MTU that takes more than one buffer, whichever comes first; who asks is
    told why."""
    rig.ensure_up()
    programs = Programs(rig)
    name = rig.interface
    details = json.loads(rig.guest.output(f"ip -d -j link show dev {name}"))[0]
    try:
        rig.peer.set_mtu(3800)
        rig.guest.run(f"ip link set {name} mtu 3800")
        refused = programs.attach("xdp_pass", check=False)
        expect(refused.rc != 0, "a program was attached at an MTU of 3800")
        expect("mtu" in refused.stderr.lower(), f"the reason was {refused.stderr!r}")
        if not rig.driver.ours:
            # It says so in the log as well.
            rig.log.reported("too large")
        expect(mode(rig) is None, "a refused program is attached")
        rig.wait_for_peer(name, rig.peer)
        rig.guest.run(f"ip link set {name} mtu 3400")
        programs.attach("xdp_pass")
        rig.wait_for_peer(name, rig.peer)
        rig.guest.run(f"python3 {GUEST}/ping_sizes.py {rig.peer.v4} 3390 3400")
        refused = rig.guest.run(f"ip link set {name} mtu 3800", check=False)
        expect(refused.rc != 0, "with a program the MTU was set to 3800")
        now = rig.links()["mtu"]
        expect(now == 3400, f"a refused MTU left {now}")
        rig.guest.run(f"ip link set dev {name} xdpdrv off && ip link set {name} mtu 3800")
        restored = json.loads(rig.guest.output(f"ip -d -j link show dev {name}"))[0]["max_mtu"]
        expect(restored == details["max_mtu"], f"the largest MTU was {details['max_mtu']}, and is {restored}")
    finally:
        rig.guest.run(f"ip link set dev {name} xdpdrv off", check=False)
        rig.bring_up()


@test(boots=(FULL,))
def xdp_stays(rig):
    """A program stays through down and up and other rings and queues; attached to a port that is down it runs
    when that is up."""
    with attached(rig, "xdp_reflect") as programs:
        name, queues, rings = rig.interface, rig.channels(), rig.ethtool("-g")
        steps = (
            f"ip link set {name} down && ip link set {name} up",
            f"ethtool -L {name} combined 1",
            f"ethtool -L {name} combined {queues}",
            f"ethtool -G {name} rx {rings['rx'] // 2}",
            f"ethtool -G {name} rx {rings['rx']}",
            f"ip link set {name} mtu 1400",
            f"ip link set {name} mtu 1500",
            f"ip link set {name} down && ip link set dev {name} xdpdrv off && ip link set {name} up",
            f"ip link set {name} down && ip -force link set dev {name} xdpdrv pinned {PINS}/programs/xdp_reflect"
            f" && ip link set {name} up",
        )
        acted = 0
        for step in steps:
            rig.guest.run(step)
            rig.guest.run(f"ip address replace {rig.peer.guest_v6}/64 dev {name} nodad")
            rig.wait_for_peer(name, rig.peer)
            if mode(rig) is None:
                continue
            largest = rig.links()["mtu"] + 14
            frames = datagrams(rig, [size for size in FEW_SIZES if size <= largest])
            capture = wire.Capture(rig.peer, rig.folder / "stays.pcap", f"udp port {PORT}")
            wire.send_frames(rig.peer, frames)
            acted += len(frames)
            programs.wait(ACTED, acted)
            expect_frames([turned(frame) for frame in frames], capture.frames())


@test(boots=(FULL, STRICT))
def xdp_unload(rig):
    """The driver is unloaded with a program attached, under load of packets that it sends back."""
    rig.ensure_up()
    programs = Programs(rig)
    programs.attach("xdp_reflect")
    rig.wait_for_peer(rig.interface, rig.peer)
    frames = datagrams(rig, SIZES)
    for _ in range(3):
        wire.send_frames(rig.peer, frames[:BURST])
    rig.unload()
    expect(not rig.interfaces(), f"the interfaces {rig.interfaces()} are left")
    rig.guest.run(f"rm -rf {PINS}")
    if rig.dma_in_use() is not None:
        rig.expect_no_dma()
    rig.ensure_up()
    ping_sizes(rig, 0, 1500, 211)
