"""What must be true of a page: each check returns its complaints, one text each."""

from functools import cache

from axe_playwright_python.sync_playwright import Axe

COLOUR_RULES = ("color-contrast", "link-in-text-block")
GRAVE = ("serious", "critical")

# Sphinx marks formulas with the class math; MathJax puts a container into each.
# A macro that MathJax does not know is set in red.
FORMULAS = r"""() => {
  const complaints = [];
  const tell = (what, node) => complaints.push(`${what}: ${node.textContent.trim()}`);
  for (const formula of document.querySelectorAll(".math:not(.math *)"))
    if (!formula.querySelector("mjx-container")) tell("formula not set", formula);
  for (const error of document.querySelectorAll("mjx-merror"))
    complaints.push(`formula in error: ${error.dataset.mjxError ?? error.outerHTML}`);
  for (const red of document.querySelectorAll("mjx-mtext[style*='color: red']"))
    complaints.push(`unknown macro in: ${red.closest("mjx-container").innerHTML}`);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    const ignored = "code, pre, script, style, noscript, mjx-container, .math";
    if (text.parentElement.closest(ignored)) continue;
    if (/\\\(|\\\[|\$\$|\\begin\{/.test(text.data)) tell("raw formula", text);
  }
  return complaints.map(complaint => complaint.slice(0, 300));
}"""

# What sticks out and cannot be scrolled inside something smaller.
OVERFLOW = """() => {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return [];
  const scrolls = (node) => node !== root && node !== document.body
    && getComputedStyle(node).overflowX !== "visible";
  const inside = (node) => node && (scrolls(node) || inside(node.parentElement));
  const culprits = [...document.body.querySelectorAll("*")]
    .filter(node => node.getBoundingClientRect().right > root.clientWidth + 1)
    .filter(node => !inside(node.parentElement))
    .slice(0, 5)
    .map(node => node.cloneNode(false).outerHTML.slice(0, 120));
  const sizes = `${root.scrollWidth} px wide in ${root.clientWidth} px`;
  return [`${sizes}: ${culprits.join(", ")}`];
}"""

# axe needs half a minute for a page with twenty thousand elements. Most are parts of
# formulas, which have the colour of the text around, or words of code, where one of
# each kind is enough. Boxes keep their sizes.
THIN_OUT = """() => {
  const seen = new Set();
  const looksSeen = (span) => {
    const {color, backgroundColor, fontSize, fontWeight} = getComputedStyle(span);
    const around = span.closest("[class*=highlight]")?.parentElement.className;
    const style = [color, backgroundColor, fontSize, fontWeight];
    const key = [span.className, ...style, around].join("|");
    return seen.has(key) || !seen.add(key);
  };
  const repeated = [...document.querySelectorAll("pre span:not(:has(*))")]
    .filter(looksSeen);
  const formulas = [...document.querySelectorAll("mjx-math, mjx-container math")]
    .map(formula => [formula, formula.getBoundingClientRect()]);
  for (const [formula, box] of formulas) {
    formula.replaceChildren();
    formula.style.display = "inline-block";
    formula.style.width = `${box.width}px`;
    formula.style.height = `${box.height}px`;
  }
  for (const span of repeated) span.replaceWith(...span.childNodes);
  document.body.normalize();
}"""


def formula_complaints(page):
    """Formulas that MathJax did not set, or could not."""
    return page.evaluate(FORMULAS)


def overflow_complaints(page):
    """What makes the page wider than the window."""
    return page.evaluate(OVERFLOW)


@cache
def axe():
    return Axe()


def axe_complaints(page, *, only=(), without=()):
    """Return what axe-core finds serious or critical, by all rules, some, or others."""
    # Preloading style sheets would ask the server for files by wrong addresses.
    options = {"resultTypes": ["violations"], "preload": False}
    options["rules"] = {rule: {"enabled": False} for rule in without}
    if only:
        options["runOnly"] = list(only)
    page.evaluate(THIN_OUT)
    violations = axe().run(page, options=options).response["violations"]
    return [
        f"{violation['id']} ({violation['impact']}): {node['html'][:160]}\n"
        f"    {node['failureSummary']}".replace("\n  ", "\n      ")
        for violation in violations
        if violation["impact"] in GRAVE
        for node in violation["nodes"]
    ]
