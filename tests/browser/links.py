"""Where the pages of a site lead, read from its files."""

from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

HERE = "http://site.invalid/"
ADDRESSES = {"href", "src", "data", "poster"}


@dataclass
class Parsed(HTMLParser):
    """The ids of a page and the addresses it names, as (tag, address)."""

    ids: set[str] = field(default_factory=set)
    addresses: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.ids.add(value)
            elif name in ADDRESSES and value is not None:
                self.addresses.append((tag, value))


@cache
def parsed(file: Path) -> Parsed:
    """Return what a page contains; each file is read once."""
    page = Parsed()
    page.feed(file.read_text(encoding="utf-8"))
    page.close()
    return page


def dead_links(site: Path, name: str) -> list[str]:
    """Return what this page names and the site does not have, with the reason."""
    complaints = []
    for tag, address in parsed(site / name).addresses:
        target = urlsplit(urljoin(HERE + name, address))
        if target.netloc != urlsplit(HERE).netloc:
            continue  # another host, mail, or data in the page itself
        file = site / unquote(target.path).lstrip("/")
        if target.path.endswith("/"):
            file /= "index.html"
        fragment = unquote(target.fragment)
        if not file.is_file():
            complaints.append(f"<{tag}> {address}: no such file")
        elif fragment and is_page(site, file) and fragment not in parsed(file).ids:
            complaints.append(f"<{tag}> {address}: no such place in the page")
    return complaints


def is_page(site: Path, file: Path) -> bool:
    """Tell whether a file shows its places: the apps in lite/ make theirs later."""
    return file.suffix == ".html" and file.relative_to(site).parts[0] != "lite"
