import { beforeAll, describe, expect, test } from "vitest";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const DEPTH = 4000;
const MODEL = "daybreak-mini";

const deepText = '{"a":'.repeat(DEPTH) + "1" + "}".repeat(DEPTH);
const user = { role: "user", content: "Hello." };
/** Placeholder of too deeply nested JSON, which JSON.stringify cannot write. */
const DEEP = "DEEP";

const CASES: readonly (readonly [what: string, route: string, body: object])[] = [
  ["a call of a chat", "/v1/chat/completions", { messages: [user, call({ arguments: deepText }), user] }],
  ["a call of a chat", "/api/chat", { messages: [user, call({ arguments: deepText }), user] }],
  ["a call as an object", "/api/chat", { messages: [user, call({ arguments: { a: DEEP } }), user] }],
  ["a call of a chat", "/ollama/api/chat", { messages: [user, call({ arguments: deepText }), user] }],
  ["a call as an object", "/ollama/api/chat", { messages: [user, call({ arguments: { a: DEEP } }), user] }],
  [
    "a call in a message",
    "/v1/messages",
    {
      max_tokens: 1,
      messages: [
        user,
        { role: "assistant", content: [{ type: "tool_use", id: "1", name: "f", input: { a: DEEP } }] },
        user,
      ],
    },
  ],
  [
    "a call as an item",
    "/v1/responses",
    { input: [user, { type: "function_call", call_id: "1", name: "f", arguments: deepText }, user] },
  ],
  ["metadata", "/v1/responses", { input: "Hello.", metadata: { a: DEEP } }],
  [
    "variables of the template",
    "/v1/chat/completions",
    { messages: [user], chat_template_kwargs: { a: DEEP } },
  ],
  ["a schema", "/v1/chat/completions", { messages: [user], tools: [tool()] }],
  ["a format", "/api/generate", { prompt: "Hello.", format: { a: DEEP } }],
];

function call(fields: object): object {
  return {
    role: "assistant",
    content: "",
    tool_calls: [{ id: "1", type: "function", function: { name: "f", ...fields } }],
  };
}

function tool(): object {
  return { type: "function", function: { name: "f", parameters: { a: DEEP } } };
}

describe("JSON that is nested 4,000 levels deep", () => {
  let daemon: TestDaemon;

  beforeAll(async () => {
    daemon = await sharedDaemon();
  });

  async function post(route: string, body: string): Promise<Response> {
    const headers = { "content-type": "application/json" };
    return await fetch(daemon.url + route, { method: "POST", headers, body });
  }

  async function engineRestarts(): Promise<string> {
    const metrics = await fetch(`${daemon.url}/metrics`);
    return /^service_engine_restarts_total.*$/m.exec(await metrics.text())?.[0] ?? "";
  }

  test.each(CASES)("is refused before it reaches the engine: %s at %s", async (_what, route, body) => {
    const before = await engineRestarts();
    const response = await post(route, JSON.stringify({ model: MODEL, ...body }).replace('"DEEP"', deepText));
    expect(response.status).toBe(400);
    expect(await response.text()).toMatch(/nested 100 levels deep/);
    const next = await post("/api/generate", JSON.stringify({ prompt: "Hello.", max_tokens: 1 }));
    expect(next.status).toBe(200);
    expect(await engineRestarts()).toBe(before);
  });
});
