"""Looks at a page for whoever cannot see it, or uses it by keys, or on a small phone."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_TABBABLE = """() => [...document.querySelectorAll(
    'button, input, select, textarea, summary, a[href], [tabindex]:not([tabindex="-1"])')].filter((each) =>
  each.tabIndex >= 0 && !each.disabled && each.checkVisibility({visibilityProperty: true, opacityProperty: true})
  && each.getClientRects().length && (each.type !== 'radio' || each.checked))"""
_FOCUSED = """() => {
  const now = document.activeElement, style = getComputedStyle(now);
  window.reached.add(now);
  const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
  return now === document.body || seen ? '' : now.outerHTML.slice(0, 200); }"""
_BEYOND = """() => [...document.querySelectorAll('#steps .title')].filter((title) => {
  const words = document.createRange();
  words.selectNodeContents(title);
  const [inner, outer] = [words, title.parentElement].map((each) => each.getBoundingClientRect());
  return inner.left < outer.left + 1 || inner.right > outer.right - 1;
}).map((title) => title.textContent)"""
_MOVING = """() => document.getAnimations().filter((each) => each.playState === 'running').map((each) =>
  `moves: ${each.animationName} of ${each.effect.target.outerHTML.slice(0, 120)}`)"""


def findings(page: Page) -> list[str]:
    """What axe-core finds wrong on the page as it is, in the light and in the dark theme, of any severity.

    Motion is reduced meanwhile: a colour on its way to another is none that can be judged. A list that has just been
    left takes a moment to close.
    """
    page.wait_for_timeout(300)
    page.emulate_media(reduced_motion="reduce")
    found: list[str] = page.evaluate(_MOVING)
    for dark in (False, True):
        page.evaluate("(dark) => document.body.classList.toggle('dark', dark)", dark)
        for rule in Axe().run(page).response["violations"]:
            found += [f"{rule['id']} ({'dark' if dark else 'light'}): {node['html'][:200]}" for node in rule["nodes"]]
    page.evaluate("() => document.body.classList.remove('dark')")
    page.emulate_media(reduced_motion="no-preference")
    return found


def by_keys(page: Page) -> list[str]:
    """Controls that the tab key does not reach from the page's beginning, or reaches without a mark to be seen."""
    page.evaluate(f"""() => {{ window.reached = new Set(); window.expected = ({_TABBABLE})();
      document.activeElement.blur(); document.body.tabIndex = -1; document.body.focus(); }}""")
    unmarked = []
    for _ in range(3 * page.evaluate("window.expected.length") + 5):  # what scrolls, and each radio button, too
        page.keyboard.press("Tab")
        unmarked.append(page.evaluate(_FOCUSED))
        if page.evaluate("window.expected.every((each) => !each.isConnected || window.reached.has(each))"):
            break
    missed = page.evaluate(
        "window.expected.filter((each) => each.isConnected && !window.reached.has(each))"
        ".map((each) => each.outerHTML.slice(0, 200))"
    )
    return [f"no mark: {each}" for each in unmarked if each] + [f"not reached: {each}" for each in missed]


def beyond_their_boxes(page: Page) -> list[str]:
    """Words of the step bar that reach over the edge of their button."""
    found: list[str] = page.evaluate(_BEYOND)
    return found
