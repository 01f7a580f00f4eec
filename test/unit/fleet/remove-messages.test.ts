import type { JetStreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { removeMessages } from "../../../src/fleet/jetstream/jetstream-errors.ts";

/** Returns the requests to a server of this version that remove three messages. */
async function requestsOf(version: string, cluster: string | undefined, before?: number): Promise<string[]> {
  const requests: string[] = [];
  const left = new Map([
    ["s.a", [1, 2]],
    ["s.b", [3]],
  ]);
  const streams = {
    purge: async (stream: string, { filter, seq }: { filter: string; seq?: number }) =>
      void requests.push(`purge ${stream} ${filter} ${seq}`),
    info: async () => ({ state: { subjects: { "s.a": 2, "s.b": 1 } } }),
    getMessage: async (_: string, { last_by_subj: subject }: { last_by_subj: string }) => {
      const seq = left.get(subject)?.at(-1);
      return seq === undefined ? null : { seq };
    },
    deleteMessage: async (_: string, seq: number) => {
      requests.push(`delete ${seq}`);
      for (const those of left.values()) if (those.at(-1) === seq) those.pop();
      // Another machine has deleted it first.
      if (seq === 2) throw new Error("no message found");
    },
  };
  const manager: JetStreamManager = Object({ streams });
  await removeMessages(manager, Object({ version, cluster }), "stream", "s.*", before);
  return requests.toSorted();
}

test.each([
  ["2.9.10", undefined],
  ["2.9.18", "c"],
  ["2.10.0-beta.1", "c"],
  ["2.12.1", "c"],
  ["3.0.0", "c"],
])("purges the subject on a server of NATS %s in cluster %s", async (version, cluster) => {
  expect(await requestsOf(version, cluster)).toEqual(["purge stream s.* undefined"]);
});

test.each(["2.9.10", "2.9.17", "2.8.4", "1.4.0"])(
  "deletes messages one by one on a cluster of NATS %s, whose purges are unsafe",
  async (version) => {
    expect(await requestsOf(version, "c")).toEqual(["delete 1", "delete 2", "delete 3"]);
  },
);

test("keeps newer messages", async () => {
  expect(await requestsOf("2.12.1", "c", 3)).toEqual(["purge stream s.* 3"]);
  expect(await requestsOf("2.9.10", "c", 3)).toEqual(["delete 1", "delete 2"]);
});
