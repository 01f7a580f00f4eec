import { describe, expect, test } from "vitest";
import type { GenerationEvent, GenerationRequest } from "../../../src/engine/protocol/generation.ts";
import { generateFitting } from "../../../src/inference/run-generation.ts";
import { DONE } from "../../support/fake-engine.ts";
import { NEVER, promptRequest } from "../../support/engine-fixture.ts";

type Done = Extract<GenerationEvent, { type: "done" }>;

/** Generates with an engine that yields these texts in turn; only "right" passes the check. */
async function generate(
  texts: readonly string[],
  done: Partial<Done> = {},
  further: Partial<GenerationRequest> = {},
  failedTries?: number,
) {
  const requests: GenerationRequest[] = [];
  const events: GenerationEvent[] = [];
  const engine = {
    generate: (request: GenerationRequest, onEvent: (event: GenerationEvent) => void): Promise<void> => {
      const text = texts[requests.length] ?? "";
      requests.push(request);
      onEvent({ type: "start" });
      onEvent({ type: "prompt-progress", processed: 1, total: 1 });
      if (request.reportsTokens) onEvent({ type: "tokens", ids: [text.length], replaced: 0 });
      for (const piece of text) onEvent({ type: "text-delta", text: piece });
      onEvent({ ...DONE, ...done });
      return Promise.resolve();
    },
  };
  const check = async (held: readonly GenerationEvent[]): Promise<string | undefined> =>
    textOf(held) === "right" ? undefined : `"${textOf(held)}" is wrong`;
  const request = promptRequest("Q", { sampling: { seed: 5, temperature: 0 }, ...further });
  const failure: unknown = await generateFitting(
    engine,
    request,
    check,
    (event) => events.push(event),
    NEVER,
    failedTries,
  ).catch((error: unknown) => error);
  return { requests, events, failure, text: textOf(events) };
}

function textOf(events: readonly GenerationEvent[]): string {
  return events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
}

describe("an answer that is checked when it is complete", () => {
  test("is passed on delta by delta once it passes", async () => {
    const { events, text, failure } = await generate(["right"]);
    expect(failure).toBeUndefined();
    expect(text).toBe("right");
    expect(events.map(({ type }) => type)).toEqual([
      "start",
      "prompt-progress",
      ...Array.from("right", () => "text-delta"),
      "done",
    ]);
  });

  test("is generated again with another seed and temperature if it fails; the client sees one answer", async () => {
    const { requests, events, text } = await generate(["wrong", "right"]);
    expect(requests.map(({ sampling }) => sampling)).toEqual([
      { seed: 5, temperature: 0 },
      { seed: 6, temperature: 0.7 },
    ]);
    expect(text).toBe("right");
    expect(events.filter(({ type }) => type === "start" || type === "done")).toHaveLength(2);
  });

  test("reports the token ids of each try before it is complete", async () => {
    const { events } = await generate(["wrong", "right"], {}, { reportsTokens: true });
    expect(events.filter(({ type }) => type !== "text-delta")).toEqual([
      { type: "start" },
      { type: "prompt-progress", processed: 1, total: 1 },
      { type: "tokens", ids: [5], replaced: 0, failedTries: 0 },
      { type: "tokens", ids: [5], replaced: 0, failedTries: 1 },
      expect.objectContaining({ type: "done" }),
    ]);
  });

  test("continues the try of another machine, and begins the next one itself", async () => {
    const begun = { given: [1, 2] };
    const { requests, text } = await generate(["wrong", "right"], {}, begun, 1);
    expect(text).toBe("right");
    expect(requests[0]).toMatchObject({ ...begun, sampling: { seed: 6, temperature: 0.7 } });
    expect(requests[1]?.sampling).toEqual({ seed: 7, temperature: 0.7 });
    expect(requests[1]).not.toHaveProperty("given");
    // There is one try left, even if another machine claims more failed ones.
    expect((await generate(["right"], {}, begun, 1e9)).text).toBe("right");
  });

  test("fails after three tries with the problem", async () => {
    const { requests, events, failure } = await generate(["a", "b", "c", "right"]);
    expect(failure).toMatchObject({
      code: "inference_failed",
      message: expect.stringContaining('did not fit the schema in 3 tries: "c" is wrong'),
    });
    expect(requests).toHaveLength(3);
    expect(textOf(events)).toBe("");
  });

  test.each<Partial<Done>>([{ reason: "length" }, { stopSequence: "g" }])(
    "is not checked if it was truncated: %j",
    async (done) => {
      const { requests, text } = await generate(["wron"], done);
      expect([text, requests.length]).toEqual(["wron", 1]);
    },
  );
});
