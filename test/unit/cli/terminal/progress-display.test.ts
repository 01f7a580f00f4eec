import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import {
  describeProgress,
  DownloadDisplay,
  transferRate,
} from "../../../../src/cli/terminal/progress-display.ts";

const line = (downloaded: number, total = 4_700_000_000) => ({
  status: "downloading" as const,
  progress: downloaded / total,
  downloaded_bytes: downloaded,
  total_bytes: total,
});

describe("transferRate", () => {
  it("is bytes per second between the first and the last sample", () => {
    expect(
      transferRate([
        { at: 0, bytes: 0 },
        { at: 500, bytes: 9 },
        { at: 2000, bytes: 3000 },
      ]),
    ).toBe(1500);
  });

  it("is unknown until time has passed", () => {
    expect(transferRate([])).toBeUndefined();
    expect(transferRate([{ at: 5, bytes: 1 }])).toBeUndefined();
  });
});

describe("describeProgress", () => {
  it("contains the percentage, the bytes, the rate and the remaining time", () => {
    expect(describeProgress(line(1_200_000_000), 35_000_000)).toBe(
      "25% 1.2 GB of 4.7 GB, 35.0 MB/s, 1m 40s left",
    );
  });

  it("omits the rate and the time without progress", () => {
    expect(describeProgress(line(0), 0)).toBe("0% 0 B of 4.7 GB");
    expect(describeProgress(line(0), undefined)).toBe("0% 0 B of 4.7 GB");
  });
});

function recorder(isTTY: boolean) {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk.toString());
      done();
    },
  });
  const cursor = { cursorTo: () => true, clearLine: () => true, moveCursor: () => true };
  return { output: Object.assign(stream, { isTTY, columns: 100, ...cursor }), text: () => chunks.join("") };
}

describe("DownloadDisplay", () => {
  it("draws a bar on a terminal", () => {
    const { output, text } = recorder(true);
    using display = new DownloadDisplay(output, "tiny");
    display.show(line(2_350_000_000));
    display.show({ status: "verifying" });
    expect(text()).toMatch(/tiny \[#+\.+\] 50% 2\.4 GB of 4\.7 GB/);
    expect(text()).toContain("Verifying");
  });

  it("prints nothing without a terminal", () => {
    const { output, text } = recorder(false);
    using display = new DownloadDisplay(output, "tiny");
    display.show(line(1));
    display.show({ status: "verifying" });
    expect(text()).toBe("");
  });
});
