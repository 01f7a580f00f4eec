import { expect, test } from "vitest";
import { testApp } from "../../support/test-app.ts";

test.each([
  ["GET", "/api/tags", "/ollama/api/tags"],
  ["GET", "/models", "/v1/models"],
  ["GET", "/models/abc", "/v1/models/abc"],
  ["POST", "/api/chat/completions", "/v1/chat/completions"],
  ["POST", "/chat/completions", "/v1/chat/completions"],
  ["POST", "/v1/v1/messages", "/v1/messages"],
  ["POST", "/openai/v1/chat/completions", "/v1/chat/completions"],
  ["DELETE", "/files/file-1", "/v1/files/file-1"],
])("%s %s is unknown, and the error suggests %s", async (method, path, meant) => {
  const answer = await testApp().app.request(path, { method });
  expect(answer.status).toBe(404);
  expect(JSON.stringify(await answer.json())).toContain(
    `Endpoint not found: ${method} ${path}. There is ${meant}: check the client's base URL.`,
  );
});

test.each([
  ["GET", "/nowhere"],
  ["GET", "/chat/completions"],
  ["GET", `/${"v1/".repeat(100)}models`],
])("%s %s is unknown without a suggestion", async (method, path) => {
  const answer = await testApp().app.request(path, { method });
  const text = JSON.stringify(await answer.json());
  expect(text).toContain(`Endpoint not found: ${method} ${path}.`);
  expect(text).not.toContain("There is ");
});
