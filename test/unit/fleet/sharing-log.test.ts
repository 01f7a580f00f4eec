import { errors } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { NoJetStream } from "../../../src/fleet/jetstream/jetstream-errors.ts";
import { SharingLog } from "../../../src/fleet/jetstream/streams.ts";

test("logs missing JetStream once more after a silence of the server was logged", () => {
  const warnings: string[] = [];
  const log = { warn: (text: string) => void warnings.push(text), info: () => undefined };
  const sharing = new SharingLog({ servers: "host:4222", problem: undefined }, log);
  for (const what of ["batches", "responses", "batches"] as const)
    sharing.failed(what, new errors.TimeoutError());
  expect(warnings).toHaveLength(2);
  expect(sharing.problem).toContain("does not answer");
  const error = new NoJetStream("runs without JetStream: start it with -js");
  for (const what of ["batches", "responses", "batches"] as const) sharing.failed(what, error);
  expect(sharing.problem).toContain("start it with -js");
  expect(warnings.slice(2)).toEqual([expect.stringContaining("start it with -js")]);
  sharing.recovered("batches");
  sharing.recovered("responses");
  expect(sharing.problem).toBeUndefined();
});
