import { describe, expect, test } from "vitest";
import { firstTokenTime, HISTORY_SECS, Metrics, SampleHistory } from "../../../../src/ui/monitor/samples.ts";

function metrics(values: Readonly<Record<string, number>>): Metrics {
  return new Metrics(
    Object.entries(values)
      .map(([name, value]) => `${name} ${value}`)
      .join("\n"),
  );
}

describe("the Prometheus text format", () => {
  const text = new Metrics(`# HELP service_requests_active Requests.
# TYPE service_requests_active gauge
service_requests_active 3
service_model_memory_bytes{model="a"} 1.5e+9
service_model_memory_bytes{model="b \\"quoted\\"\\\\\\n"} 7
`);

  test("is parsed into values by name and by label", () => {
    expect(text.value("service_requests_active")).toBe(3);
    expect(text.value("service_nothing")).toBe(0);
    expect([...text.byLabel("service_model_memory_bytes", "model")]).toEqual([
      ["a", 1_500_000_000],
      ['b "quoted"\\\n', 7],
    ]);
  });
});

describe("samples of the monitor", () => {
  test("contain the rates of counters, and null after a restart of the daemon", () => {
    const history = new SampleHistory();
    history.add(100, metrics({ service_tokens_generated_total: 50 }));
    history.add(102, metrics({ service_tokens_generated_total: 70 }));
    history.add(104, metrics({ service_tokens_generated_total: 5 }));
    history.add(106, metrics({ service_tokens_generated_total: 5 }));
    expect(history.samples.map(({ generated }) => generated)).toEqual([null, 10, null, 0]);
  });

  test("count running and waiting requests separately", () => {
    const history = new SampleHistory();
    history.add(1, metrics({ service_requests_active: 5, service_requests_waiting: 2 }));
    expect(history.samples).toMatchObject([{ running: 3, waiting: 2 }]);
  });

  test("have a gap after a long interval, instead of a rate over it", () => {
    const history = new SampleHistory();
    history.add(100, metrics({ service_tokens_generated_total: 0 }));
    history.add(200, metrics({ service_tokens_generated_total: 1000 }));
    expect(history.samples.map(({ time, running }) => [time, running])).toEqual([
      [100, 0],
      [104, null],
      [200, 0],
    ]);
    expect(history.samples.at(-1)?.generated).toBeNull();
  });

  test("are dropped when they are older than the time span of the charts", () => {
    const history = new SampleHistory();
    for (let time = 0; time < 3 * HISTORY_SECS; time += 2) history.add(time, metrics({}));
    expect(history.samples[0]?.time).toBe(2 * HISTORY_SECS);
    expect(history.samples).toHaveLength(HISTORY_SECS / 2);
  });
});

test("the time to first token counts answers of the last five minutes", () => {
  const all = [1, 2, 3, 4, 100].map((seconds, index) => ({ at: 1000 + index, seconds }));
  expect(firstTokenTime(all, 0.5, 1004)).toBe(3);
  expect(firstTokenTime(all, 0.95, 1004)).toBe(100);
  expect(firstTokenTime(all, 0.95, 1003)).toBe(4);
  expect(firstTokenTime(all, 0.5, 1302)).toBe(4);
  expect(firstTokenTime(all, 0.5, 2000)).toBeNull();
});
