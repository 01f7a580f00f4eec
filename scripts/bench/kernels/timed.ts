/** Mean milliseconds of one run, over as many runs as fit the time. */
export function timed(run: () => unknown, milliseconds: number): number {
  const start = cpuMilliseconds();
  let runs = 0;
  let passed = 0;
  while (passed < milliseconds) {
    run();
    runs++;
    passed = cpuMilliseconds() - start;
  }
  return passed / runs;
}

/** Time that this thread had a processor: others on the machine count less than they would by the clock. */
function cpuMilliseconds(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
