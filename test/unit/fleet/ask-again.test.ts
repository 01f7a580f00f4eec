import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { expect, test, vi } from "vitest";
import { askingAgain } from "../../../src/fleet/jetstream/jetstream-errors.ts";
import { jetStreamMachine } from "../../support/jetstream-machine.ts";
import { loseAnswers, loseRequests } from "../../support/lossy-nats.ts";
import { NATS } from "../../support/nats-server.ts";

test.skipIf(NATS.isMissing)(
  `streams that a server says nothing of at first are there for the first upload${NATS.note}`,
  async () => {
    const { place, nats } = await jetStreamMachine();
    loseRequests(nats, "$JS.API.STREAM.INFO");
    expect(await place.home()).toBe("fleet");
  },
);

test.skipIf(NATS.isMissing)(
  `a message is stored once, and known to be, if the answer to it is lost${NATS.note}`,
  async () => {
    const { place, nats } = await jetStreamMachine();
    const subject = place.subject("batches", "batch", "a");
    await place.put(subject, Buffer.from("first"), 0);
    const lost = loseAnswers(nats, subject);
    const second = await place.put(subject, Buffer.from("second"), 1);
    expect(lost.mock.calls.length).toBeGreaterThan(1);
    expect(second).toBe(2);
    expect(await place.put(subject, Buffer.from("third"), second)).toBe(3);
  },
);

test.skipIf(NATS.isMissing)(`a reader of messages that is asked for twice is one${NATS.note}`, async () => {
  const { place, nats } = await jetStreamMachine();
  await place.put(place.subject("batches", "batch", "a"), Buffer.from("first"), 0);
  loseAnswers(nats, "$JS.API.CONSUMER.CREATE");
  const read: string[] = [];
  await place.readAll("batches", place.subject("batches", "batch", "*"), {}, ({ data }) => {
    read.push(Buffer.from(data).toString());
  });
  expect(read).toEqual(["first"]);
  const readers = async (): Promise<number> =>
    await place.use(
      async ({ streams }) => (await streams.info(place.stream("batches"))).state.consumer_count,
    );
  await expect.poll(readers, { interval: 20 }).toBe(0);
});

test("what is still on its way on a slow line is not sent again", async () => {
  const line = Promise.withResolvers<void>();
  const request = vi.fn<NatsConnection["request"]>(async () => await new Promise(() => undefined));
  const flush = vi.fn<NatsConnection["flush"]>(async () => await line.promise);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it needs of a connection
  const nats = { request, flush } as unknown as NatsConnection;
  void askingAgain(nats).request("subject", "data", { timeout: 12_000 });
  await expect.poll(() => flush.mock.calls.length, { interval: 10 }).toBe(1);
  expect(request).toHaveBeenCalledTimes(1);
  line.resolve();
  await expect.poll(() => request.mock.calls.length, { interval: 10 }).toBeGreaterThan(1);
});

test("that a cluster has no leader is told only when it has found none in time", async () => {
  const [none, found] = ["10008", "0"].map((code) =>
    Buffer.from(`{"error":{"code":503,"err_code":${code},"description":""}}`),
  );
  const answers = [none, found];
  const request = vi.fn<NatsConnection["request"]>(
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is read of a message
    async () => ({ data: answers.shift() ?? none }) as unknown as Msg,
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it needs of a connection
  const nats = { request, flush: async () => undefined } as unknown as NatsConnection;
  const asked = askingAgain(nats);
  expect((await asked.request("subject", "data", { timeout: 12_000 })).data).toBe(found);
  expect((await asked.request("subject", "data", { timeout: 600 })).data).toBe(none);
  // A connection that is lost meanwhile does not keep it waiting.
  const lost = askingAgain(Object.assign(nats, { flush: async () => await new Promise(() => undefined) }));
  expect((await lost.request("subject", "data", { timeout: 600 })).data).toBe(none);
});
