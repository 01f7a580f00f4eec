import { expect, test } from "vitest";
import { fakeServices, appOf } from "../../../support/fake-services.ts";

async function open(draining = new AbortController()) {
  const services = fakeServices({ draining: draining.signal });
  const response = await appOf(services).request("/api/events");
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  return { services, response, reader };
}

test("GET /api/events streams later events as server-sent events", async () => {
  const { services, response, reader } = await open();
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect((await reader.read()).value).toBe(": connected\n\n");
  const read = reader.read();
  services.events.emit({ type: "model-loaded", model: "fake" });
  const frame = (await read).value ?? "";
  const [, json = ""] = /^event: model-loaded\ndata: (.*)\n\n$/.exec(frame) ?? [];
  expect(JSON.parse(json)).toEqual({ type: "model-loaded", model: "fake", time: expect.any(String) });
  await reader.cancel();
});

test("escapes line breaks in a model's name", async () => {
  const { services, reader } = await open();
  await reader.read();
  services.events.emit({ type: "model-loaded", model: "x\n\nevent: fake\ndata: {}" });
  expect((await reader.read()).value).not.toMatch(/^event: fake/m);
  await reader.cancel();
});

test("the stream ends when draining begins", async () => {
  const draining = new AbortController();
  const { reader } = await open(draining);
  await reader.read();
  draining.abort();
  expect((await reader.read()).done).toBe(true);
});

test("unsubscribes a client that has disconnected", async () => {
  const services = fakeServices();
  const subscribe = services.events.subscribe.bind(services.events);
  const forgotten = Promise.withResolvers<void>();
  services.events.subscribe = (listener) => {
    const unsubscribe = subscribe(listener);
    return () => {
      unsubscribe();
      forgotten.resolve();
    };
  };
  const client = new AbortController();
  const response = await appOf(services).request("/api/events", { signal: client.signal });
  const reader = response.body!.getReader();
  await reader.read();
  const remaining = reader.read();
  client.abort();
  await forgotten.promise;
  expect((await remaining).done).toBe(true);
});

test("ends the stream of a client that does not read, so that its queue stays bounded", async () => {
  const { services, reader } = await open();
  await reader.read();
  for (let i = 0; i < 1100; i += 1) services.events.emit({ type: "model-loaded", model: `m${i}` });
  let text = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
  expect(text).toMatch(/event: error\ndata: .*"code":"overloaded"/);
});
