import { Hono } from "hono";
import { expect, test } from "vitest";
import type { AppEnv } from "../../../../src/http/app-env.ts";
import { apiKeys } from "../../../../src/http/middleware/api-keys.ts";

test.each([
  [[], {}, null],
  [["key"], { ipc: true }, null],
  [["key"], { batch: { owner: "somebody" } }, "somebody"],
  [[], { batch: { owner: "" } }, null],
])("with keys %j and bindings %j the owner is %j", async (keys, env, owner) => {
  const app = new Hono<AppEnv>()
    .use(apiKeys(keys, () => false))
    .get("/", (context) =>
      context.json({ owner: context.get("owner") ?? null, kind: typeof context.get("owner") }),
    );
  const kind = owner === null ? "undefined" : "string";
  expect(await (await app.request("/", {}, env)).json()).toEqual({ owner, kind });
});
