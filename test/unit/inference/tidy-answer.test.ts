import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { tidyAnswer } from "../../../src/inference/tidy-answer.ts";
import { eventsOf } from "../../support/fake-engine.ts";
import { readEvents } from "./read-events.ts";

const think = (text: string): GenerationEvent => ({ type: "reasoning-delta", text });
const say = (text: string): GenerationEvent => ({ type: "text-delta", text });
const done = eventsOf().at(-1);

function tidied(events: readonly GenerationEvent[], endOfTurn?: string, goesOn = false): string[] {
  return readEvents(tidyAnswer(endOfTurn, goesOn), [...events, done!]).flatMap((event) =>
    event.type === "text-delta" || event.type === "reasoning-delta" ? [`${event.type[0]}:${event.text}`] : [],
  );
}

describe("what a template puts around the parts of an answer is dropped", () => {
  test("blanks around reasoning, not those within", () => {
    const events = [
      think("\n"),
      think("\nLet"),
      think(" \n"),
      think("me"),
      think("\n"),
      say("\n\n"),
      say("Yes "),
    ];
    expect(tidied(events)).toEqual(["r:Let", "r: \nme", "t:Yes "]);
  });

  test("not those before reasoning that goes on", () => {
    expect(tidied([think(" so."), say("\n\nYes")], undefined, true)).toEqual(["r: so.", "t:Yes"]);
    expect(tidied([say(" fine")], undefined, true)).toEqual(["t: fine"]);
  });

  test("nothing of an answer without reasoning", () => {
    expect(tidied([say("\n"), say(" yes\n")])).toEqual(["t:\n", "t: yes\n"]);
  });

  test("the token that ends the turn, at the end only", () => {
    expect(tidied([say("a<end>"), say("b"), say("c<end>")], "<end>")).toEqual(["t:a<end>", "t:b", "t:c"]);
    expect(tidied([say("c<end>")])).toEqual(["t:c<end>"]);
  });
});
