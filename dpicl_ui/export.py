"""Step 5: the demo set as a file, in the formats of other tools, as a prompt and as code, and its certificate."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.frame.files import SAVED, Download, download, sink
from dpicl_ui.frame.handlers import on
from dpicl_ui.frame.services import Services, Session, StepStatus
from dpicl_ui.frame.tree import Tree, Updates, el, fact, notice, panel
from dpicl_ui.generate.state import GenerateState
from mechanisms.demos.demo_set import FORMAT, DemoSet, to_text
from mechanisms.demos.signature import signed
from mechanisms.errors import UsageError
from mechanisms.evaluation.remote_reader import answer_tokens
from mechanisms.exports.certificate_page import label_of_facts
from mechanisms.exports.chat import conversation, response_format
from mechanisms.exports.export_format import ExportExtras, ReleasedFile, format_named, format_names, on_lines, packed
from mechanisms.inference.prompts import QueryWords
from mechanisms.runs.plan import guarantee


def certificate(demo_set: DemoSet) -> list[Tree]:
    """A certificate as elements: the claim, its basis, and remarks for the reader."""
    held = demo_set.certificate
    private = [] if held.private else notice(f"Not private: {held.reason}.", "bad")
    parameters = (fact(name.replace("_", " "), _value(value)) for name, value in held.parameters.items())
    return [
        *private,
        el("p.guarantee", guarantee(held.claim, held.by_user)),
        *(
            each
            for section in label_of_facts(demo_set)
            for each in (el("h3", section.title), el("dl.facts.two", *(fact(*one) for one in section.facts)))
        ),
        el("details", el("summary", "All parameters"), el("dl.facts.two", *parameters)),
    ]


def _value(value: object) -> str:
    if isinstance(value, dict):
        inner = {name: f"({_value(each)})" if isinstance(each, dict) else _value(each) for name, each in value.items()}
        return ", ".join(f"{name}: {words}" for name, words in inner.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


DEMO_SET = "demo-set"
WITHOUT_DEMONSTRATIONS = ("certificate",)
"""Formats without the demonstrations: after such a download the next run still replaces the set."""
_FILE_NAME = "demonstrations.dpicl.json"
_PURPOSE = (
    f"One JSON file ({FORMAT}): demonstrations, prompt, certificate. Of your data it holds only what is public and "
    "what epsilon paid for. Anyone can load it in step 4 and test it, without your data."
)


def explained(shape: str, made: DemoSet | None) -> list[Tree]:
    """The purpose of a format, and why it cannot hold this set, or what it loses."""
    if shape == DEMO_SET:
        return [el("p.muted", _PURPOSE)]
    chosen = format_named(shape)
    problem = made and (chosen.refusal(made) or chosen.caution(made))
    remarks = (chosen.reading(made), chosen.advice(made, ExportExtras())) if made else ()
    said = (el("p.muted", each) for each in (chosen.purpose, *remarks) if each)
    return [*said, *notice(problem or "", "warn")]


def saved(shape: str, made: DemoSet) -> Download:
    text = to_text(signed(made))
    if shape == DEMO_SET:
        return Download(_FILE_NAME, "application/json", text.encode())
    chosen = format_named(shape)
    return Download(chosen.file_name, chosen.media_type, packed(chosen.write(ReleasedFile.read(text))))


_MESSAGES, _PROMPT = format_named("messages"), format_named("prompt")
_CLIENT = """import {imports}
messages, text = {messages!r}, {text!r}
client = openai.OpenAI({address})
asked = {{"model": "YOUR MODEL", "messages": [*messages, {{"role": "user", "content": text}}]}}
answer = client.chat.completions.create(**asked, {form})
print({read})
"""
_SAID = "answer.choices[0].message.content"
_PIPELINE = """from transformers import pipeline
prompt, text = {prompt!r}, {text!r}
generate = pipeline("text-generation", model="YOUR MODEL")
message = prompt + text + {cue!r}
answer = generate(message, max_new_tokens={tokens}, do_sample=False, return_full_text=False)
print(answer[0]["generated_text"])
"""
_DIRECTIONS = """import json, pathlib
from sentence_transformers import SentenceTransformer
vectors = json.loads(pathlib.Path({file!r}).read_text("utf-8"))["directions"]["vectors"]
places = SentenceTransformer({embedder!r}).encode([{text!r}], normalize_embeddings=True)
[best] = (places @ list(zip(*vectors.values()))).argmax(axis=1)
print([*vectors][best])
"""


def used(made: DemoSet) -> tuple[str, ...]:
    """The messages, code that sends them to vLLM and to OpenAI, the prompt, and code that gives it to transformers.

    Texts in the code are Python literals.

    Raises:
        UsageError: a prompt cannot hold the set.
    """
    released = ReleasedFile.read(to_text(signed(made)))
    [messages], [prompt] = (each.write(released).values() for each in (_MESSAGES, _PROMPT))
    words, text = QueryWords(made.prompt, on_lines(made)), f"[your {made.template.text.lower()}]"
    said = conversation(made, made.demonstrations)
    chooses = len(made.labels) > 1
    choice = {"structured_outputs": {"choice": list(made.labels)}}
    vllm = _CLIENT.format(
        imports="openai",
        messages=said,
        text=text,
        address='base_url="http://127.0.0.1:8000/v1", api_key="YOUR KEY"',
        form=f"temperature=0, extra_body={choice!r}" if chooses else "temperature=0",
        read=_SAID,
    )
    of_openai = _CLIENT.format(
        imports="json, openai" if chooses else "openai",
        messages=said,
        text=text,
        address='api_key="YOUR KEY"',
        form=", ".join(f"{name}={value!r}" for name, value in response_format(made).items()) or "temperature=0",
        read=f'json.loads({_SAID})["label"]' if chooses else _SAID,
    )
    pipeline = _PIPELINE.format(
        prompt=f"{words.shown}{words.field} ",
        text=text,
        cue=f"\n{words.cue}",
        tokens=answer_tokens(made.labels),
    )
    return messages, vllm, of_openai, prompt, pipeline


def by_directions(made: DemoSet) -> str:
    """Python code that classifies by a set's directions, which it reads from the file; empty if the set has none."""
    if made.directions is None:
        return ""
    blank = f"[your {made.template.text.lower()}]"
    return _DIRECTIONS.format(file=_FILE_NAME, embedder=made.directions.embedder, text=blank)


_USE = (
    "Each piece contains this set. Copy it with a click, and put in your own text (in the last message), model, "
    "address and key. The servers are told to answer with a label only."
)
_USES = (
    ("Messages of a chat", "use-messages"),
    ("Python, a vLLM server", "use-vllm"),
    ("Python, OpenAI", "use-openai"),
    ("The prompt", "use-prompt"),
    ("Python, transformers", "use-transformers"),
)
_BY_DIRECTIONS = "Python, by directions"
_READS = "It needs no language model, and reads the demo set that you download here."


def status(session: Session) -> StepStatus:
    if session.of(GenerateState).made is None:
        return StepStatus(
            "There is nothing to export yet: write demonstrations in step 3. To look at a file that was exported "
            "before, load it in step 4."
        )
    return StepStatus()


class ExportStep:
    """Components and handlers of step 5."""

    def __init__(self, app: Services) -> None:
        self._app = app
        every = [("Demo set (JSON)", DEMO_SET), *((format_named(name).title, name) for name in format_names())]
        with app.bar.panel(5):
            with gr.Row(elem_classes="split"):
                with gr.Column(scale=7, min_width=300, elem_classes="card public", elem_id="use-it"):
                    panel(el("h3", "Use it"), el("p.muted", _USE))
                    size: dict[str, Any] = {"lines": 6, "max_lines": 6, "interactive": False, "elem_classes": "code"}
                    size["buttons"] = ["copy"]
                    self.used = [gr.Textbox(label=each, elem_id=name, **size) for each, name in _USES]
                    self.use_notice = panel(elem_id="use-notice")
                    self.by_directions = gr.Textbox(
                        label=_BY_DIRECTIONS, info=_READS, visible=False, elem_id="use-directions", **size
                    )
                with gr.Column(scale=4, min_width=300, elem_classes="card public"):
                    panel(el("h3", "Download"))
                    self.shape = gr.Dropdown(every, value=DEMO_SET, label="Format", elem_id="export-format")
                    self.purpose = panel(*explained(DEMO_SET, None), elem_id="export-purpose")
                    self.save = gr.Button("Download", variant="primary", elem_id="download")
                    self.notice = panel(elem_id="export-notice")
                    self.sink = sink()
            with gr.Column(elem_classes="card public"):
                panel(el("div.card-head", el("h2", "Privacy certificate"), el("span.tag.public", "Releasable")))
                self.certificate = panel(elem_id="certificate")
        on(self.save.click, self._save, self.shape, [self.sink, self.notice, self.certificate], self.notice)
        on(self.shape.input, self._explain, self.shape, [self.purpose, self.notice], self.notice)

    def follow(self, ended: gr.events.Dependency) -> None:
        use = [*self.used, self.use_notice, self.by_directions]
        on(ended.then, self._show, None, [self.certificate, self.notice, self.shape, self.purpose, *use], self.notice)

    def _marked(self, request: gr.Request) -> DemoSet | None:
        """The set with every disclosure that was recorded since it was written."""
        made = self._app.session(request).of(GenerateState).made
        return made.demo_set.with_disclosures(self._app.ledger(request).rows.disclosures(made.data)) if made else None

    def _show(self, request: gr.Request) -> Updates:
        made = self._marked(request)
        codes, said = ("",) * len(_USES), list[Tree]()
        directions = by_directions(made) if made else ""
        if made is not None and (problem := _MESSAGES.refusal(made)) is not None:
            said = notice(problem, "warn")
        elif made is not None:
            codes, reading = used(made), _MESSAGES.reading(made)
            said = [*notice(_MESSAGES.caution(made) or "", "warn"), *([el("p.muted", reading)] if reading else [])]
        return {
            self.certificate: certificate(made) if made else [],
            self.notice: [],
            self.shape: DEMO_SET,
            self.purpose: explained(DEMO_SET, made),
            **dict(zip(self.used, codes, strict=True)),
            self.use_notice: said,
            self.by_directions: gr.Textbox(directions, visible=bool(directions)),
        }

    def _explain(self, shape: str, request: gr.Request) -> Updates:
        return {self.purpose: explained(shape, self._marked(request)), self.notice: []}

    def _save(self, shape: str, request: gr.Request) -> Updates:
        session, made = self._app.session(request), self._marked(request)
        if made is None:
            raise UsageError("There is nothing to export yet: write demonstrations in step 3.")
        file = saved(shape, made)
        if shape not in WITHOUT_DEMONSTRATIONS:
            session.of(GenerateState).take()
        return {
            self.sink: download(file),
            self.certificate: certificate(made),
            self.notice: notice(SAVED, "good"),
        }
