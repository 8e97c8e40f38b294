"""What a claim takes as public, in the words of certificates: each certificate lists those that its claim rests on.

The parameters and the prompt are public, too, and stand in the certificate by themselves.
"""

from __future__ import annotations

LABEL_SET = "label set"
FILE_FORMAT = "how the file divides into rows (encoding, line ends, separator, quotes, header)"

# Where the label sizes come from.
DECLARED_SIZES = "upper bounds of label sizes declared public"
DECLARED_COUNTS = "label counts declared public"
DECLARED_USERS = "numbers of users of each label declared public"
MEASURED_SIZES = "label sizes measured with noise"
LABEL_WEIGHTS = "label sizes stated with the set, which weigh the labels"

# One bit each that follows from the rows without noise, and that somebody who sees the document learns.
WHETHER_SHOWN = "whether clean values of its rows were shown before"
WHETHER_MET = "whether its rows took part in runs before"
WHETHER_VERBATIM = "whether a text of the set is a text of the file, apart from spaces, case and punctuation"
"""Of a score of a set that this installation did not sign."""
WHETHER_RESERVED = "whether the file is the one reserved for"
"""Of a session that continues a reservation."""
