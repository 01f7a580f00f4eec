import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { FetchMessage, StartMessage } from "../../../src/tab/worker-messages.ts";
import { SharedLink } from "../../../src/tab/engine-link.ts";

/** The workers that have been started, and what they were told. */
let workers: FakeWorker[] = [];

class FakeWorker extends EventTarget {
  readonly told: { type: string; id?: number }[] = [];
  isEnded = false;

  constructor() {
    super();
    workers.push(this);
  }

  postMessage(message: { type: string }): void {
    this.told.push(message);
  }

  says(data: unknown): void {
    this.dispatchEvent(new MessageEvent("message", { data }));
  }

  terminate(): void {
    this.isEnded = true;
  }
}

const READY = { type: "ready", alias: "tiny", info: { threads: 1 } };
const start: StartMessage = {
  type: "start",
  alias: "tiny",
  files: { model: [], adapters: [] },
  modelfile: undefined,
  wasmUrl: "http://page/engine.wasm",
  compat: { wasmUrl: "http://page/engine-compat.wasm", scriptUrl: "http://page/engine-compat.js" },
  options: {},
};
const ask = (id: number): FetchMessage => ({
  type: "request",
  id,
  head: { method: "GET", path: "/", headers: [] },
  body: undefined,
});

/** Waits for what the locks and channels between tabs bring about. */
const until = async (condition: () => boolean): Promise<void> => {
  await expect.poll(condition, { interval: 5 }).toBe(true);
};

let links: SharedLink[] = [];
let key = "";

/** A tab, with all that it has been told. */
function openTab() {
  const answers: unknown[] = [];
  const lost: Error[] = [];
  const link = new SharedLink(key, "worker.js", start, {
    onAnswer: (message) => answers.push(message),
    onProgress: () => {},
    onLost: (error) => lost.push(error),
    onEnd: () => {},
  });
  link.ready.catch(() => {});
  links.push(link);
  return { link, answers, lost };
}

/** Two tabs; the first runs the engine. */
async function openTwo() {
  const first = openTab();
  await until(() => workers.length === 1);
  const second = openTab();
  workers[0]!.says(READY);
  await Promise.all([first.link.ready, second.link.ready]);
  return { first, second, worker: workers[0]! };
}

beforeEach(() => {
  workers = [];
  links = [];
  key = crypto.randomUUID();
  vi.stubGlobal("Worker", FakeWorker);
});
afterEach(() => {
  for (const link of links) link.end(new Error("the test is over"));
  vi.unstubAllGlobals();
});

describe("an engine that tabs share", () => {
  test("is started by one of them, and is ready for all", async () => {
    const { first, second } = await openTwo();
    expect(await first.link.ready).toEqual(await second.link.ready);
    expect(workers).toHaveLength(1);
  });

  test("answers a tab whose sign of life comes late", async () => {
    const first = openTab();
    await until(() => workers.length === 1);
    const request = navigator.locks.request.bind(navigator.locks);
    const gate = Promise.withResolvers<void>();
    vi.spyOn(navigator.locks, "request").mockImplementationOnce(
      async (...lock: Parameters<typeof request>) => {
        await gate.promise;
        return await request(...lock);
      },
    );
    const second = openTab();
    second.link.send(ask(1));
    workers[0]!.says(READY);
    await first.link.ready;
    // By the time that this one's request arrives, one of the second would have.
    const third = openTab();
    third.link.send(ask(1));
    const asked = () => workers[0]!.told.filter(({ type }) => type === "request");
    await until(() => asked().length > 0);
    gate.resolve();
    await until(() => asked().length === 2);
    for (const { id } of asked()) workers[0]!.says({ type: "head", id, status: 200, headers: [] });
    await expect.poll(() => second.answers).toHaveLength(1);
  });

  test("answers each tab what it asked, though they number their requests alike", async () => {
    const { first, second, worker } = await openTwo();
    first.link.send(ask(1));
    second.link.send(ask(1));
    await until(() => worker.told.filter(({ type }) => type === "request").length === 2);
    const ids = worker.told.flatMap(({ type, id }) => (type === "request" ? [id] : []));
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) worker.says({ type: "head", id, status: 200, headers: [["x", String(id)]] });
    await until(() => second.answers.length === 1);
    expect(first.answers).toEqual([{ type: "head", id: 1, status: 200, headers: [["x", String(ids[0])]] }]);
    expect(second.answers).toEqual([{ type: "head", id: 1, status: 200, headers: [["x", String(ids[1])]] }]);
  });

  test("ends the requests of a tab that goes", async () => {
    const { second, worker } = await openTwo();
    second.link.send(ask(1));
    await until(() => worker.told.some(({ type }) => type === "request"));
    const { id } = worker.told.find(({ type }) => type === "request")!;
    second.link.end(new Error("closed"));
    await until(() => worker.told.some(({ type }) => type === "abort"));
    expect(worker.told.at(-1)).toEqual({ type: "abort", id });
  });

  test("is started by another tab when the one that runs it goes; its requests in flight are lost", async () => {
    const { first, second, worker } = await openTwo();
    second.link.send(ask(1));
    first.link.end(new Error("closed"));
    expect(worker.isEnded).toBe(true);
    await until(() => workers.length === 2);
    expect(second.lost).toMatchObject([{ code: "engine_crashed" }]);
    second.link.send(ask(2));
    workers[1]!.says(READY);
    await until(() => workers[1]!.told.some(({ type }) => type === "request"));
    expect(workers[1]!.told.filter(({ type }) => type === "request")).toHaveLength(1);
  });

  test("is not started twice by a tab that comes while it starts", async () => {
    const first = openTab();
    await until(() => workers.length === 1);
    const second = openTab();
    workers[0]!.says(READY);
    await Promise.all([first.link.ready, second.link.ready]);
    const third = openTab();
    await third.link.ready;
    expect(workers).toHaveLength(1);
  });

  test("is tried by the next tab when it could not be started", async () => {
    const first = openTab();
    await until(() => workers.length === 1);
    const second = openTab();
    workers[0]!.says({ type: "refused", code: "insufficient_memory", message: "too large" });
    await expect(first.link.ready).rejects.toMatchObject({ code: "insufficient_memory" });
    await until(() => workers.length === 2);
    workers[1]!.says(READY);
    expect(await second.link.ready).toMatchObject({ alias: "tiny" });
  });
});
