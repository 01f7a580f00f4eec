import { expect, test } from "vitest";
import type { RequestLoop } from "../../../../src/engine/core/request-loop.ts";
import { ServerRequests } from "../../../../src/engine/core/server-requests.ts";
import { EngineCallError } from "../../../../src/engine/core/wllama-session.ts";

const NEVER = new AbortController().signal;
const BODY = { _name: "embd_req" as const, data_json: "{}", files: [] };

/** Requests whose results are these; an error is thrown. */
function requests(...results: readonly unknown[]): ServerRequests {
  const run: RequestLoop["run"] = async (_action, _body, onResult) => {
    for (const result of results) {
      if (result instanceof Error) throw result;
      onResult(result === null ? { kind: "accepted" } : { kind: "data", data: result }, undefined);
    }
  };
  return new ServerRequests({ run });
}

test("a request has the first of its results that has data", async () => {
  expect(await requests(null, "first", "second").only("embedding", BODY, NEVER)).toBe("first");
});

test("one without a result has failed", async () => {
  await expect(requests(null).only("embedding", BODY, NEVER)).rejects.toMatchObject({
    code: "inference_failed",
  });
});

test("an exception before the first result means that the request is invalid, a later one that it failed", async () => {
  const exception = new EngineCallError("Failed to parse input");
  const before = requests(exception).only("embedding", BODY, NEVER);
  await expect(before).rejects.toMatchObject({ code: "invalid_parameter" });
  const after = requests(null, exception).only("embedding", BODY, NEVER);
  await expect(after).rejects.toMatchObject({ code: "inference_failed" });
});
