// What the package offers to the server and the agent: an engine's API, its containers followed, and an SSH
// server for each of them. Who may log in, and what becomes of a container in the world of devices, is for
// those who use it.
export { findShadow } from './accounts.ts'
export type { ContainerAccount } from './accounts.ts'
export { EngineFailure, engineClient } from './client.ts'
export type { EngineClient, EngineWay } from './client.ts'
export { engineInfo } from './containers.ts'
export type { Container, EngineFacts, Found } from './containers.ts'
export { serveContainer } from './sshd.ts'
export type { ContainerSshOptions } from './sshd.ts'
export { supervise } from './supervise.ts'
export type { Supervised } from './supervise.ts'
