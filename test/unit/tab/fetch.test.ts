import { beforeEach, describe, expect, test, vi } from "vitest";
import { FetchClient, FetchServer, type Serve } from "../../../src/tab/fetch-channel.ts";

beforeEach(() => {
  vi.stubGlobal("location", { href: "http://page/" });
  return () => vi.unstubAllGlobals();
});

/** Connects a client and a server that receive messages asynchronously, like a page and its worker. */
function connect(serve: Serve): { client: FetchClient; asked: string[] } {
  const asked: string[] = [];
  const client = new FetchClient((message) => {
    asked.push(message.type);
    queueMicrotask(() => server.receive(message));
  });
  const server = new FetchServer(serve, (message) => queueMicrotask(() => client.receive(message)));
  return { client, asked };
}

describe("fetch through messages", () => {
  test("transfers method, path, headers and body of requests, and status, headers and body of responses", async () => {
    const { client } = connect(async (request, { body }) =>
      Response.json(
        {
          method: request.method,
          url: request.url,
          key: request.headers.get("x-key"),
          body: new TextDecoder().decode(body),
        },
        { status: 418, headers: { "x-answer": "yes" } },
      ),
    );
    const answer = await client.fetch("/v1/chat?a=b", {
      method: "POST",
      headers: { "x-key": "k" },
      body: "hello",
    });
    expect([answer.status, answer.headers.get("x-answer")]).toEqual([418, "yes"]);
    expect(await answer.json()).toEqual({
      method: "POST",
      url: "http://engine/v1/chat?a=b",
      key: "k",
      body: "hello",
    });
  });

  test("ignores the host of a URL, so that clients may use any base URL", async () => {
    const { client } = connect((request) => new Response(request.url));
    expect(await (await client.fetch("http://127.0.0.1:8080/v1/models")).text()).toBe(
      "http://engine/v1/models",
    );
  });

  test("delivers a stream in chunks, no faster than it is read", async () => {
    let produced = 0;
    const { client } = connect(
      () =>
        new Response(
          new ReadableStream(
            {
              pull(controller) {
                produced += 1;
                if (produced > 100) controller.close();
                else controller.enqueue(new TextEncoder().encode(`${produced} `));
              },
            },
            { highWaterMark: 0 },
          ),
        ),
    );
    const reader = (await client.fetch("/stream")).body!.getReader();
    const { value } = await reader.read();
    expect(new TextDecoder().decode(value)).toBe("1 ");
    expect(produced).toBeLessThan(5);
    let chunkCount = 1;
    while (!(await reader.read()).done) chunkCount += 1;
    expect(chunkCount).toBe(100);
  });

  test("aborts the request on the server if the signal of the client aborts", async () => {
    const ended = Promise.withResolvers<void>();
    const { client } = connect(
      (request) =>
        new Promise<Response>(() =>
          request.signal.addEventListener("abort", () => ended.resolve(), { once: true }),
        ),
    );
    const controller = new AbortController();
    const answer = client.fetch("/slow", { signal: controller.signal });
    queueMicrotask(() => queueMicrotask(() => controller.abort(new Error("enough"))));
    await expect(answer).rejects.toThrow("enough");
    await ended.promise;
  });

  test("cancels the stream on the server if the client cancels its body", async () => {
    const cancelled = Promise.withResolvers<void>();
    const { client } = connect(
      () =>
        new Response(
          new ReadableStream({ pull: () => new Promise(() => {}), cancel: () => cancelled.resolve() }),
        ),
    );
    await (await client.fetch("/stream")).body!.cancel();
    await expect(cancelled.promise).resolves.toBeUndefined();
  });

  test("rejects if the response fails, before its headers or in its body", async () => {
    const { client } = connect((request) => {
      if (request.url.endsWith("early")) throw new Error("no answer");
      return new Response(
        new ReadableStream({ pull: (controller) => controller.error(new Error("broke off")) }),
      );
    });
    await expect(client.fetch("/early")).rejects.toThrow("no answer");
    const late = await client.fetch("/late");
    await expect(late.text()).rejects.toThrow("broke off");
  });

  test("rejects requests in flight and later ones after it was ended", async () => {
    const client = new FetchClient(() => undefined);
    const waiting = client.fetch("/");
    await Promise.resolve();
    queueMicrotask(() => client.end(new Error("closed")));
    await expect(waiting).rejects.toThrow("closed");
    await expect(client.fetch("/")).rejects.toThrow("closed");
  });

  test("returns the right response to each of several concurrent requests", async () => {
    const { client } = connect(async (request) => new Response(request.url));
    const texts = await Promise.all(["/a", "/b", "/c"].map(async (url) => (await client.fetch(url)).text()));
    expect(texts).toEqual(["http://engine/a", "http://engine/b", "http://engine/c"]);
  });
});
