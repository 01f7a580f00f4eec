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
  const connectionGate = new ConnectionGate(
    { total, perAddress },
    () => refused++,
    () => now,
  );
  const enter = (address?: string): Socket => {
    // The gate uses no other members of a socket.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const socket = new FakeSocket(address) as unknown as Socket;
    connectionGate.enter(socket);
    now += LONG_IDLE_MS;
    return socket;
  };
  return { connectionGate, enter, refused: () => refused, turnBackClock: () => (now -= LONG_IDLE_MS) };
}

describe("connections beyond the limit", () => {
  test("replace the connection that has been idle longest", () => {
    const { connectionGate, enter, refused } = gate(3);
    const [first, second, third] = [enter("192.0.2.1"), enter("192.0.2.2"), enter("192.0.2.3")];
    // The first was used after the second.
    connectionGate.begin(first);
    connectionGate.end(first);
    enter("192.0.2.4");
    expect([first, second, third].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    expect(refused()).toBe(0);
  });

  test("are surplus while all others have requests", () => {
    const { connectionGate, enter, refused } = gate(2);
    const busy = [enter("192.0.2.1"), enter("192.0.2.2")];
    for (const socket of busy) connectionGate.begin(socket);
    const surplus = enter("192.0.2.3");
    expect(connectionGate.isSurplus(surplus)).toBe(true);
    expect(surplus.destroyed).toBe(false);
    expect(refused()).toBe(1);
    busy[0]!.destroy();
    expect(connectionGate.isSurplus(enter("192.0.2.3"))).toBe(false);
  });

  test("do not replace a connection that became idle just now", () => {
    const { connectionGate, enter, refused, turnBackClock } = gate(1);
    const first = enter("192.0.2.1");
    turnBackClock();
    expect(connectionGate.isSurplus(enter("192.0.2.2"))).toBe(true);
    expect([first.destroyed, refused()]).toEqual([false, 1]);
    expect(connectionGate.isSurplus(enter("192.0.2.3"))).toBe(false);
    expect(first.destroyed).toBe(true);
  });

  test("are limited: the oldest surplus connection is closed", () => {
    const { connectionGate, enter } = gate(1);
    connectionGate.begin(enter("192.0.2.1"));
    const surplus = Array.from({ length: 40 }, () => enter("192.0.2.2"));
    const open = surplus.filter(({ destroyed }) => !destroyed);
    expect(open.length).toBeLessThan(20);
    expect(open).toEqual(surplus.slice(-open.length));
    for (const socket of open) socket.destroy();
  });

  test("of one address leave connections for other addresses", () => {
    const { connectionGate, enter } = gate(4, 2);
    const greedy = [enter("192.0.2.1"), enter("::ffff:192.0.2.1")];
    for (const socket of greedy) connectionGate.begin(socket);
    expect(connectionGate.isSurplus(enter("192.0.2.1"))).toBe(true);
    expect(connectionGate.isSurplus(enter("192.0.2.2"))).toBe(false);
  });

  test("are counted by network for IPv6", () => {
    const { connectionGate, enter } = gate(4, 1);
    connectionGate.begin(enter("2001:db8:1:2::1"));
    expect(connectionGate.isSurplus(enter("2001:db8:1:2:3:4:5:6"))).toBe(true);
    expect(connectionGate.isSurplus(enter("2001:db8:1:3::1"))).toBe(false);
  });

  test.each(["127.0.0.1", "::ffff:127.0.0.1", "::1"])(
    "from the loopback address %s, which may be a proxy, may use the total",
    (address) => {
      const { connectionGate, enter } = gate(4, 1);
      for (let count = 0; count < 4; count++) connectionGate.begin(enter(address));
      expect(connectionGate.isSurplus(enter(address))).toBe(true);
      const other = gate(4, 1);
      for (let count = 0; count < 4; count++) {
        const socket = other.enter(address);
        other.connectionGate.begin(socket);
        expect(other.connectionGate.isSurplus(socket)).toBe(false);
      }
    },
  );
});

describe("connectionLimits", () => {
  test.each([32, 64, 128, 256, 1024, 4096, 20_000, 1_048_576])(
    "reserves file descriptors of %i",
    (descriptors) => {
      const { tcp, ipc } = connectionLimits(descriptors);
      expect(tcp.total + ipc.total).toBeLessThan(Math.max(17, descriptors - 95));
      expect(tcp.perAddress).toBeLessThanOrEqual(tcp.total);
      expect(ipc.total).toBeGreaterThan(0);
    },
  );

  test("allows over 1000 connections if the number of descriptors is unknown", () => {
    expect(connectionLimits(undefined).tcp.total).toBeGreaterThan(1000);
  });
});
