"""Evaluates daybreak-mini with its projector on held-out pictures, through the daemon's HTTP API."""

from __future__ import annotations

import argparse
import base64
from random import Random

from daemon_client import Daemon
from gen_picture import question, scene
from pictures import draw, png


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--model", default="daybreak-mini-vision", help="a loaded model that has the projector")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--size", type=int, default=64, help="pixels on a side")
    parser.add_argument("--failures", type=int, default=5)
    options = parser.parse_args()
    daemon, rng, right = Daemon(options.url, options.model), Random("evaluate pictures"), 0
    failures: list[str] = []
    for _ in range(options.count):
        shown = scene(rng, held=True)
        asked, wanted = question(rng, True, shown)
        picture = base64.b64encode(png(draw(rng, shown, options.size))).decode()
        answer = daemon.chat([{"role": "user", "content": asked}], images=[picture])
        right += answer.content.strip() == wanted
        if answer.content.strip() != wanted:
            failures.append(f"- {asked} -> {answer.content!r}, wanted {wanted!r}")
    print(
        f"| held-out pictures of {options.size} pixels, answers right | {right} of {options.count} "
        f"| {100 * right / options.count:.1f} % | 95 % |"
    )
    print("\n".join(failures[: options.failures]))


if __name__ == "__main__":
    main()
