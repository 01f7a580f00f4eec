import { describe, expect, test } from "vitest";
import { z } from "zod";
import { attackedRoutes, pathOf } from "../../scripts/test/withstand/requests/attacked-routes.ts";
import { HOSTILE_BODIES, headOf } from "../../scripts/test/withstand/requests/hostile-bodies.ts";
import { validValue } from "../../scripts/test/withstand/requests/valid-value.ts";
import { Random } from "../../scripts/test/withstand/kit/random.ts";
import type { App } from "../../src/http/app.ts";
import { longestTurn } from "../support/longest-turn.ts";
import { testApp } from "../support/test-app.ts";

const MEGABYTE = 1024 * 1024;
/** Enough to meet every limit, and little enough to try every shape. */
const SMALLER = MEGABYTE / 2;
/** The daemon's own limit of a body. */
const LARGEST = 32 * MEGABYTE;
/**
 * Processor time of one turn. What takes longer in the cases below is far beyond it: seconds, not a tenth of one. It
 * is ten times the aim, for collections of garbage that other tests have left count as well.
 */
const LONGEST_TURN_MS = 500;

/** The fields of a list's items are those of other bodies, too. */
const routes = attackedRoutes().filter(({ route }) => route.body && !(route.body instanceof z.ZodArray));

function fieldsOf(index: number): string[] {
  const body = routes[index]!.route.body!;
  return "shape" in body ? Object.keys(Object(body.shape)) : [];
}

async function post(app: App, path: string, method: string, pieces: Iterable<Buffer>): Promise<Response> {
  const iterator = pieces[Symbol.iterator]();
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
  const request: RequestInit & { duplex: "half" } = {
    method,
    headers: { "content-type": "application/json" },
    body,
    duplex: "half",
  };
  return await app.request(path, request);
}

/** Each shape tries every so many routes; all of them together have tried them all several times. */
const ROUTES_APART = 7;

describe("no body holds the event loop", () => {
  test.each(HOSTILE_BODIES.map((shape, index) => ({ ...shape, index })))(
    "$name, whatever the field",
    async ({ index: shapeIndex, ...shape }) => {
      const random = new Random(shapeIndex);
      const { app } = testApp();
      for (const [index, { route }] of routes.entries()) {
        if ((index + shapeIndex) % ROUTES_APART !== 0) continue;
        const field = random.pick(fieldsOf(index));
        const head = headOf(Object(validValue(route.body!, random)), field);
        const path = pathOf(route, "fake");
        await expect(
          turnsOf(`${path} ${field}`, () => post(app, path, route.method, shape.pieces(head, SMALLER))),
        ).resolves.toSatisfy(isWell);
      }
    },
  );

  test.each([
    ["/v1/completions", "prompt", "empty objects"],
    ["/v1/completions", "prompt", "numbers"],
    ["/v1/embeddings", "input", "short texts"],
    ["/v1/chat/completions", "messages", "messages"],
    ["/v1/messages", "unknown", "unknown fields"],
    ["/api/chat", "content", "one text of escapes"],
    ["/api/generate", "prompt", "one text of Chinese"],
    ["/detokenize", "tokens", "blanks"],
  ])("of the largest size: %s, %s of %s", async (path, field, name) => {
    const shape = HOSTILE_BODIES.find((candidate) => candidate.name === name)!;
    const { app } = testApp();
    const head = `{"max_tokens":1,"${field}":`;
    await expect(
      turnsOf(name, () => post(app, path, "POST", shape.pieces(head, LARGEST - MEGABYTE))),
    ).resolves.toSatisfy(isWell);
  });
});

interface Outcome {
  readonly what: string;
  readonly status: number;
  readonly longest: number;
}

async function turnsOf(what: string, ask: () => Promise<Response>): Promise<Outcome> {
  let status = 0;
  const longest = await longestTurn(async () => {
    const response = await ask();
    await response.body?.cancel();
    ({ status } = response);
  });
  return { what, status, longest };
}

/** Answered, in short turns; 503 is the scripted engine's way of having no place. */
function isWell({ status, longest }: Outcome): boolean {
  return longest < LONGEST_TURN_MS && (status < 500 || status === 503);
}
