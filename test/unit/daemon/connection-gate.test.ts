import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { ConnectionGate, connectionLimits } from "../../../src/daemon/connection-gate.ts";

class FakeSocket extends EventEmitter {
  readonly remoteAddress: string | undefined;
  destroyed = false;

  constructor(remoteAddress: string | undefined) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }
}

const LONG_IDLE_MS = 1000;

function gate(total: number, perAddress = total) {
  let refused = 0;
  let now = 0;
  const entrance = new ConnectionGate(
    { total, perAddress },
    () => refused++,
    () => now,
  );
  const enter = (address?: string): Socket => {
    // The gate looks at nothing else of a socket.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const socket = new FakeSocket(address) as unknown as Socket;
    entrance.enter(socket);
    now += LONG_IDLE_MS;
    return socket;
  };
  return { entrance, enter, refused: () => refused, turnBack: () => (now -= LONG_IDLE_MS) };
}

describe("connections beyond the limit", () => {
  test("take the place of the one that has been idle for the longest", () => {
    const { entrance, enter, refused } = gate(3);
    const [first, second, third] = [enter("192.0.2.1"), enter("192.0.2.2"), enter("192.0.2.3")];
    // The first was used after the second.
    entrance.begin(first);
    entrance.end(first);
    enter("192.0.2.4");
    expect([first, second, third].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    expect(refused()).toBe(0);
  });

  test("find no place while all others have requests, and are told so", () => {
    const { entrance, enter, refused } = gate(2);
    const busy = [enter("192.0.2.1"), enter("192.0.2.2")];
    for (const socket of busy) entrance.begin(socket);
    const surplus = enter("192.0.2.3");
    expect(entrance.isSurplus(surplus)).toBe(true);
    expect(surplus.destroyed).toBe(false);
    expect(refused()).toBe(1);
    busy[0]!.destroy();
    expect(entrance.isSurplus(enter("192.0.2.3"))).toBe(false);
  });

  test("take no place whose request may just be on its way", () => {
    const { entrance, enter, refused, turnBack } = gate(1);
    const first = enter("192.0.2.1");
    turnBack();
    expect(entrance.isSurplus(enter("192.0.2.2"))).toBe(true);
    expect([first.destroyed, refused()]).toEqual([false, 1]);
    expect(entrance.isSurplus(enter("192.0.2.3"))).toBe(false);
    expect(first.destroyed).toBe(true);
  });

  test("are kept few: the oldest is closed without a word", () => {
    const { entrance, enter } = gate(1);
    entrance.begin(enter("192.0.2.1"));
    const surplus = Array.from({ length: 40 }, () => enter("192.0.2.2"));
    const open = surplus.filter(({ destroyed }) => !destroyed);
    expect(open.length).toBeLessThan(20);
    expect(open).toEqual(surplus.slice(-open.length));
    for (const socket of open) socket.destroy();
  });

  test("of one address leave room for other addresses", () => {
    const { entrance, enter } = gate(4, 2);
    const greedy = [enter("192.0.2.1"), enter("::ffff:192.0.2.1")];
    for (const socket of greedy) entrance.begin(socket);
    expect(entrance.isSurplus(enter("192.0.2.1"))).toBe(true);
    expect(entrance.isSurplus(enter("192.0.2.2"))).toBe(false);
  });

  test("count a whole network where addresses are plenty", () => {
    const { entrance, enter } = gate(4, 1);
    entrance.begin(enter("2001:db8:1:2::1"));
    expect(entrance.isSurplus(enter("2001:db8:1:2:3:4:5:6"))).toBe(true);
    expect(entrance.isSurplus(enter("2001:db8:1:3::1"))).toBe(false);
  });

  test.each(["127.0.0.1", "::ffff:127.0.0.1", "::1"])(
    "of this machine (%s) may take every place: a proxy has the requests of all the world",
    (address) => {
      const { entrance, enter } = gate(4, 1);
      for (let count = 0; count < 4; count++) entrance.begin(enter(address));
      expect(entrance.isSurplus(enter(address))).toBe(true);
      const other = gate(4, 1);
      for (let count = 0; count < 4; count++) {
        const socket = other.enter(address);
        other.entrance.begin(socket);
        expect(other.entrance.isSurplus(socket)).toBe(false);
      }
    },
  );
});

describe("the number of connections", () => {
  test.each([32, 64, 128, 256, 1024, 4096, 20_000, 1_048_576])(
    "leaves descriptors to work with, of %i",
    (descriptors) => {
      const { tcp, ipc } = connectionLimits(descriptors);
      expect(tcp.total + ipc.total).toBeLessThan(Math.max(17, descriptors - 95));
      expect(tcp.perAddress).toBeLessThanOrEqual(tcp.total);
      expect(ipc.total).toBeGreaterThan(0);
    },
  );

  test("is a good many where nobody knows how many descriptors there are", () => {
    expect(connectionLimits(undefined).tcp.total).toBeGreaterThan(1000);
  });
});
