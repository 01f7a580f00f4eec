import type { JetStreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { removeMessages } from "../../../src/fleet/jetstream/jetstream-errors.ts";

/** What a server of this version is asked to do to remove three messages. */
async function asked(version: string, cluster: string | undefined, before?: number): Promise<string[]> {
  const said: string[] = [];
  const left = new Map([
    ["s.a", [1, 2]],
    ["s.b", [3]],
  ]);
  const streams = {
    purge: async (stream: string, { filter, seq }: { filter: string; seq?: number }) =>
      void said.push(`purge ${stream} ${filter} ${seq}`),
    info: async () => ({ state: { subjects: { "s.a": 2, "s.b": 1 } } }),
    getMessage: async (_: string, { last_by_subj: subject }: { last_by_subj: string }) => {
      const seq = left.get(subject)?.at(-1);
      return seq === undefined ? null : { seq };
    },
    deleteMessage: async (_: string, seq: number) => {
      said.push(`delete ${seq}`);
      for (const those of left.values()) if (those.at(-1) === seq) those.pop();
      // Another machine has been quicker.
      if (seq === 2) throw new Error("no message found");
    },
  };
  const manager: JetStreamManager = Object({ streams });
  await removeMessages(manager, Object({ version, cluster }), "stream", "s.*", before);
  return said.toSorted();
}

test.each([
  ["2.9.10", undefined],
  ["2.9.18", "c"],
  ["2.10.0-beta.1", "c"],
  ["2.12.1", "c"],
  ["3.0.0", "c"],
])("a server of NATS %s, in cluster %s, is told what to remove", async (version, cluster) => {
  expect(await asked(version, cluster)).toEqual(["purge stream s.* undefined"]);
});

test.each(["2.9.10", "2.9.17", "2.8.4", "1.4.0"])(
  "a cluster of NATS %s removes messages one by one, since it would lose others after a crash",
  async (version) => {
    expect(await asked(version, "c")).toEqual(["delete 1", "delete 2", "delete 3"]);
  },
);

test("messages that came later stay", async () => {
  expect(await asked("2.12.1", "c", 3)).toEqual(["purge stream s.* 3"]);
  expect(await asked("2.9.10", "c", 3)).toEqual(["delete 1", "delete 2"]);
});
