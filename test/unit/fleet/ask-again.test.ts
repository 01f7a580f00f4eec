import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { expect, test, vi } from "vitest";
import { withResends } from "../../../src/fleet/jetstream/jetstream-errors.ts";
import { jetStreamMachine } from "../../support/jetstream-machine.ts";
import { loseAnswers, loseRequests } from "../../support/lossy-nats.ts";
import { NATS } from "../../support/nats-server.ts";

test.skipIf(NATS.isMissing)(
  `creates streams for the first upload although the first stream requests are lost${NATS.note}`,
  async () => {
    const { jetStream, nats } = await jetStreamMachine();
    loseRequests(nats, "$JS.API.STREAM.INFO");
    expect(await jetStream.primaryStore()).toBe("fleet");
  },
);

test.skipIf(NATS.isMissing)(
  `stores a message once although its acknowledgment is lost${NATS.note}`,
  async () => {
    const { jetStream, nats } = await jetStreamMachine();
    const subject = jetStream.subject("batches", "batch", "a");
    await jetStream.put(subject, Buffer.from("first"), 0);
    const lost = loseAnswers(nats, subject);
    const second = await jetStream.put(subject, Buffer.from("second"), 1);
    expect(lost.mock.calls.length).toBeGreaterThan(1);
    expect(second).toBe(2);
    expect(await jetStream.put(subject, Buffer.from("third"), second)).toBe(3);
  },
);

test.skipIf(NATS.isMissing)(
  `creates one consumer although its creation is requested twice${NATS.note}`,
  async () => {
    const { jetStream, nats } = await jetStreamMachine();
    await jetStream.put(jetStream.subject("batches", "batch", "a"), Buffer.from("first"), 0);
    loseAnswers(nats, "$JS.API.CONSUMER.CREATE");
    const read: string[] = [];
    await jetStream.readAll("batches", jetStream.subject("batches", "batch", "*"), {}, ({ data }) => {
      read.push(Buffer.from(data).toString());
    });
    expect(read).toEqual(["first"]);
    const readers = async (): Promise<number> =>
      await jetStream.use(
        async ({ streams }) => (await streams.info(jetStream.stream("batches"))).state.consumer_count,
      );
    await expect.poll(readers, { interval: 20 }).toBe(0);
  },
);

test("does not resend a request that a slow connection is still sending", async () => {
  const line = Promise.withResolvers<void>();
  const request = vi.fn<NatsConnection["request"]>(async () => await new Promise(() => undefined));
  const flush = vi.fn<NatsConnection["flush"]>(async () => await line.promise);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it needs of a connection
  const nats = { request, flush } as unknown as NatsConnection;
  void withResends(nats).request("subject", "data", { timeout: 12_000 });
  await expect.poll(() => flush.mock.calls.length, { interval: 10 }).toBe(1);
  expect(request).toHaveBeenCalledTimes(1);
  line.resolve();
  await expect.poll(() => request.mock.calls.length, { interval: 10 }).toBeGreaterThan(1);
});

test("reports a missing cluster leader only when none appears before the timeout", async () => {
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
  const asked = withResends(nats);
  expect((await asked.request("subject", "data", { timeout: 12_000 })).data).toBe(found);
  expect((await asked.request("subject", "data", { timeout: 600 })).data).toBe(none);
  // A disconnected server must not delay the reply.
  const lost = withResends(Object.assign(nats, { flush: async () => await new Promise(() => undefined) }));
  expect((await lost.request("subject", "data", { timeout: 600 })).data).toBe(none);
});
