"""Croissant 1.0 metadata of a data set of demonstrations, with the terms of its vocabulary for responsible use."""

from __future__ import annotations

import hashlib
from typing import Any

from mechanisms.exports.certificate_page import limits
from mechanisms.exports.export_format import ReleasedFile, in_a_line
from mechanisms.runs.plan import guarantee

_TERMS = (
    "citeAs column extract field fileObject fileProperty fileSet format includes isLiveDataset jsonPath key md5 "
    "parentField path recordSet references regex repeated replace separator source subField transform "
    "equivalentProperty samplingRate"
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS.split()},
}
"""The terms of the specification, as readers expect them."""


def described(released: ReleasedFile, file: str, rows: str) -> dict[str, Any]:
    """The JSON-LD document.

    Args:
        file: the name of the file of rows.
        rows: its content, JSON Lines with text, label and, if the set has words, label_words.
    """
    made, added = released.demo_set, released.extras
    held, columns = made.certificate, ["text", "label", *([] if made.words is None else ["label_words"])]
    promise = (
        guarantee(held.claim, held.by_user) if held.private else "They may repeat the rows they were written from."
    )
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": "synthetic-demonstrations",
        "description": f"Texts with labels that a local language model wrote: {in_a_line(released)}.",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "dateCreated": made.created,
        **({"license": added.licence} if added.licence else {}),
        **({"inLanguage": added.language} if added.language else {}),
        "rai:personalSensitiveInformation": [f"{promise} The texts are {in_a_line(released)}."],
        "rai:dataLimitations": [*limits(held)],
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file,
                "name": file,
                "contentUrl": file,
                "encodingFormat": "application/jsonlines",
                "sha256": hashlib.sha256(rows.encode()).hexdigest(),
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "demonstrations",
                "name": "demonstrations",
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"demonstrations/{each}",
                        "name": each,
                        "dataType": "sc:Text",
                        "source": {"fileObject": {"@id": file}, "extract": {"column": each}},
                    }
                    for each in columns
                ],
            }
        ],
    }
