import { describe, expect, test } from "vitest";
import { testApp } from "../../../support/test-app.ts";

describe("saved prompts", () => {
  test("are listed with the slots of a model whose name contains slashes", async () => {
    const app = testApp();
    const response = await app.app.request("/api/models/hf:owner/repo/slots");
    expect(await response.json()).toEqual({
      slots: [{ slot: 0, tokens: 12, busy: false }],
      saved: [
        {
          name: "story",
          automatic: false,
          damaged: false,
          tokens: 12,
          size_bytes: 4000,
          saved_at: "2026-01-02T00:00:00.000Z",
        },
      ],
    });
    expect(app.models.slotCalls).toEqual([{ model: "hf:owner/repo" }]);
  });

  test("are saved, restored and erased", async () => {
    const app = testApp();
    const path = "/api/models/m/slots";
    expect(await (await app.post(path, { action: "save", name: "story" })).json()).toEqual({
      status: "saved",
      slot: 0,
      name: "story",
      tokens: 12,
      state_bytes: 3456,
      ms: 7.8,
    });
    expect((await app.post(path, { action: "restore", name: "story", slot: 2 })).status).toBe(200);
    expect(await (await app.post(path, { action: "erase", slot: 2 })).json()).toEqual({
      status: "erased",
      slot: 2,
      tokens: 12,
    });
    expect(app.models.slotCalls).toEqual([
      { model: "m", slot: 0, name: "story" },
      { model: "m", slot: 2, name: "story" },
      { model: "m", slot: 2 },
    ]);
  });

  test("are deleted by name", async () => {
    const app = testApp();
    const response = await app.app.request("/api/models/m/slots?name=story", { method: "DELETE" });
    expect(await response.json()).toEqual({ status: "deleted", name: "story" });
    expect(app.models.slotCalls).toEqual([{ model: "m", name: "story" }]);
  });

  test.each([
    [{}],
    [{ action: "steal" }],
    [{ action: "save" }],
    [{ action: "save", name: "" }],
    [{ action: "save", name: "a".repeat(65) }],
    [{ action: "save", name: "story", slot: -1 }],
    [{ action: "save", name: "story", slot: 64 }],
    [{ action: "erase" }],
  ])("rejects the invalid body %j", async (body) => {
    const app = testApp();
    expect((await app.post("/api/models/m/slots", body)).status).toBe(400);
    expect(app.models.slotCalls).toEqual([]);
  });

  test("are not deleted without a name", async () => {
    const app = testApp();
    expect((await app.app.request("/api/models/m/slots", { method: "DELETE" })).status).toBe(400);
    expect(app.models.slotCalls).toEqual([]);
  });
});
