import { describe, expect, it, test } from "vitest";
import {
  formatBytes,
  formatCount,
  formatDate,
  formatDuration,
  formatGigabytes,
  formatInteger,
  formatMebibytes,
  formatNumber,
  formatTime,
} from "../../../src/json/quantities.ts";

describe("formatBytes", () => {
  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1.0 kB"],
    [1_250_000, "1.3 MB"],
    [99_949_999, "99.9 MB"],
    [99_950_000, "100 MB"],
    [999_600_000, "1.0 GB"],
    [4_683_073_184, "4.7 GB"],
    [2_000_000_000_000_000, "2000 TB"],
  ])("writes %d as %s", (bytes, text) => expect(formatBytes(bytes)).toBe(text));
});

describe("formatCount", () => {
  it.each([
    [0, "0"],
    [999, "999"],
    [260_000, "260K"],
    [494_032_768, "494M"],
    [999_600_000, "1.0B"],
    [1_543_714_304, "1.5B"],
    [70_553_706_496, "71B"],
  ])("writes %d as %s", (count, text) => expect(formatCount(count)).toBe(text));
});

describe("formatDuration", () => {
  it.each([
    [0, "0 ms"],
    [850.4, "850 ms"],
    [12_340, "12.3 s"],
    [59_960, "1m 00s"],
    [245_000, "4m 05s"],
    [7_800_000, "2h 10m"],
    [273_600_000, "3d 4h"],
  ])("writes %d ms as %s", (millis, text) => expect(formatDuration(millis)).toBe(text));
});

test("sizes of disk and memory have fixed units", () => {
  expect([
    formatGigabytes(1_254_000_000),
    formatMebibytes(1),
    formatMebibytes(1_048_577, Math.floor),
  ]).toEqual(["1.25 GB", "1 MiB", "1 MiB"]);
});

test("numbers have separators, and three significant digits if they are no integers", () => {
  expect([formatInteger(131_072), formatNumber(0.12345), formatNumber(1234.5)]).toEqual([
    "131,072",
    "0.123",
    "1,230",
  ]);
});

test("a date has no time, and a time has a date unless it is today", () => {
  expect(formatDate("2026-01-02T12:00:00.000Z")).toBe("Jan 2, 2026");
  expect(formatTime("2026-01-02T12:00:00.000Z")).toMatch(/^2 Jan 2026, \d\d:\d\d:\d\d$/);
  expect(formatTime(new Date().toISOString())).toMatch(/^\d\d:\d\d:\d\d$/);
});
