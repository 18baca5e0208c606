#!/usr/bin/env python3
"""Draws docs/images/chat.svg: a real chat in a real sandbox, whose model is a script.

usage: scripts/chat-picture.py [PODBAY] [SVG]

It needs tmux, an engine with Podbay's image, and nothing from the network. The chat works on a copy
of examples/notes; PODBAY_HOME and HOME are folders that are removed afterwards.
"""

import html
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS, ROWS = 88, 20
PATIENCE = 60
TASK = "add a command that prints how many notes there are"

EDIT = {
    "path": "notes.py",
    "old_string": '    elif arguments == ["list"]:',
    "new_string": '    elif arguments == ["count"]:\n        print(len(load()))\n    elif arguments == ["list"]:',
}
# What the model answers, request by request.
TURNS = [
    ("I read the program first.", [("read_file", {"path": "notes.py"})]),
    ("", [("edit_file", EDIT), ("bash", {"command": "python3 test_notes.py"})]),
    (
        "`notes.py count` prints **how many notes** there are, and the tests pass:\n\n"
        "```python\nelif arguments == [\"count\"]:\n    print(len(load()))\n```\n",
        [],
    ),
]


class Model(http.server.BaseHTTPRequestHandler):
    """A model server of OpenAI's API that says what the script has."""

    protocol_version = "HTTP/1.1"
    n_asked = 0

    def log_message(self, *_):
        pass

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        models = {"object": "list", "data": [{"id": "qwen3-coder", "meta": {"n_ctx_train": 32768}}]}
        body = models if self.path.endswith("/models") else {"status": "ok"}
        self.answer("application/json", json.dumps(body).encode())

    def do_POST(self):
        size = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(size)
        if not self.path.endswith("/chat/completions"):
            return self.answer("application/json", b'{"tokens":[]}')
        text, calls = TURNS[min(Model.n_asked, len(TURNS) - 1)]
        Model.n_asked += 1
        delta = {"role": "assistant", "content": text}
        if calls:
            delta["tool_calls"] = [
                {
                    "index": at,
                    "id": f"call_{Model.n_asked}_{at}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for at, (name, arguments) in enumerate(calls)
            ]
        usage = {
            "prompt_tokens": size // 4,
            "completion_tokens": 60,
            "prompt_tokens_details": {"cached_tokens": size // 5 if Model.n_asked > 1 else 0},
        }
        base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "qwen3-coder"}
        end = "tool_calls" if calls else "stop"
        chunks = [
            {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            {**base, "choices": [], "usage": usage},
        ]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.answer("text/event-stream", body.encode())


def tmux(*words):
    done = subprocess.run(
        ["tmux", "-L", f"podbay-picture-{os.getpid()}", *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def sees(words):
    """Waits until the screen shows this."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        shown = tmux("capture-pane", "-p")
        if words in shown:
            return
        time.sleep(0.2)
    sys.exit(f"`{words}` is not on the screen:\n{shown}")


def record(podbay):
    """Has the chat, and returns its last screen with its colours."""
    home = pathlib.Path(tempfile.mkdtemp(prefix="podbay-picture-"))
    project = home / "notes"
    shutil.copytree(ROOT / "examples/notes", project)
    subprocess.run(["git", "init", "-q", "-b", "main", project], check=True)
    if os.getuid() == 0:
        # The sandbox works as the project's owner.
        for path in [project, *project.rglob("*")]:
            os.chown(path, 1000, 1000)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [
        "env", "-u", "NO_COLOR", f"HOME={home}", f"PODBAY_HOME={home}/state", "COLORTERM=truecolor",
        podbay, "chat", "-C", str(project), "--mode", "auto",
        "--endpoint", f"http://127.0.0.1:{server.server_port}/v1", "--model", "qwen3-coder",
    ]
    try:
        tmux("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), *command)
        sees("lists keys and commands")
        tmux("send-keys", "-l", TASK)
        tmux("send-keys", "Enter")
        sees("requests, ")
        time.sleep(0.5)
        return tmux("capture-pane", "-p", "-e")
    finally:
        subprocess.run(
            ["tmux", "-L", f"podbay-picture-{os.getpid()}", "kill-server"], capture_output=True
        )
        time.sleep(3)
        shutil.rmtree(home, ignore_errors=True)


# The sixteen colours of a dark terminal.
COLOURS = (
    "#1c1f24 #ff7b72 #7ee787 #e3b341 #79c0ff #d2a8ff #76d9e6 #d0d7de "
    "#6e7681 #ffa198 #a5f0b0 #f2cc60 #a5d6ff #e2c5ff #b3f0ff #ffffff"
).split()
GROUND, INK = "#0d1117", "#d0d7de"
WIDTH, HEIGHT, MARGIN = 8.4, 18, 16


def styled(style, codes):
    """Returns the style after a sequence of SGR codes."""
    style = dict(style)
    codes = iter([int(code or 0) for code in codes.split(";")])
    for code in codes:
        if code in (38, 48):
            # One of the sixteen, of 256 or of all; only the first are drawn as they are.
            kind, number = next(codes, 5), next(codes, 7)
            if kind == 5 and code == 38 and number < 16:
                style["fill"] = COLOURS[number]
        elif code == 0:
            style = {}
        elif code in (1, 2, 3, 4, 7):
            style[code] = True
        elif code == 22:
            style.pop(1, None)
            style.pop(2, None)
        elif code in (23, 24, 27):
            style.pop(code - 20, None)
        elif 30 <= code <= 37:
            style["fill"] = COLOURS[code - 30]
        elif 90 <= code <= 97:
            style["fill"] = COLOURS[code - 82]
        elif code == 39:
            style.pop("fill", None)
    return style


def svg(screen):
    """Returns the screen as a picture."""
    lines = screen.rstrip("\n").split("\n")
    width = COLUMNS * WIDTH + 2 * MARGIN
    height = len(lines) * HEIGHT + 2 * MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'role="img" aria-label="A chat with Podbay in a terminal">',
        f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>',
        '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14" '
        f'fill="{INK}" xml:space="preserve">',
    ]
    style = {}
    for row, line in enumerate(lines):
        column = 0
        for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
            codes = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
            if codes:
                style = styled(style, codes[1])
                continue
            piece = re.sub(r"\x1b.", "", piece)
            if piece.strip() or 7 in style:
                x, y = MARGIN + column * WIDTH, MARGIN + row * HEIGHT + 14
                looks = f' fill="{style["fill"]}"' if "fill" in style else ""
                looks += ' font-weight="bold"' if 1 in style else ""
                looks += ' opacity="0.6"' if 2 in style else ""
                looks += ' font-style="italic"' if 3 in style else ""
                out.append(
                    f'<text x="{x:g}" y="{y:g}" textLength="{len(piece) * WIDTH:g}"{looks}>'
                    f"{html.escape(piece)}</text>"
                )
            column += len(piece)
    out.append("</g>\n</svg>\n")
    return "\n".join(out)


def main():
    podbay = sys.argv[1] if len(sys.argv) > 1 else shutil.which("podbay")
    if not podbay:
        sys.exit("podbay is not on the PATH: scripts/chat-picture.py target/release/podbay")
    target = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs/images/chat.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(svg(record(os.path.abspath(podbay))), encoding="utf-8")
    print(f"{target} is drawn")


if __name__ == "__main__":
    main()
