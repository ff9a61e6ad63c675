// The version of Hawser: one for the server, the agent and the command line, which are released together.
// Every package.json says the same; tests/architecture.test.ts compares them.
export const version = '0.1.0'
