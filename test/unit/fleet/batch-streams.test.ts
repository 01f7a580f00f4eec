import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { addStream } from "../../../src/fleet/batches/batch-streams.ts";

const NO_ROOM = 10_047;
const NAME_IN_USE = 10_058;
const NO_LEADER = 10_008;

/** What a stream asks for, one after the other, of a server that answers so. */
async function asked(answers: readonly (Error | undefined)[]): Promise<unknown[]> {
  const wishes: unknown[] = [];
  const left = [...answers];
  const add = async ({ max_bytes: bytes, num_replicas: copies }: Record<string, unknown>): Promise<void> => {
    wishes.push([bytes, copies]);
    const answer = left.shift();
    if (answer) throw answer;
  };
  const manager: JetStreamManager = Object({ streams: { add } });
  await addStream(manager, { name: "s" }, [64, 16], true).catch((error: unknown) => wishes.push(error));
  return wishes;
}

const api = (code: number): Error =>
  new JetStreamApiError({ code: 500, err_code: code, description: `error ${code}` });

test("a stream is smaller, or has fewer copies, where the server has no room for more", async () => {
  expect(await asked([api(NO_ROOM), api(NO_ROOM), undefined])).toEqual([
    [64, 3],
    [16, 3],
    [64, 1],
  ]);
});

test("a stream that another machine has just made is there", async () => {
  expect(await asked([api(NAME_IN_USE)])).toEqual([[64, 3]]);
});

test.each([new errors.TimeoutError(), api(NO_LEADER)])(
  "after %s no other stream is made in the place of one that may come to be",
  async (error) => {
    expect(await asked([error])).toEqual([[64, 3], error]);
  },
);
