import Instructor from "@instructor-ai/instructor";
import OpenAI from "openai";
import { beforeAll, expect, test } from "vitest";
// It knows the schemas of Zod 3 alone.
import { z } from "zod/v3";
import { AMPLE_TOKENS, GREEDY } from "../support/certain-requests.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const COLOUR = z.object({ colour: z.enum(["red", "blue"]), sure: z.boolean() });

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

// JSON_SCHEMA asks for a json_object with a schema beside it.
test.for(["TOOLS", "JSON_SCHEMA"] as const)("Instructor fits a zod schema in its mode %s", async (mode) => {
  const client = Instructor({ client: new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any" }), mode });
  const answer = await client.chat.completions.create({
    ...GREEDY,
    model: "daybreak-mini",
    max_tokens: AMPLE_TOKENS,
    max_retries: 0,
    messages: [{ role: "user", content: "Is the sky blue?" }],
    response_model: { schema: COLOUR, name: "Colour" },
  });
  expect(COLOUR.safeParse(answer)).toMatchObject({ success: true });
});
