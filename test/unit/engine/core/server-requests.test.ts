import { expect, test } from "vitest";
import { RequestLoop } from "../../../../src/engine/core/request-loop.ts";
import { ServerRequests } from "../../../../src/engine/core/server-requests.ts";
import { EngineCallError } from "../../../../src/engine/core/wllama-session.ts";

const NEVER = new AbortController().signal;
const BODY = { _name: "embd_req" as const, data_json: "{}", files: [] };

/** Requests with these results; an Error is thrown. */
function requests(...results: readonly unknown[]): ServerRequests {
  const remaining = [...results];
  const loop = new RequestLoop({
    act: async (name) => {
      if (name !== "get_result") return { success: true, req_id: 1 };
      const result = remaining.shift();
      if (result instanceof Error) throw result;
      return { success: true, has_more: remaining.length > 0, data_json: JSON.stringify(result) };
    },
    call: () => Promise.reject(new Error("no call is expected")),
  });
  return new ServerRequests(loop);
}

test("returns the first result that has data", async () => {
  expect(await requests(null, "first", "second").runForResult("embedding", BODY, NEVER)).toBe("first");
});

test("fails a request without a result", async () => {
  await expect(requests(null).runForResult("embedding", BODY, NEVER)).rejects.toMatchObject({
    code: "inference_failed",
  });
});

test("reports an exception before the first result as an invalid request, a later one as a failure", async () => {
  const exception = new EngineCallError("Failed to parse input");
  const before = requests(exception).runForResult("embedding", BODY, NEVER);
  await expect(before).rejects.toMatchObject({ code: "invalid_parameter" });
  const after = requests(null, exception).runForResult("embedding", BODY, NEVER);
  await expect(after).rejects.toMatchObject({ code: "inference_failed" });
});
