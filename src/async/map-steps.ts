/** The steps of a generator in another form, and its result; whoever leaves early ends that generator too. */
export async function* mapSteps<From, To, Result>(
  steps: AsyncGenerator<From, Result, void>,
  convert: (step: From) => To,
): AsyncGenerator<To, Result, void> {
  await using open = steps;
  for (;;) {
    const step = await open.next();
    if (step.done) return step.value;
    yield convert(step.value);
  }
}
