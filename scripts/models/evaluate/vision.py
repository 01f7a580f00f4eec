"""Evaluates daybreak-mini with its projector on held-out images, through the daemon's HTTP API."""

import base64
from random import Random

from chat.drawing import draw, png
from conversations.scenes import question, scene
from evaluate.daemon import Daemon, options, report

SIZES = (64, 256)
"""Pixels on a side: as the projector takes them, and so that the daemon has to scale."""


def is_right(daemon: Daemon, rng: Random, size: int) -> bool:
    shown = scene(rng, held=True)
    asked, wanted = question(rng, True, shown)
    image = base64.b64encode(png(draw(rng, shown, size))).decode()
    return daemon.chat([{"role": "user", "content": asked}], images=[image])["content"].strip() == wanted


def main() -> None:
    chosen = options(__doc__, 100).parse_args()
    daemon, rows = Daemon(chosen.url, "daybreak-mini-vision"), []
    for size in SIZES:
        rng = Random("evaluate pictures")
        right = [is_right(daemon, rng, size) for _ in range(chosen.count)]
        rows.append((f"answers on held-out images of {size} pixels", "95 %", right))
    report(rows)


if __name__ == "__main__":
    main()
