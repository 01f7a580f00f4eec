import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { makeStream } from "../../../src/fleet/jetstream/streams.ts";

const NO_PEERS = 10_005;
const NO_ROOM = 10_047;
const NAME_IN_USE = 10_058;
const NO_STREAM = 10_059;
const NOT_CLUSTERED = 10_074;
const NO_LEADER = 10_008;

/**
 * What a stream asks for, one after the other, of a server that answers so, and what is told of it.
 * @param copies of the stream that is there; null: none is
 */
async function asked(answers: readonly (Error | undefined)[], copies: number | null = null) {
  const wishes: unknown[] = [];
  const left = [...answers];
  const answer = async (wish: unknown): Promise<void> => {
    wishes.push(wish);
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
  const told = await makeStream(manager, { name: "s" }, [64, 16], true).catch((error: unknown) => error);
  return { wishes, told };
}

const api = (code: number): Error =>
  new JetStreamApiError({ code: 500, err_code: code, description: `error ${code}` });

test("a stream is smaller, or has fewer copies, where the server has no room for more", async () => {
  const few = await asked([api(NO_PEERS), api(NO_PEERS), api(NO_ROOM), undefined]);
  expect(few.wishes).toEqual([
    [64, 3],
    [16, 3],
    [64, 2],
    [16, 2],
  ]);
  expect(few.told).toEqual({ copies: 2, why: expect.stringContaining(`${NO_PEERS}`) });
  expect(await asked([api(NO_ROOM), undefined])).toEqual({
    wishes: [
      [64, 3],
      [16, 3],
    ],
    told: undefined,
  });
});

test("a stream that another machine has just made is there", async () => {
  expect(await asked([api(NAME_IN_USE)])).toEqual({ wishes: [[64, 3]], told: undefined });
});

test.each([new errors.TimeoutError(), api(NO_LEADER)])(
  "after %s no other stream is made in the place of one that may come to be",
  async (error) => {
    expect(await asked([error])).toEqual({ wishes: [[64, 3]], told: error });
  },
);

test("a stream with fewer copies gets as many as the cluster gives", async () => {
  expect(await asked([undefined], 1)).toEqual({ wishes: [3], told: undefined });
  expect(await asked([], 3)).toEqual({ wishes: [], told: undefined });
  expect(await asked([], 5)).toEqual({ wishes: [], told: undefined });
  const why: unknown = expect.stringContaining(`${NO_PEERS}`);
  expect(await asked([api(NO_PEERS), undefined], 1)).toEqual({ wishes: [3, 2], told: { copies: 2, why } });
  expect(await asked([api(NO_PEERS), api(NO_ROOM)], 1)).toEqual({ wishes: [3, 2], told: { copies: 1, why } });
});

test("a stream is used as it is when it cannot be changed", async () => {
  const error = new errors.TimeoutError();
  expect(await asked([error], 1)).toEqual({ wishes: [3], told: { copies: 1, why: error.message } });
  // A cluster of which JetStream is no part.
  expect((await asked([api(NOT_CLUSTERED), api(NOT_CLUSTERED)], 1)).told).toBeUndefined();
});
