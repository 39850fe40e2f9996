"""Parse the HTML of results into elements, tables and text."""

from html.parser import HTMLParser

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</td></table></title><style>*{display:none}</style>",
    "half of a pair \udcff and a NUL \0 and \x1b[31m",
    "{{ 7 * 7 }} $x_1$ ]]> --> " + "x" * 10_000,
]
_VOID = {"meta", "link"}


class Page(HTMLParser):
    """A page or a part of one. Its tags must balance."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.marked: list[bool] = []  # by row of td
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def table(self, *heading: str) -> list[list[str]]:
        """Return the rows of the only table whose heading starts like this."""
        [table] = [each for each in self.tables if each[0][: len(heading)] == list(heading)]
        return table[1:]

    def handle_starttag(self, tag, attrs):
        if tag not in _VOID:
            self.open.append(tag)
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            if tag == "td" and len(self.tables[-1][-1]) == 1:
                self.marked.append("background" in (dict(attrs).get("style") or ""))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
