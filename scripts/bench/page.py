"""Writes docs/BENCHMARKS.md and its plots from a report."""

import datetime
import itertools
import math
import os
import platform
import subprocess

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
COLOURS = ["#2563a8", "#b8561b", "#3a7d44", "#7a4b9d"]
LEFT, TOP, WIDTH, HEIGHT = 70, 46, 470, 270


def write(report):
    """Writes the page, and one SVG for each plot. Sections that were not measured this time stay, with the day of their measurement."""
    os.makedirs(os.path.join(DOCS, "benchmarks"), exist_ok=True)
    page = os.path.join(DOCS, "BENCHMARKS.md")
    sections, plots = read(page)
    today = f"Measured on {datetime.date.today()}: {machine(report.ic)}"
    for section, rows in itertools.groupby(report.rows, key=lambda row: row.section):
        title = section[0].upper() + section[1:]
        before = figures(sections.get(title, []))
        sections[title] = [today, "", *table(list(rows), section, before)]
    for plot in report.plots:
        with open(os.path.join(DOCS, "benchmarks", f"{plot.slug}.svg"), "w") as out:
            out.write(svg(plot))
        plots[plot.slug] = [f"![{plot.title}](benchmarks/{plot.slug}.svg)", "", *numbers(plot), ""]
    lines = [HEAD]
    for title, body in sections.items():
        lines += [f"## {title}", "", *body]
    if plots:
        lines += [f"## {GROWS}", "", GROWTH, "", *itertools.chain(*plots.values())]
    with open(page, "w") as out:
        out.write("\n".join(lines).rstrip() + "\n")


def read(page):
    """The lines of the current page: its sections by their titles, and its plots by their names."""
    sections, plots, into = {}, {}, []
    with open(page) as lines:
        for line in lines.read().splitlines():
            if line == f"## {GROWS}":
                into = []
            elif line.startswith("## "):
                into = sections.setdefault(line[3:], [])
            elif line.startswith("![") and "(benchmarks/" in line:
                into = plots.setdefault(line.split("(benchmarks/")[1].split(".svg")[0], [])
                into.append(line)
            else:
                into.append(line)
    for body in sections.values():
        body[:] = body[1:] if body[:1] == [""] else body
    return sections, plots


def figures(body):
    """The figures of a section's table, by the names of its rows."""
    found, column = {}, None
    for line in body:
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if "figure" in cells:
            column = cells.index("figure")
        elif column is not None and len(cells) > column:
            found[cells[0]] = cells[column]
    return found


HEAD = """# Benchmarks

`bash scripts/bench.sh --write` writes this page; run it to get your own figures. Every figure is of whole processes, from start to
exit, with a warm file cache and durable writes. Both sides of a line run in turn (A B A B ...), so that a machine whose speed drifts
slows both. The ratio is the median of the ratios of the pairs. Brackets have the range from the first quartile to the third, or of all
samples if there are three or fewer. A bound is what the design asks for; a line that misses its bound says so. The column "before" has
the previous figure of the page.
"""

GROWS = "How cost grows"

GROWTH = "Both axes are logarithmic: a flat line does not grow, a diagonal one grows with the size."


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def machine(ic):
    """One paragraph: the machine and the versions."""
    with open("/proc/cpuinfo") as cpuinfo:
        names = [line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kind = output("stat", "-f", "-c", "%T", os.environ.get("TMPDIR", "/var/tmp"))
    versions = [output(ic, "--version"), output("git", "--version"), "sqlite3 " + output("sqlite3", "--version").split()[0],
                output("rustc", "--version").split(" (")[0], f"Python {platform.python_version()}"]
    return (f"{len(names)} x {names[0] if names else platform.machine()}, {memory:.0f} GiB, "
            f"{platform.system()} {platform.release()}, {kind}; {', '.join(versions)}.")


def table(rows, section, before):
    against = section.split(" against ")[1] if " against " in section else None
    other = f" {against} |".replace(" |", ", ms |") if against else ""
    lines = [f"| | ic, ms |{other} figure | before | bound | |", "|---|---|---|---|---|---|" + ("---|" if against else "")]
    for row in rows:
        name = row.name.replace("|", "\\|")
        other = f" {row.theirs} |" if against else ""
        verdict = f"**{row.verdict}**" if row.verdict == "OVER" else row.verdict
        limit = row.limit.replace("<=", "≤").replace(">=", "≥")
        lines.append(f"| {name} | {row.mine} |{other} {row.figure} | {before.get(name, '')} | {limit} | {verdict} |")
    return [*lines, ""]


def numbers(plot):
    sizes = sorted({x for curve in plot.curves.values() for x in curve})
    lines = [f"| {plot.across} | " + " | ".join(f"{name}, ms" for name in plot.curves) + " |",
             "|---|" + "---|" * len(plot.curves)]
    for x in sizes:
        cells = [f"{1000 * curve[x]:,.1f}" if x in curve else "" for curve in plot.curves.values()]
        lines.append(f"| {x:,} | " + " | ".join(cells) + " |")
    return lines


def duration(seconds):
    return f"{1000 * seconds:g} ms" if seconds < 1 else f"{seconds:g} s"


def svg(plot):
    """A plot with both axes logarithmic, a line and a legend for each curve."""
    xs = sorted({x for curve in plot.curves.values() for x in curve})
    ys = [y for curve in plot.curves.values() for y in curve.values()]
    low_x, high_x = math.log10(xs[0]), math.log10(xs[-1])
    low_y, high_y = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    high_y = max(high_y, low_y + 1)

    def across(x):
        return LEFT + WIDTH * (math.log10(x) - low_x) / (high_x - low_x)

    def up(y):
        return TOP + HEIGHT * (1 - (math.log10(y) - low_y) / (high_y - low_y))

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 370" font-family="sans-serif" font-size="12">',
             '<rect width="720" height="370" fill="#ffffff"/>',
             f'<text x="{LEFT}" y="24" font-size="15" fill="#222222">{plot.title}</text>']
    for power in range(low_y, high_y + 1):
        y = up(10 ** power)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>'
                     f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555555">{duration(10 ** power)}</text>')
    for x in xs:
        parts.append(f'<text x="{across(x):.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle" fill="#555555">{x:,}</text>')
    parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 42}" text-anchor="middle" fill="#222222">{plot.across}</text>')
    for index, (name, curve) in enumerate(plot.curves.items()):
        colour = COLOURS[index % len(COLOURS)]
        points = [(across(x), up(y)) for x, y in sorted(curve.items())]
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
                     + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        key = TOP + 14 + 22 * index
        parts.append(f'<line x1="{LEFT + WIDTH + 20}" x2="{LEFT + WIDTH + 44}" y1="{key}" y2="{key}" stroke="{colour}" '
                     f'stroke-width="2"/><text x="{LEFT + WIDTH + 52}" y="{key + 4}" fill="#222222">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
