#!/usr/bin/env python3
"""Makes docs/images/undo.svg: scripts/demo.sh as a terminal shows it, as a picture that moves.

    IC_BIN=path/to/ic python3 scripts/picture.py

The session is real: the script runs on a terminal of its own, and the picture has what it wrote. Only the pauses are made up,
so that each part can be read. Needs nothing but Python.
"""

import html
import os
import pty
import re
import sys
from pathlib import Path

COLUMNS, ROWS = 104, 26
LINE_HEIGHT, MARGIN, BAR = 18, 16, 30
# About how wide a letter is: the fonts named below differ by a few hundredths.
LETTER = 7.8
COLOURS = {'31': '#ff7b72', '32': '#7ee787', '33': '#e3b341', '34': '#79c0ff', '35': '#d2a8ff', '36': '#76e3ea'}
# Seconds: before the first part, for a command, for each line of what it prints, and before it begins again.
BEGIN, COMMAND, LINE, END = 0.5, 1.3, 0.16, 5.0


def recorded(root: Path) -> list[str]:
    """The lines that the demonstration writes on a terminal, from its prompts on."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM='xterm-256color')
        os.chdir(root)
        os.execvp('bash', ['bash', '-c', f'stty cols {COLUMNS} rows {ROWS}; exec bash scripts/demo.sh'])
    written = b''
    while True:
        try:
            data = os.read(terminal, 65536)
        # Linux answers so, and other systems with nothing, once the program has ended.
        except OSError:
            data = b''
        if not data:
            break
        written += data
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    text = written.decode().replace('\r\n', '\n')
    if status != 0:
        sys.exit(f'scripts/picture.py: the demonstration failed:\n{text}')
    lines = text.rstrip('\n').split('\n')
    return lines[next(at for at, line in enumerate(lines) if 'Three prompts' in line):]


def drawn(line: str, style: set[str]) -> str:
    """A line as parts of SVG text, with its colours. `style` has what is in force before it, and after it."""
    parts = []
    for part in re.split(r'(\x1b\[[0-9;]*m)', line):
        if part.startswith('\x1b['):
            for code in part[2:-1].split(';'):
                style.clear() if code in ('', '0') else style.add(code)
        elif part:
            colour = next((COLOURS[code] for code in style if code in COLOURS), None)
            marks = (' class="bold"' if '1' in style else '') + (' class="dim"' if '2' in style else '')
            marks += f' fill="{colour}"' if colour else ''
            parts.append(f'<tspan{marks}>{html.escape(part)}</tspan>' if marks else html.escape(part))
    return ''.join(parts)


def picture(lines: list[str]) -> str:
    """An SVG that shows the lines one part after the other, and scrolls as a terminal does."""
    # When how many lines are shown.
    now, steps = BEGIN, [(0.0, 0)]
    for number, line in enumerate(lines, 1):
        bare = re.sub(r'\x1b\[[0-9;]*m', '', line)
        now += COMMAND if bare.startswith(('$ ', '> ')) else LINE
        steps.append((now, number))
    whole = now + END
    width, height = round(COLUMNS * LETTER + 2 * MARGIN), ROWS * LINE_HEIGHT + 2 * MARGIN + BAR
    # Lines that are still to come are under a cover, which moves down. The text moves up once the window is full.
    covers = ''.join(f'{at / whole * 100:.2f}%{{transform:translateY({shown * LINE_HEIGHT}px)}}' for at, shown in steps)
    scrolls = ''.join(
        f'{at / whole * 100:.2f}%{{transform:translateY({min(0, ROWS - shown) * LINE_HEIGHT}px)}}' for at, shown in steps)
    style: set[str] = set()
    text = ''.join(
        f'<text y="{(number + 1) * LINE_HEIGHT - 4}">{drawn(line, style)}</text>\n'
        for number, line in enumerate(lines) if line)
    bottom = len(lines) * LINE_HEIGHT
    last = min(0, ROWS - len(lines)) * LINE_HEIGHT
    return f'''<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">
<title>A terminal: three prompts of a coding agent, the list of them, and ic undo, which takes out the last and keeps what the user wrote</title>
<style>
text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#c9d1d9;white-space:pre}}
.bold{{font-weight:bold}}.dim{{opacity:.65}}
.lines{{transform:translateY({last}px);animation:lines {whole:.1f}s step-end infinite}}
.cover{{transform:translateY({bottom}px);animation:cover {whole:.1f}s step-end infinite}}
@keyframes lines{{{scrolls}}}
@keyframes cover{{{covers}}}
@media (prefers-reduced-motion:reduce){{.lines,.cover{{animation:none}}}}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>
<circle cx="20" cy="16" r="5" fill="#ff5f57"/><circle cx="38" cy="16" r="5" fill="#febc2e"/><circle cx="56" cy="16" r="5" fill="#28c840"/>
<svg x="{MARGIN}" y="{BAR + MARGIN // 2}" width="{width - 2 * MARGIN}" height="{ROWS * LINE_HEIGHT}"><g class="lines">
{text}<rect class="cover" width="{width}" height="{bottom}" fill="#0d1117"/></g></svg>
</svg>
'''


if __name__ == '__main__':
    top = Path(__file__).resolve().parent.parent
    (top / 'docs/images/undo.svg').write_text(picture(recorded(top)), encoding='utf-8')
