import { afterEach, describe, expect, it } from "vitest";
import { http1Fetch } from "../../../../../src/models/hub/remote/http1-fetch.ts";

/** Where undici keeps the dispatcher that fetch uses. */
const GLOBAL_DISPATCHER = Symbol.for("undici.globalDispatcher.2");
const original: unknown = Reflect.get(globalThis, GLOBAL_DISPATCHER);

afterEach(() => {
  Reflect.set(globalThis, GLOBAL_DISPATCHER, original);
});

describe("the fetch for downloads", () => {
  // Of older ones it is what they speak anyway.
  it.runIf(Number.parseInt(process.versions["undici"] ?? "0", 10) >= 8)(
    "asks for HTTP/1.1 of whatever dispatcher is in use",
    async () => {
      const asked: unknown[] = [];
      Reflect.set(globalThis, GLOBAL_DISPATCHER, {
        dispatch: (options: { allowH2?: boolean }) => {
          asked.push(options.allowH2);
          throw new Error("seen");
        },
      });

      await expect(http1Fetch("http://hub.invalid/")).rejects.toThrow("fetch failed");

      expect(asked).toEqual([false]);
    },
  );
});
