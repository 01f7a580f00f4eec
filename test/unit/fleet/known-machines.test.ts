import { describe, expect, test } from "vitest";
import { KnownMachines } from "../../../src/fleet/known-machines.ts";
import { heartbeat, memberInfo, idOf } from "../../support/fleet-wire.ts";

const KIB = 1024;
const CARD_BYTES = 256 * KIB;
/** Number of member infos of this size that fit. */
const CAPACITY = 256;

function ids(known: KnownMachines): string[] {
  return [...known.values()].map((each) => each.heartbeat.id);
}

describe("what is known of other machines", () => {
  test("removes the machines that were silent for longest, over the limit in bytes", () => {
    const known = new KnownMachines();
    known.heard(heartbeat("silent"), 0, 0);
    known.setInfo(memberInfo("silent"), CARD_BYTES);
    known.heard(heartbeat("real"), 0, 1);
    known.setInfo(memberInfo("real"), CARD_BYTES);
    for (let forged = 0; forged < CAPACITY; forged += 1) {
      known.heard(heartbeat(`forged ${forged}`), 0, 2 + forged);
      known.heard(heartbeat("real"), 0, 2 + forged + 0.5);
      known.setInfo(memberInfo(`forged ${forged}`), CARD_BYTES);
    }
    expect(known.size).toBe(CAPACITY);
    expect(known.get(idOf("real"))?.info).toBeDefined();
    expect(ids(known)).not.toContain(idOf("silent"));
    expect(ids(known)).not.toContain(idOf("forged 0"));
    expect(ids(known)).toContain(idOf(`forged ${CAPACITY - 1}`));
  });

  test("counts the bytes of each machine's latest messages only", () => {
    const known = new KnownMachines();
    known.heard(heartbeat("one"), KIB, 0);
    for (let time = 0; time < 2 * CAPACITY; time += 1) {
      known.heard(heartbeat("two"), KIB, time);
      known.setInfo(memberInfo("two"), CARD_BYTES);
    }
    expect(known.size).toBe(2);
    for (let time = 0; time < 2 * CAPACITY; time += 1) {
      known.heard(heartbeat("two"), KIB, time);
      known.setInfo(memberInfo("two"), CARD_BYTES);
      known.forget(idOf("two"));
    }
    expect(known.size).toBe(1);
  });

  test("is limited by the number of machines", () => {
    const known = new KnownMachines();
    for (let index = 0; index < 4200; index += 1) known.heard(heartbeat(`${index}`), 1, index);
    expect(known.size).toBe(4096);
    expect(known.get(idOf("4199"))).toBeDefined();
    expect(known.get(idOf("0"))).toBeUndefined();
  });
});
