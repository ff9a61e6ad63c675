// The public interface of the package, used by the server and the agent: a client of a container engine, a
// supervisor that follows its containers, and an SSH server for one container. The caller decides who may log
// in, and how a container becomes a device.
export { findShadow } from './accounts.ts'
export type { ContainerAccount } from './accounts.ts'
export { EngineFailure, engineClient } from './client.ts'
export type { EngineClient, EngineEndpoint } from './client.ts'
export { containerAddresses, engineFacts, engineInfo } from './containers.ts'
export type { Container, EngineFacts, Found } from './containers.ts'
export { startExec } from './exec.ts'
export type { Exec } from './exec.ts'
export { serveContainer } from './sshd.ts'
export type { ContainerSshOptions } from './sshd.ts'
export { supervise } from './supervise.ts'
export type { Supervised } from './supervise.ts'
