// The interface of the SSH package for the server, the agent and the command line: the protocol and its keys,
// and no policy. Nothing that is not named here is for use outside of the package.
export {
  allAlgorithms,
  clientAlgorithms,
  compatibleAlgorithms,
  ownCompression,
  serverAlgorithms,
} from './algorithms.ts'
export type { Algorithms } from './algorithms.ts'
export type { CompressionMode } from './compression/compression.ts'
export { contextMemory } from './compression/zlib-context.ts'
export type { Answer, Proof, Questions } from './auth/client.ts'
export type { Attempt, Decision, Prompt, ShownKey } from './auth/server.ts'
export { proofData } from './auth/proof.ts'
export { cipherImplementation } from './ciphers/implementation.ts'
export type { CipherImplementation } from './ciphers/implementation.ts'
export { connect, openClient } from './client.ts'
export type { ClientOptions, ConnectOptions, Unauthenticated } from './client.ts'
export type { Channel, ChannelRequest, Chunk } from './connection/channel.ts'
export { OpenFailure } from './connection/connection.ts'
export type { Connection, GlobalRequest, Opening } from './connection/connection.ts'
export {
  joinSocket,
  readListen,
  readPath,
  readPort,
  readTcpForward,
  writeDirectPath,
  writeForwardedPath,
  writeListen,
  writePath,
  writePort,
  writeTcpForward,
} from './connection/forwarding.ts'
export type { TcpForward } from './connection/forwarding.ts'
export { readRequest, writeRequest } from './connection/requests.ts'
export type { Exit, Program, Pty, SessionRequest, Size } from './connection/requests.ts'
export { receiveSession, sendableSignals, SessionRefused, startSession } from './connection/session.ts'
export type { RunningSession, Session, SessionEvent, SessionOptions } from './connection/session.ts'
export { channelStream } from './connection/stream.ts'
export {
  AuthenticationFailed,
  ChannelClosed,
  ChannelRefused,
  ConnectionEnded,
  NothingInCommon,
  ProtocolError,
  Reason,
  SshError,
} from './errors.ts'
export { AgentFailure, agentKeys } from './keys/agent.ts'
export type { AgentKey } from './keys/agent.ts'
export { blobOf, knownKey } from './keys/key-object.ts'
export type { KnownKey } from './keys/key-object.ts'
export { judgeCertificate, parseCertificate } from './keys/certificate.ts'
export { certify, signCertificate } from './keys/certify.ts'
export type { CertificateFields } from './keys/certify.ts'
export { certifyHostKey, isCertifiedHostKey } from './keys/host-certificate.ts'
export type { Certificate, CertificateResult, CertificateUse } from './keys/certificate.ts'
export {
  generatePrivateKey,
  parsePrivateKey,
  PassphraseNeeded,
  privateKeyFile,
  privateKeyFrom,
} from './keys/private-key.ts'
export type { PrivateKey } from './keys/private-key.ts'
export {
  fingerprintMd5,
  fingerprintSha256,
  KeyFormatError,
  parsePublicKeyBlob,
  parsePublicKeyLine,
  publicKeyLine,
} from './keys/public-key.ts'
export type { PublicKeyLine } from './keys/public-key.ts'
export { verifySignature } from './keys/signature.ts'
export { withCertificate } from './keys/signer.ts'
export type { Signer } from './keys/signer.ts'
export type { JoinOptions, Side, Tap } from './join-channels.ts'
export { localPair } from './local.ts'
export type { ConnectionEnd } from './local.ts'
export { pipe } from './pipe.ts'
export type { PipeOptions, TapDecision } from './pipe.ts'
export { releasesBuffers } from './releases-buffers.ts'
export type { ReleasesBuffers } from './releases-buffers.ts'
export { queue } from './queue.ts'
export type { Queue } from './queue.ts'
export { acceptConnection } from './server.ts'
export type { ServerConnection, ServerOptions } from './server.ts'
export { openSftp } from './sftp/client.ts'
export type { SftpClient } from './sftp/client.ts'
export { localFiles } from './sftp/files.ts'
export type { Entry, FileSystem, OpenFile, Space } from './sftp/files.ts'
export { sftpInspector } from './sftp/inspector.ts'
export type {
  SftpHash,
  SftpInspector,
  SftpInspectorOptions,
  SftpOperation,
  SftpRestrictions,
} from './sftp/inspector.ts'
export { Open, SftpFailure, Status } from './sftp/protocol.ts'
export type { Attributes } from './sftp/protocol.ts'
export { serveSftp } from './sftp/server.ts'
