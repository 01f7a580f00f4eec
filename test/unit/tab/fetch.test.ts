import { beforeEach, describe, expect, test, vi } from "vitest";
import { FetchClient, FetchServer, type Serve } from "../../../src/tab/fetch-channel.ts";

beforeEach(() => {
  vi.stubGlobal("location", { href: "http://page/" });
  return () => vi.unstubAllGlobals();
});

/** A client and a server that hear each other in the next turn, as a page and its worker do. */
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
  test("carries method, path, headers and body there, status, headers and body back", async () => {
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

  test("ignores the host of an address, so that clients may be given any", async () => {
    const { client } = connect((request) => new Response(request.url));
    expect(await (await client.fetch("http://127.0.0.1:8080/v1/models")).text()).toBe(
      "http://engine/v1/models",
    );
  });

  test("delivers a stream piece by piece, as fast as it is read", async () => {
    let made = 0;
    const { client } = connect(
      () =>
        new Response(
          new ReadableStream(
            {
              pull(controller) {
                made += 1;
                if (made > 100) controller.close();
                else controller.enqueue(new TextEncoder().encode(`${made} `));
              },
            },
            { highWaterMark: 0 },
          ),
        ),
    );
    const reader = (await client.fetch("/stream")).body!.getReader();
    const { value } = await reader.read();
    expect(new TextDecoder().decode(value)).toBe("1 ");
    expect(made).toBeLessThan(5);
    let rest = 1;
    while (!(await reader.read()).done) rest += 1;
    expect(rest).toBe(100);
  });

  test("aborts the request there when its signal aborts here", async () => {
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

  test("ends the stream there when its reader leaves", async () => {
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

  test("rejects when the answer fails, before its head and in its body", async () => {
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

  test("rejects what is under way, and what comes later, when the other side has ended", async () => {
    const client = new FetchClient(() => undefined);
    const waiting = client.fetch("/");
    await Promise.resolve();
    queueMicrotask(() => client.end(new Error("closed")));
    await expect(waiting).rejects.toThrow("closed");
    await expect(client.fetch("/")).rejects.toThrow("closed");
  });

  test("keeps requests apart that run at the same time", async () => {
    const { client } = connect(async (request) => new Response(request.url));
    const texts = await Promise.all(["/a", "/b", "/c"].map(async (url) => (await client.fetch(url)).text()));
    expect(texts).toEqual(["http://engine/a", "http://engine/b", "http://engine/c"]);
  });
});
