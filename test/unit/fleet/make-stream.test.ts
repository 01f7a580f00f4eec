import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { makeStream } from "../../../src/fleet/jetstream/streams.ts";

const NO_PEERS = 10_005;
const STORAGE_FULL = 10_047;
const NAME_IN_USE = 10_058;
const NO_STREAM = 10_059;
const NOT_CLUSTERED = 10_074;
const NO_LEADER = 10_008;

/**
 * Returns the requests to a server with these answers, and the result.
 * @param copies replicas of the existing stream; null if there is none
 */
async function requestsFor(answers: readonly (Error | undefined)[], copies: number | null = null) {
  const requests: unknown[] = [];
  const left = [...answers];
  const answer = async (request: unknown): Promise<void> => {
    requests.push(request);
    const error = left.shift();
    if (error) throw error;
  };
  const streams = {
    info: async () => {
      if (copies === null) throw api(NO_STREAM);
      return { config: { num_replicas: copies } };
    },
    add: async (config: Record<string, unknown>) =>
      await answer([config["max_bytes"], config["num_replicas"]]),
    update: async (_: string, config: Record<string, unknown>) => await answer(config["num_replicas"]),
  };
  const manager: JetStreamManager = Object({ streams });
  const result = await makeStream(manager, { name: "s" }, [64, 16], true).catch((error: unknown) => error);
  return { requests, result };
}

const api = (code: number): Error =>
  new JetStreamApiError({ code: 500, err_code: code, description: `error ${code}` });

test("tries smaller sizes, then fewer replicas, when the server refuses a stream", async () => {
  const few = await requestsFor([api(NO_PEERS), api(NO_PEERS), api(STORAGE_FULL), undefined]);
  expect(few.requests).toEqual([
    [64, 3],
    [16, 3],
    [64, 2],
    [16, 2],
  ]);
  expect(few.result).toEqual({ replicas: 2, why: expect.stringContaining(`${NO_PEERS}`) });
  expect(await requestsFor([api(STORAGE_FULL), undefined])).toEqual({
    requests: [
      [64, 3],
      [16, 3],
    ],
    result: undefined,
  });
});

test("accepts a stream that another machine has just created", async () => {
  expect(await requestsFor([api(NAME_IN_USE)])).toEqual({ requests: [[64, 3]], result: undefined });
});

test.each([new errors.TimeoutError(), api(NO_LEADER)])(
  "after %s creates no other stream, since the first may still appear",
  async (error) => {
    expect(await requestsFor([error])).toEqual({ requests: [[64, 3]], result: error });
  },
);

test("adds as many replicas as the cluster allows", async () => {
  expect(await requestsFor([undefined], 1)).toEqual({ requests: [3], result: undefined });
  expect(await requestsFor([], 3)).toEqual({ requests: [], result: undefined });
  expect(await requestsFor([], 5)).toEqual({ requests: [], result: undefined });
  const why: unknown = expect.stringContaining(`${NO_PEERS}`);
  expect(await requestsFor([api(NO_PEERS), undefined], 1)).toEqual({
    requests: [3, 2],
    result: { replicas: 2, why },
  });
  expect(await requestsFor([api(NO_PEERS), api(STORAGE_FULL)], 1)).toEqual({
    requests: [3, 2],
    result: { replicas: 1, why },
  });
});

test("uses a stream that cannot be updated as it is", async () => {
  const error = new errors.TimeoutError();
  expect(await requestsFor([error], 1)).toEqual({
    requests: [3],
    result: { replicas: 1, why: error.message },
  });
  // The server's cluster does not use JetStream.
  expect((await requestsFor([api(NOT_CLUSTERED), api(NOT_CLUSTERED)], 1)).result).toBeUndefined();
});
