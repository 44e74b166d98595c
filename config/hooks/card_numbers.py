"""A hook for Callboard: takes card numbers out of what agents say.

Try it: callboard hooks try cards "My card is 4111 1111 1111 1111"
"""

import json
import re
import sys

CARD = re.compile(r"\b\d(?:[ -]?\d){12,18}\b")

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:  # something to know, and nothing to answer
        continue
    text = CARD.sub("[card number]", asked["text"])
    answer = {"id": asked["id"], "action": "continue"}
    if text != asked["text"]:
        answer = {"id": asked["id"], "action": "change", "text": text}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
