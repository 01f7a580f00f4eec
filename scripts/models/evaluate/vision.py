"""Evaluates daybreak-mini with its projector on held-out images, through the daemon's HTTP API."""

import base64
from random import Random

from chat.drawing import draw, png
from conversations.scenes import question, scene
from evaluate.daemon import Daemon, Score, options, report

SIZES = (64, 256)
"""Pixels on a side: as the projector takes them, and so that the daemon has to scale."""


def main() -> None:
    chosen = options(__doc__, 100).parse_args()
    daemon, scores = Daemon(chosen.url, "daybreak-mini-vision"), []
    for size in SIZES:
        score, rng = Score(f"answers on held-out images of {size} pixels", "95 %"), Random("evaluate pictures")
        for _ in range(chosen.count):
            shown = scene(rng, held=True)
            asked, wanted = question(rng, True, shown)
            image = base64.b64encode(png(draw(rng, shown, size))).decode()
            answer = daemon.chat([{"role": "user", "content": asked}], images=[image])
            score.add(answer["content"].strip() == wanted)
        scores.append(score)
    report(scores)


if __name__ == "__main__":
    main()
