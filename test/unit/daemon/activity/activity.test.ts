import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { Activity, type EndedRequest } from "../../../../src/daemon/activity/activity.ts";
import { SpeedMeter } from "../../../../src/fleet/speed-meter.ts";
import { createLogger } from "../../../../src/daemon/create-logger.ts";
import { ServiceEvents } from "../../../../src/events/service-events.ts";
import { Writable } from "node:stream";

const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
const head = { id: "an-id", method: "POST", path: "/api/chat" };
const end = { status: 200, ms: 12, isAborted: false };
const everything = { after: 0, level: "trace" } as const;

/** Runs a request that does some work. */
async function request(
  activity: Activity,
  work: () => void | Promise<void>,
  path = head.path,
): Promise<void> {
  const onEnd = await activity.followRequest({ ...head, path }, async () => await work());
  onEnd(end);
}

function generate(activity: Activity, model = "mini"): void {
  const work = activity.followWork();
  work.report({ model });
  work.report({ promptTokens: 5, completionTokens: 7, firstTokenMs: 3.4, tokensPerSecond: 50 });
  work.end();
}

describe("requests", () => {
  test("contain the figures of their work, also when they run concurrently", async () => {
    const activity = new Activity();
    const both = Promise.withResolvers<void>();
    const first = request(activity, async () => {
      await both.promise;
      generate(activity, "one");
    });
    await request(activity, async () => {
      both.resolve();
      await first;
      generate(activity, "two");
    });
    expect(activity.report(everything).requests).toMatchObject([{ model: "one" }, { model: "two" }]);
    expect(activity.report(everything).requests[0]).toEqual({
      number: expect.any(Number),
      ...head,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      status: 200,
      ms: 12,
      aborted: false,
      failure: undefined,
      model: "one",
      prompt_tokens: 5,
      cached_tokens: undefined,
      completion_tokens: 7,
      first_token_ms: 3,
      tokens_per_second: 50,
    });
  });

  test("are passed to listeners at their end, with the fields of the log line", async () => {
    const activity = new Activity();
    const ended: EndedRequest[] = [];
    activity.onRequestEnd((each) => ended.push(each));
    const traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const onEnd = await activity.followRequest({ ...head, traceParent }, async () => generate(activity));
    const logged = { model: "mini", prompt_tokens: 5, completion_tokens: 7, first_token_ms: 3 };
    expect(onEnd(end)).toEqual(logged);
    generate(activity);
    expect(ended).toMatchObject([
      { head: { ...head, traceParent }, end, logged, isSocketChat: false },
      { head: { method: "WS", path: "/ws/chat" }, end: { status: 101 }, logged, isSocketChat: true },
    ]);
    expect(JSON.stringify(activity.report(everything))).not.toContain(traceParent);
  });

  test("contain the error of the response rather than that of the work", async () => {
    const activity = new Activity();
    const onEnd = await activity.followRequest(head, async () => {
      const work = activity.followWork();
      work.report({ failure: "model_not_found" });
      work.end();
    });
    onEnd({ ...end, status: 503, errorCode: "fleet_unreachable" });
    expect(activity.report(everything).requests).toMatchObject([{ failure: "fleet_unreachable" }]);
  });

  test("log the error of their work, and none without an error", async () => {
    const activity = new Activity();
    const onEnd = await activity.followRequest(head, async () => {
      const work = activity.followWork();
      work.report({ model: "mini", failure: "engine_crashed" });
      work.end();
    });
    expect(onEnd({ ...end, status: 500 })).toEqual({ model: "mini", error: "engine_crashed" });
    const onGoodEnd = await activity.followRequest(head, async () => generate(activity));
    expect(onGoodEnd(end)).not.toHaveProperty("error");
  });

  test("that only read do not evict those that change something or fail", async () => {
    const activity = new Activity();
    await request(activity, () => undefined, "/api/models/load");
    const read = async (status: number): Promise<void> => {
      const onEnd = await activity.followRequest(
        { id: "a", method: "GET", path: "/metrics" },
        async () => {},
      );
      onEnd({ ...end, status });
    };
    await read(404);
    for (let i = 0; i < 1000; i += 1) await read(200);
    const { requests } = activity.report(everything);
    expect(requests.map(({ path, status }) => [path, status]).slice(0, 2)).toEqual([
      ["/api/models/load", 200],
      ["/metrics", 404],
    ]);
    expect(requests.length).toBeLessThan(200);
  });

  test("pass their ids to their work", async () => {
    const activity = new Activity();
    const work = new SpeedMeter().follow(activity.followWork);
    await activity.followRequest({ id: "req", method: "POST", path: "/" }, async () => {
      expect(work().request).toBe("req");
      expect(work().fork().request).toBe("req");
    });
  });

  test("sum the tokens of several answers", async () => {
    const activity = new Activity();
    await request(activity, () => {
      const work = activity.followWork();
      work.report({ model: "mini", promptTokens: 5, firstTokenMs: 3, completionTokens: 7 });
      work.fork().report({ model: "mini", promptTokens: 5, firstTokenMs: 90, completionTokens: 4 });
    });
    expect(activity.report(everything).requests).toMatchObject([
      { prompt_tokens: 5, completion_tokens: 11, first_token_ms: 3 },
    ]);
  });

  test("with a model are not evicted by those of pages and scrapers, and all are limited", async () => {
    const activity = new Activity();
    await request(activity, () => generate(activity));
    for (let i = 0; i < 2000; i += 1) await request(activity, () => undefined, `/metrics${"x".repeat(5000)}`);
    const { requests } = activity.report(everything);
    expect(requests[0]).toMatchObject({ model: "mini" });
    expect(requests.length).toBeLessThanOrEqual(500);
    expect(JSON.stringify(requests).length).toBeLessThan(300_000);
  });

  test("include the chats of a WebSocket", () => {
    const activity = new Activity();
    generate(activity);
    expect(activity.report(everything).requests).toMatchObject([
      { method: "WS", path: "/ws/chat", status: 101, model: "mini", completion_tokens: 7 },
    ]);
  });
});

test("stores the latest events with their reasons", () => {
  const activity = new Activity();
  const events = new ServiceEvents();
  activity.subscribe(events);
  events.emit({ type: "engine-restarted", model: "mini", reason: "killed by SIGKILL" });
  expect(activity.report(everything).events).toMatchObject([
    { type: "engine-restarted", model: "mini", reason: "killed by SIGKILL", time: expect.any(String) },
  ]);
  for (let i = 0; i < 1000; i += 1) {
    events.emit({ type: "model-failed", model: `m${i}`, code: "engine_crashed", message: "x".repeat(2000) });
  }
  const left = activity.report(everything).events;
  expect(left.at(-1)).toMatchObject({ model: "m999" });
  expect(JSON.stringify(left).length).toBeLessThan(200_000);
});

describe("the log", () => {
  test("is stored by level and redacted, without the lines of requests", () => {
    const activity = new Activity();
    const logger = createLogger({ level: "info", format: "text" }, nowhere, activity.log);
    logger.debug("too low for this log");
    logger.info({ model: "mini", headers: { authorization: "hush" } }, "loaded");
    logger.child({ request_id: "1" }).info({ method: "GET" }, "request");
    logger.error({ err: new Error("broken") }, "failed");
    const { logs } = activity.report(everything);
    expect(logs).toMatchObject([
      { level: "info", message: "loaded", fields: { model: "mini" } },
      { level: "error", message: "failed", fields: { err: { message: "broken" } } },
    ]);
    expect(JSON.stringify(logs)).not.toContain("hush");
    expect(activity.report({ after: 0, level: "warn" }).logs).toHaveLength(1);
    expect(activity.report({ after: logs[0]!.number, level: "trace" }).logs).toHaveLength(1);
  });

  test("keeps warnings among many other lines, and shortens long lines", () => {
    const activity = new Activity();
    const logger = pino({ level: "trace", base: null }, { write: activity.log });
    logger.warn("the one problem");
    for (let i = 0; i < 5000; i += 1) logger.info({ i }, "business as usual");
    logger.info({ text: "x".repeat(1_000_000) }, "monstrous");
    const { logs } = activity.report(everything);
    expect(logs[0]).toMatchObject({ level: "warn", message: "the one problem" });
    expect(logs.at(-1)).toMatchObject({ level: "info", message: "monstrous …", fields: {} });
    expect(logs.length).toBeLessThanOrEqual(800);
  });
});

test("numbers of a restarted daemon are greater than those before", async () => {
  const before = new Activity();
  await request(before, () => undefined);
  const { next } = before.report(everything);
  await new Promise((resolve) => {
    setTimeout(resolve, 2);
  });
  const after = new Activity();
  await request(after, () => undefined);
  expect(after.report({ after: next, level: "trace" }).requests).toHaveLength(1);
});
