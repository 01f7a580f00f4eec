import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { FetchMessage, StartMessage } from "../../../src/tab/worker-messages.ts";
import { SharedLink } from "../../../src/tab/engine-link.ts";

/** The workers that have been started. */
let workers: FakeWorker[] = [];

class FakeWorker extends EventTarget {
  readonly received: { type: string; id?: number }[] = [];
  isEnded = false;

  constructor() {
    super();
    workers.push(this);
  }

  postMessage(message: { type: string }): void {
    this.received.push(message);
  }

  emitMessage(data: unknown): void {
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
const createRequest = (id: number): FetchMessage => ({
  type: "request",
  id,
  head: { method: "GET", path: "/", headers: [] },
  body: undefined,
});

/** Waits for the effect of locks and channels between tabs. */
const until = async (condition: () => boolean): Promise<void> => {
  await expect.poll(condition, { interval: 5 }).toBe(true);
};

let links: SharedLink[] = [];
let key = "";

/** A tab with the messages that it has received. */
function openTab() {
  const answers: unknown[] = [];
  const interruptions: Error[] = [];
  const link = new SharedLink(key, "worker.js", start, {
    onAnswer: (message) => answers.push(message),
    onProgress: () => {},
    onInterrupted: (error) => interruptions.push(error),
    onEnd: () => {},
  });
  link.ready.catch(() => {});
  links.push(link);
  return { link, answers, lost: interruptions };
}

/** Two tabs; the first runs the engine. */
async function openTwo() {
  const first = openTab();
  await until(() => workers.length === 1);
  const second = openTab();
  workers[0]!.emitMessage(READY);
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

describe("an engine shared by several tabs", () => {
  test("is started by one tab, and is ready in all", async () => {
    const { first, second } = await openTwo();
    expect(await first.link.ready).toEqual(await second.link.ready);
    expect(workers).toHaveLength(1);
  });

  test("answers a tab whose own lock is granted late", async () => {
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
    second.link.send(createRequest(1));
    workers[0]!.emitMessage(READY);
    await first.link.ready;
    // Channels keep the order: a request that the second tab had sent would arrive before this one.
    const third = openTab();
    third.link.send(createRequest(1));
    const requests = () => workers[0]!.received.filter(({ type }) => type === "request");
    await until(() => requests().length > 0);
    gate.resolve();
    await until(() => requests().length === 2);
    for (const { id } of requests()) workers[0]!.emitMessage({ type: "head", id, status: 200, headers: [] });
    await expect.poll(() => second.answers).toHaveLength(1);
  });

  test("returns each answer to the tab that sent the request, although tabs use the same request IDs", async () => {
    const { first, second, worker } = await openTwo();
    first.link.send(createRequest(1));
    second.link.send(createRequest(1));
    await until(() => worker.received.filter(({ type }) => type === "request").length === 2);
    const ids = worker.received.flatMap(({ type, id }) => (type === "request" ? [id] : []));
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) worker.emitMessage({ type: "head", id, status: 200, headers: [["x", String(id)]] });
    await until(() => second.answers.length === 1);
    expect(first.answers).toEqual([{ type: "head", id: 1, status: 200, headers: [["x", String(ids[0])]] }]);
    expect(second.answers).toEqual([{ type: "head", id: 1, status: 200, headers: [["x", String(ids[1])]] }]);
  });

  test("aborts the requests of a tab that is closed", async () => {
    const { second, worker } = await openTwo();
    second.link.send(createRequest(1));
    await until(() => worker.received.some(({ type }) => type === "request"));
    const { id } = worker.received.find(({ type }) => type === "request")!;
    second.link.end(new Error("closed"));
    await until(() => worker.received.some(({ type }) => type === "abort"));
    expect(worker.received.at(-1)).toEqual({ type: "abort", id });
  });

  test("is started by another tab when the one that runs it is closed, and requests in flight fail", async () => {
    const { first, second, worker } = await openTwo();
    second.link.send(createRequest(1));
    first.link.end(new Error("closed"));
    expect(worker.isEnded).toBe(true);
    await until(() => workers.length === 2);
    expect(second.lost).toMatchObject([{ code: "engine_crashed" }]);
    second.link.send(createRequest(2));
    workers[1]!.emitMessage(READY);
    await until(() => workers[1]!.received.some(({ type }) => type === "request"));
    expect(workers[1]!.received.filter(({ type }) => type === "request")).toHaveLength(1);
  });

  test("is not started a second time for tabs that open later", async () => {
    const first = openTab();
    await until(() => workers.length === 1);
    const second = openTab();
    workers[0]!.emitMessage(READY);
    await Promise.all([first.link.ready, second.link.ready]);
    const third = openTab();
    await third.link.ready;
    expect(workers).toHaveLength(1);
  });

  test("is started by the next tab if the first one could not start it", async () => {
    const first = openTab();
    await until(() => workers.length === 1);
    const second = openTab();
    workers[0]!.emitMessage({ type: "refused", code: "insufficient_memory", message: "too large" });
    await expect(first.link.ready).rejects.toMatchObject({ code: "insufficient_memory" });
    await until(() => workers.length === 2);
    workers[1]!.emitMessage(READY);
    expect(await second.link.ready).toMatchObject({ alias: "tiny" });
  });
});
