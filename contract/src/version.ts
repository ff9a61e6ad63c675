// The version of Hawser: one for the server, the agent and the command line, which are released together.
// tests/architecture.test.ts compares every package.json with it.
export const version = '0.1.0'
