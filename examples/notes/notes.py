"""Keeps notes in a text file, one a line."""

import sys
from pathlib import Path

FILE = Path(__file__).with_name("notes.txt")


def load(path=FILE):
    if not path.exists():
        return []
    return [line for line in path.read_text().splitlines() if line.strip()]


def add(text, path=FILE):
    notes = load(path)
    notes.append(text.strip())
    path.write_text("\n".join(notes) + "\n")
    return len(notes)


def main(arguments):
    if arguments[:1] == ["add"] and len(arguments) == 2:
        print(f"note {add(arguments[1])} added")
    elif arguments == ["list"]:
        for number, note in enumerate(load(), start=1):
            print(f"{number}. {note}")
    else:
        print("usage: notes.py add TEXT | list")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
