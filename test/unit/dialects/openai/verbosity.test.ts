import { expect, test } from "vitest";
import { testApp } from "../../../support/test-app.ts";

test.each([
  ["/v1/chat/completions", { messages: [{ role: "user", content: "hi" }], verbosity: "low" }],
  ["/v1/responses", { input: "hi", text: { verbosity: "high" } }],
])("%s tells that verbosity is not followed", async (path, body) => {
  const answer = await testApp().post(path, body);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("x-daybreak-warning")).toContain("verbosity is not followed");
});

test("the usual verbosity is what every model has", async () => {
  const body = { messages: [{ role: "user", content: "hi" }], verbosity: "medium" };
  const answer = await testApp().post("/v1/chat/completions", body);
  expect(answer.headers.get("x-daybreak-warning")).toBeNull();
});
