import { describe, expect, test } from "vitest";
import { inBytes, inDays, inFull, inShort, inTime } from "../../../src/ui/number-format.ts";
import { SpeedMeter } from "../../../src/ui/models/speed-meter.ts";

describe("numbers for people", () => {
  test.each([
    [0, "0 bytes"],
    [1, "1 byte"],
    [999, "999 bytes"],
    [4812, "5 kB"],
    [4_812_345, "4.8 MB"],
    [41_000_000_000, "41 GB"],
    [1.25e12, "1.3 TB"],
    [5e15, "5,000 TB"],
  ])("%d bytes are %s", (bytes, text) => expect(inBytes(bytes)).toBe(text));

  test.each([
    [0.2, "1 s"],
    [59, "59 s"],
    [60, "1 min"],
    [61, "2 min"],
    [3600, "1 h 0 min"],
    [7500, "2 h 5 min"],
  ])("%d seconds are %s", (seconds, text) => expect(inTime(seconds)).toBe(text));

  test("counts are short or full, and days have no time", () => {
    expect([inShort(1_235_814_432), inFull(131_072), inDays("2026-01-02T12:00:00.000Z")]).toEqual([
      "1.24B",
      "131,072",
      "Jan 2, 2026",
    ]);
  });
});

describe("a speed", () => {
  test("is that of the last seconds, and not known at first", () => {
    let now = 0;
    const meter = new SpeedMeter(() => now);
    meter.add(500);
    expect(meter.speed).toBeUndefined();
    now = 100;
    meter.add(600);
    expect(meter.speed).toBeUndefined();
    now = 1000;
    meter.add(1500);
    expect(meter.speed).toBe(1000);
    // Long ago, it was slow.
    now = 5500;
    meter.add(15_000);
    now = 10_000;
    meter.add(24_000);
    expect(meter.speed).toBe(2000);
  });
});
