import { describe, expect, test } from "vitest";
import { KnownMachines } from "../../../src/fleet/known-machines.ts";
import { beat, card, idOf } from "../../support/fleet-wire.ts";

const KIB = 1024;
const CARD_BYTES = 256 * KIB;
/** Cards of this size that there is room for. */
const ROOM = 256;

function ids(known: KnownMachines): string[] {
  return [...known.values()].map((each) => each.beat.id);
}

describe("what is known of other machines", () => {
  test("has a bound in bytes: those that have been silent for longest are forgotten", () => {
    const known = new KnownMachines();
    known.heard(beat("silent"), 0, 0);
    known.describe(card("silent"), CARD_BYTES);
    known.heard(beat("real"), 0, 1);
    known.describe(card("real"), CARD_BYTES);
    for (let forged = 0; forged < ROOM; forged += 1) {
      known.heard(beat(`forged ${forged}`), 0, 2 + forged);
      known.heard(beat("real"), 0, 2 + forged + 0.5);
      known.describe(card(`forged ${forged}`), CARD_BYTES);
    }
    expect(known.size).toBe(ROOM);
    expect(known.get(idOf("real"))?.card).toBeDefined();
    expect(ids(known)).not.toContain(idOf("silent"));
    expect(ids(known)).not.toContain(idOf("forged 0"));
    expect(ids(known)).toContain(idOf(`forged ${ROOM - 1}`));
  });

  test("counts what a machine tells last, not what it has told before", () => {
    const known = new KnownMachines();
    known.heard(beat("one"), KIB, 0);
    for (let time = 0; time < 2 * ROOM; time += 1) {
      known.heard(beat("two"), KIB, time);
      known.describe(card("two"), CARD_BYTES);
    }
    expect(known.size).toBe(2);
    for (let time = 0; time < 2 * ROOM; time += 1) {
      known.heard(beat("two"), KIB, time);
      known.describe(card("two"), CARD_BYTES);
      known.forget(idOf("two"));
    }
    expect(known.size).toBe(1);
  });

  test("has a bound in machines", () => {
    const known = new KnownMachines();
    for (let index = 0; index < 4200; index += 1) known.heard(beat(`${index}`), 1, index);
    expect(known.size).toBe(4096);
    expect(known.get(idOf("4199"))).toBeDefined();
    expect(known.get(idOf("0"))).toBeUndefined();
  });
});
