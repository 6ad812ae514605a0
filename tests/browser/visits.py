"""A visit to a page: the page, and what went wrong while it was open."""

from pathlib import Path
from urllib.parse import urlsplit

SITE = Path(__file__).resolve().parents[2] / "_build" / "html"

# MathJax sets formulas after the page has loaded, fonts may still move things then,
# and the theme fades from one colour to the next.
SETTLED = """async () => {
  if (window.MathJax?.startup?.promise) await MathJax.startup.promise;
  await document.fonts.ready;
  const fades = document.getAnimations().filter(fade => fade instanceof CSSTransition);
  await Promise.allSettled(fades.map(fade => fade.finished));
}"""


class Visit:
    """One page in a browser, which is listened to from before it opens."""

    def __init__(self, page, address):
        self.page = page
        self.address = address
        self.console_errors: list[str] = []
        self.page_errors: list[str] = []
        self.failed_requests: list[str] = []
        self.foreign_requests: list[str] = []
        page.on("console", self._hear_console)
        page.on("pageerror", lambda error: self.page_errors.append(str(error)))
        page.on("request", lambda request: self._hear_request(request.url))
        page.on("websocket", lambda socket: self._hear_request(socket.url))
        page.on("requestfailed", self._hear_failure)
        page.on("response", self._hear_response)

    def open(self):
        """Go to the address and wait until nothing on the page moves any more."""
        self.page.goto(self.address)
        self.settle()

    def settle(self):
        """Wait until formulas and fonts are there and colours stay."""
        self.page.evaluate(SETTLED)

    def switch_to(self, theme):
        """Make the system prefer light or dark, which the page follows."""
        self.page.emulate_media(color_scheme=theme)
        self.page.locator(f"html[data-theme={theme}]").wait_for()
        self.settle()

    @property
    def problems(self):
        """Return all that went wrong so far, one line each."""
        return [
            *(f"console error: {text}" for text in self.console_errors),
            *(f"page error: {text}" for text in self.page_errors),
            *(f"failed request: {text}" for text in self.failed_requests),
            *(f"request to another host: {text}" for text in self.foreign_requests),
        ]

    def _is_foreign(self, url):
        parts = urlsplit(url)
        in_page = parts.scheme in ("about", "blob", "data")
        return not in_page and parts.netloc != urlsplit(self.address).netloc

    def _hear_console(self, message):
        if message.type == "error":
            place = message.location
            self.console_errors.append(
                f"{message.text} ({place['url']}, line {place['lineNumber'] + 1})"
            )

    def _hear_request(self, url):
        if self._is_foreign(url):
            self.foreign_requests.append(url)

    def _hear_failure(self, request):
        if not self._is_foreign(request.url):
            self.failed_requests.append(f"{request.url} ({request.failure})")

    def _hear_response(self, response):
        if response.status >= 400:
            self.failed_requests.append(f"{response.url} ({response.status})")
