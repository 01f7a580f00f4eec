import { describe, expect, test } from "vitest";
import { DownloadSpeed } from "../../../src/ui/models/stored-pulls.ts";

describe("the speed of a download", () => {
  test("is measured over the last seconds, and unknown at first", () => {
    let now = 0;
    const meter = new DownloadSpeed(() => now);
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
