"""The table of cases; what stands in their lines is in `commands.py`."""

from __future__ import annotations

from typing import Any

from tests.baselines.commands import (
    ACCOUNT,
    AFTER,
    ALONE,
    ANSWERED,
    EPSILON,
    FORMATS,
    KEYWORDS,
    LEDGER,
    OWN,
    PLANNED,
    PTA,
    READING,
    RECORDS,
    REPLAY,
    ROLES,
    SCORING,
    SUBSETS,
    TOKEN_STAGES,
    USERS,
    Case,
    Cut,
    Edit,
    asking,
    command,
    run,
    staged,
    writing,
)
from tests.baselines.data import BLUE, RED

QUESTION = "lost card since monday please help"
PUBLIC = {"mechanism": "public", "journal": None}
NOT_PRIVATE = {"mechanism": "non-private", "journal": None}

MECHANISMS = (
    run("gaussian", {}),
    run("gaussian-per-token", {"scheme": "per-token"}),
    run("gaussian-disjoint", {"scheme": "disjoint"}),
    run("gaussian-drawn", {"temperature": 0.5, "top-p": 0.8}),
    run("gaussian-pta", PTA),
    run("noisy-max", {"mechanism": "noisy-max"}),
    run("noisy-max-per-token-pta", {"mechanism": "noisy-max", "scheme": "per-token"}, PTA),
    run("adadpsyn", {"mechanism": "adadpsyn", "refinements": 2}),
    run("blended-logits-per-token", {"mechanism": "blended-logits", "scheme": "per-token"}),
    run("blended-logits-disjoint", {"mechanism": "blended-logits", "scheme": "disjoint"}),
    run("difference-clipping", {"mechanism": "difference-clipping"}),
    run("svt-public", {"mechanism": "svt-public", "epsilon": 4}),
    run("svt-public-users-pta", {"mechanism": "svt-public", "scheme": "disjoint", "epsilon": 8}, USERS, PTA),
    run("public", PUBLIC),
    run("non-private", NOT_PRIVATE),
    run("non-private-pta", NOT_PRIVATE, PTA, {"pta-top-p": 0.9, "base": None, "no-base": True}),
)
UNITS_AND_SIZES = (
    run("subsets", SUBSETS),
    run("subsets-per-token", SUBSETS, {"scheme": "per-token"}),
    run("subsets-noisy-max-disjoint", SUBSETS, {"mechanism": "noisy-max", "scheme": "disjoint"}),
    run("users", USERS),
    run("users-disjoint", USERS, {"scheme": "disjoint"}),
    run("users-blended-logits", USERS, {"mechanism": "blended-logits"}),
    run("sizes-declared", {"sizes": f"Red={RED + 50},Blue={BLUE + 50}"}),
    run("sizes-measured", {"sizes": None, "count-epsilon": 0.25}),
    run("sizes-measured-users", {"sizes": None, "count-epsilon": 0.25}, USERS),
    run("labels-renamed", {"labels": "Warm,Cold", "label-names": "Red=Warm,Blue=Cold", "drop-duplicates": True}),
)
FORMS = (
    Case(
        "best-of",
        (writing("rows.csv", {"best-of": 2, "shots-per-label": 1}), *AFTER, REPLAY),
    ),
    Case(
        "records",
        (
            writing("records.csv", RECORDS),
            "account --from made.demos.json --json",
            LEDGER,
            "export made.demos.json --format records --out again.jsonl --json",
            "export made.demos.json --format schema --out again.json --json",
        ),
    ),
    run(
        "records-per-token-subsets", RECORDS, SUBSETS, {"scheme": "per-token", "out": "demos.json"}, file="records.csv"
    ),
    run("outputs", ANSWERED, file="answered.csv"),
    run("outputs-users", ANSWERED, USERS, {"scheme": "disjoint"}, file="answered.csv"),
    run("outputs-by-the-model", ANSWERED | {"answers": "model", "output-tokens": None}, file="answered.csv"),
    Case(
        "texts-alone",
        (
            writing("texts.csv", ALONE),
            *AFTER,
            "query demos.json 'lost card' --model toy-words --json",
            "evaluate demos.json --test test.csv --text-column text --label-column '' --model toy-words --json",
        ),
    ),
)
BOTH = {"recipe": "both", "shares": "write=.4,vote=.2,calibrate=.2,choose=.1,score=.1"}
RECIPES = (
    staged("vote-roles", ROLES),
    staged("vote-epsilon", EPSILON),
    staged("vote-rounds-labels", EPSILON, {"rounds": 2, "weighing": "labels", "sets": 2}),
    staged("vote-no-score", ROLES, {"shares": "vote=.5,calibrate=.3,choose=.2", "score": "none"}),
    staged("vote-roles-users", ROLES, USERS, {"sizes": None, "count-epsilon": 0.5, "epsilon": 3}),
    staged("both-roles", ROLES, BOTH),
    staged(
        "both-epsilon-users",
        EPSILON,
        USERS,
        BOTH | {"mechanism": "noisy-max"},
    ),
    staged("tokens-in-stages", TOKEN_STAGES),
    staged("tokens-in-stages-disjoint", TOKEN_STAGES, {"split": "epsilon", "scheme": "disjoint", "weighing": "labels"}),
)

RESUMED = {"journal": None, "resume": "run.jsonl"}


def resumed(name: str, session: int, *options: dict[str, Any]) -> Case:
    """A run that breaks down on the way, and goes on; asked for with other options, it does not."""
    steps = (
        Cut(writing("rows.csv", *options), session),
        LEDGER,
        writing("rows.csv", *options, RESUMED, {"tokens": 5}),
        writing("rows.csv", *options, RESUMED),
        *AFTER,
        REPLAY,
    )
    return Case(name, steps)


RESUMES = (
    resumed("resumed", 8, {"model": "toy-alone", "sizes": None, "count-epsilon": 0.25, "scheme": "per-token"}),
    resumed("resumed-side-by-side", 4, {"scheme": "per-token"}),
    resumed("resumed-while-writing", 6, {"best-of": None, "model": "toy-alone"}, ROLES, BOTH),
    resumed("resumed-while-judging", 25, {"best-of": None}, ROLES, BOTH),
    Case("replayed", (writing("rows.csv"), "replay run.jsonl", REPLAY)),
)
USES = (
    Case(
        "answers",
        (
            asking(QUESTION),
            asking("why was my account charged twice", json=None),
            asking(QUESTION, queries=10),
            asking(QUESTION, queries=10, **{"new-reservation": True}),
            LEDGER,
        ),
    ),
    Case("answers-tested", (asking("", test="test.csv", limit=6), LEDGER)),
    Case("answers-poisson", (asking(QUESTION, retrieval="poisson", size=600), LEDGER)),
    Case(
        "answers-users",
        (
            asking(QUESTION, retrieval="labels-only", neighbours=1, **USERS),
            asking(QUESTION, retrieval="labels-only", neighbours=1, **USERS),
            LEDGER,
        ),
    ),
    Case("answers-soft-votes", (asking(QUESTION, mechanism="soft-votes", sharpness=4), LEDGER)),
    Case("answers-keywords", (asking(QUESTION, **KEYWORDS), LEDGER)),
    Case(
        "answers-keywords-poisson-users", (asking(QUESTION, **KEYWORDS, **USERS, retrieval="poisson", rate=0.1), LEDGER)
    ),
    Case(
        "score",
        (
            writing("rows.csv", PUBLIC),
            command("score", "rows.csv", "demos.json", **SCORING),
            command(
                "score",
                "rows.csv",
                "demos.json",
                **SCORING | USERS | {"prototypes-epsilon": 1, "share": 0.4, "name": "by user"},
            ),
            LEDGER,
        ),
    ),
    Case(
        "evaluated",
        (
            writing("rows.csv"),
            command("evaluate", "demos.json", test="test.csv", json=True, **READING),
            command("evaluate", "demos.json", test="rows.csv", **READING),
            command("query", "demos.json", QUESTION, model="toy-words", json=True),
            command("query", "demos.json", QUESTION, model="toy-words"),
            writing("rows.csv", PUBLIC, {"out": "other.json"}),
            command("evaluate", "demos.json", "other.json", test="test.csv", json=True, **READING),
        ),
    ),
    Case(
        "evaluated-with-a-prior",
        (
            writing("rows.csv", {"best-of": None}, EPSILON),
            command("evaluate", "demos.json", test="test.csv", json=True, **READING),
            command("query", "demos.json", QUESTION, model="toy-words", json=True),
        ),
    ),
    Case(
        "outputs-read",
        (
            writing("answered.csv", ANSWERED, PUBLIC, {"answers": "model", "output-tokens": None}),
            command(
                "evaluate",
                "demos.json",
                test="answered_test.csv",
                json=True,
                **{"text-column": "text", "output-column": "item", "model": "toy-words"},
            ),
            command("query", "demos.json", QUESTION, model="toy-words", json=True),
        ),
    ),
    Case("exported", (writing("rows.csv"), *(f"export demos.json --format {each} --out {each}" for each in FORMATS))),
    Case(
        "exported-with-stages",
        (
            writing("rows.csv", {"best-of": None}, ROLES),
            *(f"export demos.json --format {each} --out {each} --json" for each in ("certificate", "prompt", "csv")),
        ),
    ),
)
NOISE = {"delta": 1e-5, "unit-rows": True, "subsets": 40, "tokens": 10, "shots-per-label": 2, "json": True}
SOLVED = {
    "gaussian": {"scheme": "per-demonstration"},
    "noisy-max": {"scheme": "per-token"},
    "adadpsyn": {"scheme": "per-demonstration"},
    "blended-logits": {"scheme": "disjoint"},
    "difference-clipping": {"scheme": "per-demonstration"},
    "svt-public": {"scheme": "per-demonstration"},
}
FOR_NUMBERS = (
    Case(
        "calibrated",
        tuple(
            command("calibrate", epsilon=2, size=4000, mechanism=name, transform="none", **OWN[name] | how | NOISE)
            for name, how in SOLVED.items()
        ),
    ),
    Case(
        "accounted",
        (
            command(
                "account",
                mechanism="gaussian",
                transform="none",
                scheme="per-token",
                **OWN["gaussian"] | NOISE | {"noise-multiplier": 1.2, "rate": 0.01},
            ),
            command(
                "account",
                mechanism="noisy-max",
                transform="none",
                scheme="disjoint",
                **NOISE | SUBSETS | {"step-epsilon": 0.2, "size": 4000, "expected-sample": 40, "json": None},
            ),
        ),
    ),
    Case(
        "planned",
        (
            command("plan", mechanism="gaussian", **PLANNED, json=True),
            command("plan", mechanism="noisy-max", **PLANNED),
        ),
    ),
)
REFUSALS = (
    Case(
        "refused-by-the-ledger",
        (
            "ledger cap rows --epsilon 1.5 --delta 0.0001 --json",
            writing("rows.csv"),
            writing("rows.csv", {"out": "other.json", "journal": None}),
            asking(QUESTION),
            "ledger show rows",
            LEDGER,
        ),
    ),
    Case(
        "refused-certificates",
        (
            writing("rows.csv"),
            Edit("demos.json", "task/instruction", "Do as you like."),
            ACCOUNT,
            Edit("demos.json", "privacy/accountants/claimed/epsilon", 0.5),
            Edit("demos.json", "privacy/epsilon", 0.5),
            ACCOUNT,
            "export demos.json --format prompt --out prompt.txt",
            Edit("demos.json", "privacy/event/lists/Red/0/count", 1),
            Edit("demos.json", "privacy/accountants/claimed/epsilon", 0.75),
            Edit("demos.json", "privacy/epsilon", 0.75),
            ACCOUNT,
        ),
    ),
    Case(
        "bad-input",
        (
            writing("rows.csv", {"text-column": "message"}),
            writing("missing.csv"),
            writing("rows.csv", {"labels": "Red,Green"}),
            writing("rows.csv", {"sizes": None}),
            writing("rows.csv", {"sizes": "Red=100"}),
            writing("rows.csv", {"mechanism": "difference-clipping"}, PTA),
            writing("rows.csv", {"noise-multiplier": 2}),
            writing("rows.csv", {"unit-column": "nobody"}),
            writing("rows.csv", {"journal": None, "resume": "missing.jsonl"}),
            writing("rows.csv", {"best-of": None}, ROLES, {"shares": "vote=.9,score=.2"}),
            writing("records.csv", RECORDS, {"schema": '{"type": "array"}'}),
            "account --from rows.csv",
            asking("", test=None),
            "export missing.json --format csv --out x.csv",
            LEDGER,
        ),
    ),
)
CASES = (*MECHANISMS, *UNITS_AND_SIZES, *FORMS, *RECIPES, *RESUMES, *USES, *FOR_NUMBERS, *REFUSALS)
QUICK = {
    "gaussian", "gaussian-drawn", "noisy-max", "blended-logits-disjoint", "public", "users-disjoint", "labels-renamed",
    "best-of", "outputs-by-the-model", "vote-epsilon", "answers", "evaluated", "exported", "refused-certificates",
    "bad-input",
}  # fmt: skip
"""What `make quick` looks at: one of each kind, those that need little calibration."""
