// Tells a reader when Python cannot start here, and what can be done instead.
// tools/lite.py adds it to the notebook app; data-pyodide is the address it asks.
// A classic script, not a module: a page opened from the disk runs no modules.
(function () {
  "use strict";

  const PATIENCE = 15000; // milliseconds; after that we speak up, and go on waiting
  const pyodide = document.currentScript.dataset.pyodide;
  const path = new URLSearchParams(location.search).get("path") || "";

  const style = `
    #offline-note { background: #fff4d6; border-bottom: 2px solid #8a5a00;
      box-sizing: border-box; color: #1f1f1f; font: 16px/1.5 system-ui, sans-serif;
      left: 0; max-height: 60vh; overflow: auto; padding: 0.75rem 1rem;
      position: fixed; right: 0; top: 0; z-index: 2000; }
    #offline-note p { margin: 0 auto; max-width: 60rem; overflow-wrap: anywhere; }
    #offline-note p + p { margin-top: 0.5rem; }
    #offline-note a { color: #0b5394; text-decoration: underline; }
    #offline-note code { white-space: nowrap; }
    #offline-note a:focus-visible { outline: 3px solid currentColor; }
    #offline-note ~ #main { top: var(--offline-note-height) !important; }
    @media (prefers-color-scheme: dark) {
      #offline-note { background: #3a2d0c; border-color: #e0b34d; color: #f5f5f5; }
      #offline-note a { color: #9ecbff; }
    }
    @media print { #offline-note { position: static; } }`;

  function element(name, text, attributes = {}) {
    const result = document.createElement(name);
    result.textContent = text;
    for (const [key, value] of Object.entries(attributes)) {
      result.setAttribute(key, value);
    }
    return result;
  }

  function paragraph(...parts) {
    const result = document.createElement("p");
    result.append(...parts);
    return result;
  }

  function downloadLink(text) {
    const name = path.split("/").pop();
    return element("a", text, { href: `../../_sources/book/${path}`, download: name });
  }

  function retryLink() {
    // Without the fragment: a link to a place on the same page would not load it again.
    return element("a", "Try again", { href: location.href.split("#")[0] });
  }

  // The notebook moves down by as much as the note is high.
  function makeRoom(note) {
    const height = note.isConnected ? note.offsetHeight : 0;
    document.body.style.setProperty("--offline-note-height", `${height}px`);
    window.dispatchEvent(new Event("resize")); // at which the app fits itself in
  }

  function show(paragraphs) {
    const note = element("div", "", { id: "offline-note", role: "alert" });
    document.head.append(element("style", style));
    document.body.prepend(note);
    note.append(...paragraphs); // filled once it is there, so that it is read out
    // Called now, when the note wraps differently, and when it goes away.
    new ResizeObserver(() => makeRoom(note)).observe(note);
    return note;
  }

  function showUnreachable() {
    return show([
      paragraph(
        element("strong", "Python cannot start in this browser. "),
        `It would come from ${pyodide}, which did not answer: you may be offline, or ` +
          "the address is blocked.",
      ),
      paragraph(
        "You can still read this notebook. Or ",
        downloadLink("download it"),
        " and run it on your machine: ",
        element("code", "make lab"),
        " in the book’s folder opens all notebooks. ",
        retryLink(),
      ),
    ]);
  }

  function showFromDisk() {
    return show([
      paragraph(
        element("strong", "Python cannot start on a page opened from the disk. "),
        "Run ",
        element("code", "make serve"),
        " in the book’s folder and open the address that it prints. Or ",
        downloadLink("download this notebook"),
        " and run it with ",
        element("code", "make lab"),
        ".",
      ),
    ]);
  }

  async function watch() {
    let note = null;
    const timer = setTimeout(() => (note = showUnreachable()), PATIENCE);
    try {
      const answer = await fetch(pyodide);
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      await answer.text();
      note?.remove(); // it was only slow
    } catch {
      note ??= showUnreachable();
    } finally {
      clearTimeout(timer);
    }
  }

  if (location.protocol === "file:") showFromDisk();
  else watch();
})();
