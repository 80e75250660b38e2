# SPDX-License-Identifier: GPL-2.0
"""What was measured, as JSON, as a page, and as a table on the terminal."""

import html
import io
import json
import platform
import subprocess
import time

from ..common import REPOSITORY

PROFILE_ROWS = 40
GROUPS = {
    "packets": "Instructions of the guest per packet",
    "modules": "Instructions per packet, by module",
    "tcp": "Instructions of the guest, TCP",
    "device": "What the device saw, per packet",
    "traffic": "Throughput and latency",
    "growth, queues": "Growth over the number of queues",
    "growth, ring size": "Growth over the size of the rings",
}
METHOD = """
<p>Instructions are counted by a plugin of QEMU's emulator, block by block, in a guest with one processor
whose clock follows its instructions; what a waiting processor executes, and programs, are left out. "Own" is
the driver's module, for ours also ring_common and every Rust function and Rust helper of the kernel. Sent
packets are those of pktgen, received ones are UDP floods that the model makes; each interrupt is for a fixed
number of packets. Rounds of string instructions are avoided (no ERMS, no FSRM). Throughput is that of an
emulated machine: compare it within a row, it says nothing about silicon. Values are medians; the spread is
largest less smallest, by the median, half of which stands after it; what was measured once has none. Ratios
are medians of pairs. Documentation/performance.rst says more.</p>
"""
STYLE = """
body { font-family: sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }
table { border-collapse: collapse; margin: 1em 0 }
td, th { border: 1px solid #ccc; padding: .2em .6em; text-align: right }
td:first-child, th:first-child { text-align: left }
.miss { background: #fdd } .met { background: #dfd }
svg { max-width: 100%; height: auto }
"""


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def revisions(settings):
    """What all of it was measured with."""
    git = ("git", "-C", str(REPOSITORY))
    commit = output(*git, "rev-parse", "HEAD")
    if output(*git, "status", "--porcelain"):
        commit += ", with changes that are not committed"
    return {
        "kernel and stock driver": settings.release,
        "our drivers and models": commit,
        "QEMU": output(settings.qemu, "--version").splitlines()[0],
        "rustc": output("rustc", "--version"),
        "accelerator of throughput runs": " ".join(settings.accelerator),
        "machine": f"{platform.processor() or platform.machine()}, Linux {platform.release()}",
        "date": time.strftime("%Y-%m-%d"),
    }


def number(value):
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def cells(results, figure):
    """Text of both drivers' columns and of the ratio's."""
    texts = []
    for driver in (results.stock, results.ours):
        summary = results.summary(figure, driver)
        if summary is None:
            texts.append("-")
        elif summary.spread is None:
            texts.append(number(summary.median))
        else:
            texts.append(f"{number(summary.median)} ±{summary.spread / 2:.1%}")
    ratio = results.ratio(figure)
    return [*texts, "-" if ratio is None else f"{ratio:.2f}"]


def label(figure):
    place = "" if figure.x is None else f" = {figure.x}"
    return f"{figure.name}{place}, {figure.unit}"


def terminal(results):
    """Prints the short table and the goals."""
    columns = (results.stock.module, results.ours.module, "ratio")
    print(f"\n  {results.vendor:<62}" + "".join(f"{name:>16}" for name in columns))
    for figure in results.figures("packets", "tcp", "traffic"):
        print(f"  {label(figure):<62}" + "".join(f"{text:>16}" for text in cells(results, figure)))
    for figure, ratio, met in results.goals():
        print(f"  {'met   ' if met else 'MISSED'} {label(figure)}: {ratio:.2f} of the stock driver's, goal <= 1.00")


def table(results, group):
    rows = []
    goals = {figure: met for figure, _, met in results.goals()}
    for figure in results.figures(group):
        kind = {True: "met", False: "miss"}.get(goals.get(figure), "")
        row = "".join(f"<td>{html.escape(text)}</td>" for text in cells(results, figure))
        rows.append(f'<tr class="{kind}"><td>{html.escape(label(figure))}</td>{row}</tr>')
    heads = ("", results.stock.module, results.ours.module, "ratio")
    return f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{''.join(rows)}</table>"


def svg(figure):
    """A matplotlib figure as markup for a page."""
    from matplotlib import pyplot

    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight")
    pyplot.close(figure)
    return text.getvalue()[text.getvalue().index("<svg") :]


def bars(results, group):
    """Both drivers' medians of each unit of a group, side by side, with the span of all values."""
    from matplotlib import pyplot

    drivers = (results.stock, results.ours)
    every = [f for f in results.figures(group) if all(results.summary(f, d) for d in drivers)]
    units = list(dict.fromkeys(figure.unit for figure in every))
    if not units:
        return ""
    plot, axes = pyplot.subplots(1, len(units), figsize=(6 * len(units), 5), squeeze=False)
    for axis, unit in zip(axes[0], units):
        figures = [figure for figure in every if figure.unit == unit]
        for place, driver in enumerate(drivers):
            summaries = [results.summary(figure, driver) for figure in figures]
            medians = [summary.median for summary in summaries]
            below = [max(s.median - min(s.values), 0) for s in summaries]
            above = [max(max(s.values) - s.median, 0) for s in summaries]
            places = [n + 0.4 * place for n in range(len(figures))]
            axis.bar(places, medians, 0.4, yerr=(below, above), capsize=2, label=driver.module)
        names = [figure.name for figure in figures]
        axis.set_xticks([n + 0.2 for n in range(len(figures))], names, rotation=60, ha="right", fontsize=8)
        axis.set_title(unit)
        axis.legend()
    return svg(plot)


def lines(results, group):
    """Growth: one diagram per name and unit."""
    from matplotlib import pyplot

    kinds = list(dict.fromkeys((f.name, f.unit) for f in results.figures(group)))
    if not kinds:
        return ""
    width = 3
    height = -(-len(kinds) // width)
    plot, axes = pyplot.subplots(height, width, figsize=(5 * width, 3.5 * height), squeeze=False)
    for axis, kind in zip(axes.flat, kinds):
        for driver in (results.stock, results.ours):
            points = [
                (figure.x, results.summary(figure, driver).median)
                for figure in results.figures(group)
                if (figure.name, figure.unit) == kind and results.summary(figure, driver)
            ]
            if points:
                axis.plot(*zip(*points), marker="o", label=driver.module)
        axis.set_title(kind[0], fontsize=9)
        axis.set_ylabel(kind[1], fontsize=8)
        axis.set_ylim(bottom=0)
        axis.set_xscale("log", base=2)
        axis.legend(fontsize=8)
    for axis in list(axes.flat)[len(kinds) :]:
        axis.set_axis_off()
    plot.tight_layout()
    return svg(plot)


def demangled(names):
    """Names of functions as their sources have them."""
    return subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True
    ).stdout.splitlines()


def profile(results, load):
    parts = []
    for driver in (results.stock, results.ours):
        rows = results.profiles[load].get(driver.module, [])[:PROFILE_ROWS]
        if not rows:
            continue
        names = demangled([row[3] for row in rows])
        body = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{module}</td><td>{insns:.1f}</td><td>{calls:.3f}</td></tr>"
            for (insns, calls, module, _), name in zip(rows, names)
        )
        head = "<tr><th>function</th><th>module</th><th>instructions</th><th>calls</th></tr>"
        parts.append(
            f"<details><summary>{load}, {driver.module}, per packet</summary><table>{head}{body}</table></details>"
        )
    return "".join(parts)


def page(meta, every):
    parts = [f"<!doctype html><meta charset=utf-8><title>ring-nics bench</title><style>{STYLE}</style>"]
    parts.append("<h1>ring-nics bench</h1><table>")
    parts += [f"<tr><td>{key}</td><td>{html.escape(value)}</td></tr>" for key, value in meta.items()]
    parts.append(f"</table><h2>Method</h2>{METHOD}")
    for results in every:
        parts.append(f"<h2>{results.vendor}</h2>")
        parts += [f'<p class="miss">Not measured: {html.escape(failure)}</p>' for failure in results.failures]
        goals = "".join(
            f'<tr class="{"met" if met else "miss"}"><td>{html.escape(label(figure))}</td>'
            f"<td>{ratio:.3f}</td><td>{'met' if met else 'missed'}</td></tr>"
            for figure, ratio, met in results.goals()
        )
        parts.append(f"<h3>Goals: at most the stock driver's</h3><table>{goals}</table>")
        for group, title in GROUPS.items():
            if not results.figures(group):
                continue
            draw = lines if group.startswith("growth") else bars
            plot = "" if group in ("device", "modules") else draw(results, group)
            parts.append(f"<h3>{title}</h3>{plot}{table(results, group)}")
        parts.append("<h3>Where the instructions are</h3>")
        parts += [profile(results, load) for load in results.profiles]
    return "\n".join(parts) + "\n"


def write(folder, meta, every):
    data = {"revisions": meta, "vendors": {results.vendor: results.json() for results in every}}
    (folder / "bench.json").write_text(json.dumps(data, indent=1) + "\n")
    import matplotlib

    matplotlib.use("svg")
    (folder / "bench.html").write_text(page(meta, every))
    for results in every:
        terminal(results)
    print("\n  " + "\n  ".join(f"{key}: {value}" for key, value in meta.items()))
