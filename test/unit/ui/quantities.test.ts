import { describe, expect, test } from "vitest";
import {
  formatBytes,
  formatDate,
  formatInteger,
  formatCompact,
  formatRemainingTime,
} from "../../../src/ui/number-format.ts";
import { SpeedMeter } from "../../../src/ui/models/speed-meter.ts";

describe("formats of numbers", () => {
  test.each([
    [0, "0 bytes"],
    [1, "1 byte"],
    [999, "999 bytes"],
    [4812, "5 kB"],
    [4_812_345, "4.8 MB"],
    [41_000_000_000, "41 GB"],
    [1.25e12, "1.3 TB"],
    [5e15, "5,000 TB"],
  ])("%d bytes are formatted as %s", (bytes, text) => expect(formatBytes(bytes)).toBe(text));

  test.each([
    [0.2, "1 s"],
    [59, "59 s"],
    [60, "1 min"],
    [61, "2 min"],
    [3600, "1 h 0 min"],
    [7500, "2 h 5 min"],
  ])("%d seconds are formatted as %s", (seconds, text) => expect(formatRemainingTime(seconds)).toBe(text));

  test("numbers are formatted compactly or in full, and dates without a time", () => {
    expect([
      formatCompact(1_235_814_432),
      formatInteger(131_072),
      formatDate("2026-01-02T12:00:00.000Z"),
    ]).toEqual(["1.24B", "131,072", "Jan 2, 2026"]);
  });
});

describe("the speed of a download", () => {
  test("is measured over the last seconds, and unknown at first", () => {
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
    // The slow start is outside the measured time span.
    now = 5500;
    meter.add(15_000);
    now = 10_000;
    meter.add(24_000);
    expect(meter.speed).toBe(2000);
  });
});
