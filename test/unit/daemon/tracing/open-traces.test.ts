import { once } from "node:events";
import { createServer } from "node:http";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { openTraces } from "../../../../src/daemon/tracing/open-traces.ts";
import type { TracedRequest } from "../../../../src/daemon/tracing/request-spans.ts";

const LOOK: TracedRequest = {
  head: { id: "an-id", method: "GET", path: "/health" },
  startedAt: new Date(),
  end: { status: 200, ms: 1, isAborted: false },
  work: {},
};

const servers: { close(): unknown }[] = [];
afterEach(() => servers.splice(0).forEach((server) => server.close()));

/** A receiver that answers with a status, once it may, and the paths that it was asked for. */
async function receiver(status: number, mayAnswer: Promise<unknown> = Promise.resolve()) {
  const paths: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url);
    request.resume().once("end", () => void mayAnswer.then(() => response.writeHead(status).end()));
  }).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("no port");
  return { url: `http://127.0.0.1:${address.port}`, paths };
}

test.each(["", "/", "/base/"])("spans go to /v1/traces below the endpoint (%j)", async (ending) => {
  const { url, paths } = await receiver(200);
  const problems: string[] = [];
  const traces = openTraces({
    endpoint: url + ending,
    version: "1",
    onProblem: (each) => problems.push(each),
  });
  traces.add(LOOK);
  await traces.close();
  expect(paths).toEqual([`${ending.replace(/\/$/, "")}/v1/traces`]);
  expect(problems).toEqual([]);
});

test("a receiver that refuses them is told of once", async () => {
  const { url } = await receiver(400);
  const problems: string[] = [];
  const traces = openTraces({ endpoint: url, version: "1", onProblem: (each) => problems.push(each) });
  // More than one batch.
  for (let i = 0; i < 1000; i += 1) traces.add(LOOK);
  await traces.close();
  expect(problems).toEqual([expect.any(String)]);
});

test.each([
  ["that takes its time gets the last ones", true],
  ["that never answers holds nobody up for long", false],
])("a receiver %s", async (_, answers) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const answer = Promise.withResolvers<void>();
  const { url, paths } = await receiver(200, answer.promise);
  const traces = openTraces({ endpoint: url, version: "1", onProblem: () => undefined });
  traces.add(LOOK);
  let isClosed = false;
  const closing = traces.close().then(() => (isClosed = true));
  await expect.poll(() => paths).toEqual(["/v1/traces"]);
  await vi.advanceTimersByTimeAsync(4000);
  expect(isClosed).toBe(false);
  if (answers) answer.resolve();
  else await vi.advanceTimersByTimeAsync(2000);
  await closing;
  answer.resolve();
});
