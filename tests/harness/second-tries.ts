// Says why a test needed a second try. The test has passed in the end, so the report would only name it, and
// what went wrong the first time is what whoever mends it wants to know.
import type { Reporter, TestCase } from 'vitest/node'

export default class SecondTries implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result()
    if (state !== 'passed' || !test.diagnostic()?.retryCount) return
    for (const { stack, message, diff } of errors ?? [])
      console.error(
        `\nSecond try of ${test.module.relativeModuleId}, ${test.fullName}:\n${[stack ?? message, diff].join('\n')}`,
      )
  }
}
