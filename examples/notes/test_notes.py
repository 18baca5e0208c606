import tempfile
import unittest
from pathlib import Path

import notes


class NotesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "notes.txt"

    def tearDown(self):
        self.folder.cleanup()

    def test_a_new_file_has_no_notes(self):
        self.assertEqual(notes.load(self.path), [])

    def test_notes_are_kept_in_order(self):
        notes.add("one", self.path)
        notes.add("two ", self.path)
        self.assertEqual(notes.load(self.path), ["one", "two"])


if __name__ == "__main__":
    unittest.main()
