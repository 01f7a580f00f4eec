"""Evaluates daybreak-mini with its projector on held-out images, through the daemon's HTTP API."""

import base64
from random import Random

from chat.drawing import draw, png
from conversations.scenes import question, scene
from evaluate.daemon import Daemon, Score, options, report


def main() -> None:
    parser = options(__doc__, "daybreak-mini-vision", 100)
    parser.add_argument("--size", type=int, default=64, help="pixels on a side")
    chosen = parser.parse_args()
    daemon, rng = Daemon(chosen.url, chosen.model), Random("evaluate pictures")
    score = Score(f"answers on held-out images of {chosen.size} pixels", "95 %")
    for _ in range(chosen.count):
        shown = scene(rng, held=True)
        asked, wanted = question(rng, True, shown)
        image = base64.b64encode(png(draw(rng, shown, chosen.size))).decode()
        said = daemon.chat([{"role": "user", "content": asked}], images=[image]).content.strip()
        score.add(said == wanted, f"{asked} -> {said!r}, wanted {wanted!r}")
    report([score], chosen.failures)


if __name__ == "__main__":
    main()
