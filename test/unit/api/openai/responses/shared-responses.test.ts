import { describe, expect, test } from "vitest";
import { StoredResponses, ResponseStore } from "../../../../../src/api/openai/responses/response-store.ts";
import { resolveConversation } from "../../../../../src/api/openai/responses/response-request.ts";
import { responseRequestSchema } from "../../../../../src/api/openai/responses/response-schema.ts";
import { RecordsUnreachable, type SharedRecords } from "../../../../../src/api/services.ts";
import { responseOf } from "./response-of.ts";

class SharedMap implements SharedRecords {
  readonly records = new Map<string, Uint8Array>();
  readonly erased = new Set<string>();

  /** Set while the store is unreachable. */
  away: RecordsUnreachable | undefined;

  async put(name: string, record: Uint8Array) {
    if (!this.away) this.records.set(name, record);
  }

  reads = 0;

  async get(name: string) {
    this.reads += 1;
    return this.away ?? this.records.get(name);
  }

  async erase(name: string) {
    if (this.away) return this.away;
    this.records.delete(name);
    this.erased.add(name);
    return undefined;
  }

  async isErased(name: string) {
    return this.away ?? this.erased.has(name);
  }
}

const ITEMS = responseRequestSchema.parse({
  input: [
    { role: "user", content: "hi" },
    { type: "web_search_call", id: "ws_1", status: "completed" },
    { type: "reasoning", summary: [{ text: "Hm." }] },
  ],
}).input;

function machines() {
  const shared = new SharedMap();
  const [here, there] = [
    new StoredResponses(new ResponseStore(), shared),
    new StoredResponses(new ResponseStore(), shared),
  ];
  const response = responseOf("Hello");
  const sent = Array.isArray(ITEMS) ? ITEMS.filter((item) => item.type !== "item_reference") : [];
  return { shared, here, there, response, items: [...sent, ...response.output] };
}

describe("the responses of a fleet", () => {
  test("are found unchanged by another machine", async () => {
    const { here, there, response, items } = machines();
    await here.add(response, items, undefined);
    expect(await there.get(response.id, undefined)).toEqual({ response, items, owner: undefined });
    const [{ id } = { id: "" }] = response.output;
    expect(await there.item(id, undefined)).toEqual(response.output[0]);
  });

  test("are read once for an item that a request names several times", async () => {
    const { shared, here, there, response, items } = machines();
    await here.add(response, items, undefined);
    const [output] = response.output;
    const input = Array.from({ length: 3 }, () => ({
      type: "item_reference" as const,
      id: output?.id ?? "",
    }));
    shared.reads = 0;
    await there.item(output?.id ?? "", undefined);
    const once = shared.reads;
    shared.reads = 0;
    const conversation = await resolveConversation({ input }, there, undefined);
    expect(conversation.items).toEqual([output, output, output]);
    expect(shared.reads).toBe(once);
  });

  test("are only visible to their API key, on every machine", async () => {
    const { here, there, response, items } = machines();
    await here.add(response, items, "a");
    for (const machine of [here, there]) {
      expect((await machine.get(response.id, "a"))?.response).toEqual(response);
      expect(await machine.get(response.id, "b")).toBeUndefined();
      expect(await machine.delete(response.id, "b")).toBe(false);
    }
    // A machine without keys returns its own responses, but none that belongs to another machine's key.
    expect(await there.get(response.id, undefined)).toBeUndefined();
  });

  test("are deleted from all machines by one of them", async () => {
    const { shared, here, there, response, items } = machines();
    await here.add(response, items, undefined);
    expect(await there.delete(response.id, undefined)).toBe(true);
    expect(await here.get(response.id, undefined)).toBeUndefined();
    expect(await there.delete(response.id, undefined)).toBe(false);
    expect(shared.records.size).toBe(0);
  });

  test("return fleet_unreachable if they are on other machines that cannot be reached; local ones are still returned", async () => {
    const { shared, here, there, response, items } = machines();
    await here.add(response, items, undefined);
    shared.away = new RecordsUnreachable("the server is gone", 3);
    const unreachable = { code: "fleet_unreachable", status: 503, retryAfterSecs: 3 };
    const [{ id } = { id: "" }] = response.output;
    expect((await here.get(response.id, undefined))?.response).toEqual(response);
    expect(await here.item(id, undefined)).toEqual(response.output[0]);
    await expect(there.get(response.id, undefined)).rejects.toMatchObject(unreachable);
    await expect(there.item(id, undefined)).rejects.toMatchObject(unreachable);
    // Not a valid name of a response.
    expect(await there.get("x", undefined)).toBeUndefined();
    const late = responseOf("Late");
    await there.add(late, [], undefined);
    expect((await there.get(late.id, undefined))?.response).toEqual(late);
  });

  test("are not deleted if other machines cannot be reached", async () => {
    const { shared, here, there, response, items } = machines();
    await here.add(response, items, undefined);
    shared.away = new RecordsUnreachable("the server is gone", 1);
    for (const machine of [here, there])
      await expect(machine.delete(response.id, undefined)).rejects.toMatchObject({
        code: "fleet_unreachable",
      });
    shared.away = undefined;
    expect((await here.get(response.id, undefined))?.response).toEqual(response);
    expect(await here.delete(response.id, undefined)).toBe(true);
    expect(await there.get(response.id, undefined)).toBeUndefined();
  });

  test.each([
    ["nothing", ""],
    ["not JSON", "{"],
    ["another response", JSON.stringify({ response: responseOf("Other"), items: [] })],
    ["an item that is none", { items: [{ type: "item_reference", id: "x" }] }],
    ["an item without a role", { items: [{ id: "x" }] }],
    ["an unread item of a tool", { items: [{ type: "web_search_call" }] }],
    ["a forged item of a tool", { items: [{ type: "history", item: 7 }] }],
  ])("are not found if a shared record is %s", async (_what, forged) => {
    const { shared, there, response } = machines();
    const record = typeof forged === "string" ? forged : JSON.stringify({ response, ...forged });
    shared.records.set(response.id, Buffer.from(record));
    expect(await there.get(response.id, undefined)).toBeUndefined();
  });

  test("are not looked up under names of other records", async () => {
    const { shared, there, response } = machines();
    shared.records.set("a.>", Buffer.from(JSON.stringify({ response, items: [] })));
    expect(await there.get("a.>", undefined)).toBeUndefined();
    expect(await there.get("resp_*", undefined)).toBeUndefined();
  });
});
