"""The pictures of the README and of the tutorial: `make pictures` walks through the app as the tutorial does.

The data are the bundled, fictional messages of a clinic. Noise is drawn anew each time: the tutorial quotes what its
pictures show.
"""

from __future__ import annotations

import tempfile
from io import BytesIO
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import FloatRect, Locator, Page

from mechanisms.inference.models.listed import EMBEDDED
from tests.ui.visit import ROOT, SLOW, Journey, press, step, visiting

PICTURES = ROOT / "docs/pictures"
QUESTION = "My knee hurts when I climb stairs."
PACE, FRAMES, HEIGHT = 6, 40, 460
"""Of the animation: frames a second, one a token, and pixels."""
MARGIN = 12
_EDGES: tuple[tuple[Literal["x", "y"], Literal["width", "height"]], ...] = (("x", "width"), ("y", "height"))


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, visiting(Journey(Path(folder), ""), DPICL_MODEL=EMBEDDED) as page:
        recorded(page)
        page.emulate_media(reduced_motion="reduce")
        choose_data(page)
        choose_privacy(page)
        vote(page)
        look_back(page)
        test(page)
        step(page, 5)
        whole(page, "export")
        step(page, 6)
        page.wait_for_selector("#budget-runs tbody tr")
        shot(page, "budget", page.locator(".masthead"), page.locator("#step-6"))


def choose_data(page: Page) -> None:
    page.wait_for_selector("#model-status .good", timeout=SLOW)
    page.click("button:has-text('Clinic messages by department')")
    page.wait_for_selector("#data-preview table")
    page.click("#unit-column input")  # the tutorial says why: its figures are of single rows
    page.get_by_role("option", name="every row stands for itself").click()
    shot(page, "data", page.locator(".masthead"), card(page, "#data-preview"))
    page.wait_for_selector("#draft-preview .demo >> nth=3", timeout=SLOW)
    page.check("#declared-public input")  # what is changed after it withdraws it
    shot(page, "public", card(page, "#text-column"), card(page, "#declared-public"))
    press(page, "#confirm-data", "#step-2.current")


def choose_privacy(page: Page) -> None:
    page.wait_for_selector("#outcome .guarantee", timeout=SLOW)
    page.wait_for_selector("#noise .picture-span", timeout=SLOW)
    shot(page, "privacy", page.locator("#steps"), card(page, "#outcome"))
    page.click("#accept-privacy")
    page.wait_for_selector("#step-3.current")


def vote(page: Page) -> None:
    """The run in stages, as it is proposed."""
    page.click("#generate")
    page.wait_for_selector("#run-notice .notice", timeout=SLOW)
    page.wait_for_selector("#go-export")


def look_back(page: Page) -> None:
    """The first vote again, and the end of the run."""
    page.focus("#replay .replay-range")
    page.keyboard.press("Home")
    while not page.inner_text("#replay .replay-where").startswith("Vote"):
        page.get_by_role("button", name="One step forward").click()
    shot(page, "votes", page.locator("#run-stages"), page.locator("#votes"))
    page.focus("#replay .replay-range")
    page.keyboard.press("End")
    dark(page, True)
    whole(page, "run-dark")
    dark(page, False)


def test(page: Page) -> None:
    step(page, 4)
    page.fill("#query textarea", QUESTION)
    page.click("#read-by label:has-text('The model')")  # where directions read better, they are chosen
    press(page, "#ask", "#answer .arm:nth-child(3)")
    page.click("#bundled-test")
    page.wait_for_selector("#test-notice .notice.good")
    press(page, "#measure", "#cancel-test:enabled, #scores .score:nth-child(3)")
    page.wait_for_selector("#steps .stepper.done:has-text('Test')", timeout=SLOW)
    shot(page, "test", page.locator("#query"), page.locator("#scores"))


def recorded(page: Page) -> None:
    """The recorded run of the first page as an animation: a frame for each token."""
    page.wait_for_selector("#welcome-live .bar-row", timeout=SLOW)
    clip, said = around(page, page.locator("#welcome-live"), page.locator("#welcome-live")), ""
    frames: list[Image.Image] = []
    clip["height"] = HEIGHT
    while len(frames) < FRAMES:
        if (told := page.inner_text("#welcome-live")) != said:
            said = told
            frames.append(Image.open(BytesIO(page.screenshot(clip=clip))).convert("RGB"))
        page.wait_for_timeout(50)
    animation(frames)


def animation(frames: list[Image.Image]) -> None:
    """A frame for each token; the last one stands a while before it begins anew."""
    stood = [1000 // PACE] * (len(frames) - 1) + [2500]
    target = PICTURES / "tokens.webp"
    frames[0].save(target, save_all=True, append_images=frames[1:], duration=stood, loop=0, quality=60, method=4)


def dark(page: Page, on: bool) -> None:
    page.evaluate("(on) => document.body.classList.toggle('dark', on)", on)


def whole(page: Page, name: str) -> None:
    """The page as it is, without its foot."""
    shot(page, name, page.locator(".masthead"), page.locator(".step.current"))


def shot(page: Page, name: str, first: Locator, last: Locator | None = None) -> None:
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(500)
    picture = page.screenshot(full_page=True, clip=around(page, first, last or first))
    Image.open(BytesIO(picture)).convert("RGB").save(PICTURES / f"{name}.webp", lossless=True, method=6)


def card(page: Page, inside: str) -> Locator:
    """The card around something."""
    return page.locator(".card", has=page.locator(inside)).last


def around(page: Page, first: Locator, last: Locator) -> FloatRect:
    """What two things span on the page, with a margin."""
    page.evaluate("scrollTo(0, 0)")
    one, other = first.bounding_box(), last.bounding_box()
    assert one is not None
    assert other is not None
    left, top = (max(0.0, min(one[side], other[side]) - MARGIN) for side in ("x", "y"))
    right, bottom = (max(each[side] + each[size] for each in (one, other)) + MARGIN for side, size in _EDGES)
    return {"x": left, "y": top, "width": right - left, "height": bottom - top}


if __name__ == "__main__":
    main()
