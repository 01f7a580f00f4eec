import { describe, expect, it } from "vitest";
import { PullMeter } from "../../../../../src/models/hub/download/pull-meter.ts";
import type { PullProgress } from "../../../../../src/models/pull-progress.ts";

function meterOf(total: number) {
  const lines: PullProgress[] = [];
  const clock = { now: 0 };
  const meter = new PullMeter(
    total,
    (line) => lines.push(line),
    () => clock.now,
  );
  const shown = () =>
    lines.map((line) => (line.status === "downloading" ? line.downloadedBytes : line.status));
  return { meter, clock, shown, lines };
}

describe("the progress of a pull", () => {
  it("is reported ten times a second at most, but its end always", () => {
    const { meter, clock, shown } = meterOf(1000);
    for (let bytes = 1; bytes <= 1000; bytes++) {
      clock.now += 1;
      meter.update("a", bytes);
    }
    expect(shown()).toEqual([0, 1, 101, 201, 301, 401, 501, 601, 701, 801, 901, 1000, "verifying"]);
  });

  it("adds up the files", () => {
    const { meter, clock, lines } = meterOf(30);
    for (const [file, bytes] of [
      ["a", 10],
      ["b", 5],
      ["b", 20],
    ] as const) {
      clock.now += 1000;
      meter.update(file, bytes);
    }
    expect(lines.at(1)).toEqual({ status: "downloading", downloadedBytes: 10, totalBytes: 30 });
    expect(lines.at(2)).toEqual({ status: "downloading", downloadedBytes: 15, totalBytes: 30 });
    expect(lines.at(3)).toEqual({ status: "downloading", downloadedBytes: 30, totalBytes: 30 });
    expect(lines.at(4)).toEqual({ status: "verifying" });
  });

  it("never falls, also when a part has to be thrown away", () => {
    const { meter, clock, shown } = meterOf(100);
    for (const bytes of [60, 0, 30, 70]) {
      clock.now += 1000;
      meter.update("a", bytes);
    }
    expect(shown()).toEqual([0, 60, 70]);
  });

  it("says once that it verifies", () => {
    const { meter, shown } = meterOf(10);
    meter.update("a", 10);
    meter.update("a", 0);
    meter.update("a", 10);
    expect(shown()).toEqual([0, 10, "verifying"]);
  });
});
